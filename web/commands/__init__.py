"""The operator's commands, one group a file; `web.cli` hangs each into `paddock`."""
