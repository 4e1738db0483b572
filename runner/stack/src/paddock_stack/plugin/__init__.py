"""Extend vLLM: the entry point `vllm.general_plugins` that every one of its processes calls once.

Nothing of vLLM or torch is imported here: vLLM only logs a plugin whose module cannot be imported and serves on
without it, while a fault raised by `register` ends the start.
"""

import os


def register() -> None:
    """Put the stack's levers into the vLLM of this process; calling it again changes nothing.

    Raises:
        Refused: with one sentence, where vLLM's shape differs from what a lever needs or a switch reads neither 0 nor
            1. vLLM then does not start.
    """
    from paddock_stack.plugin.levers import pull

    pull(os.environ)
