"""The board for MCP clients: one set of tools over the REST API, reached over HTTP at `/mcp` or by `paddock mcp`.

Every tool is a call of the REST API by the same caller, so that scopes, limits, the audit log and what was taken away
hold here without a second rule. See docs/decisions/0017.
"""
