"""`paddock mcp`: the board for MCP clients that start a program and speak to it by stdio.

It asks a server over its REST API, wherever that runs: an agent's machine has no data folder, and what a token may
do is decided in one place.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import httpx2
import typer
from mcp.server.stdio import stdio_server

from storage.errors import Invalid
from web.mcp.rest import Rest
from web.mcp.server import Connect, build

_TIMEOUT_S = 60.0

app = typer.Typer()


class AddressMissing(Invalid):
    """Nobody said which server to speak to."""

    code = "ADDRESS_MISSING"


@app.command("mcp")
def speak(
    url: Annotated[
        str, typer.Option(envvar=["PADDOCK_URL", "HF_ENDPOINT"], help="The server's address, https://….")
    ] = "",
    token: Annotated[
        str,
        typer.Option(envvar=["PADDOCK_TOKEN", "HF_TOKEN"], help="Your token; give it in the environment.", hidden=True),
    ] = "",
) -> None:
    """Speak MCP on stdin and stdout, for a server that may be anywhere. PADDOCK_TOKEN holds your token."""
    if not url.startswith(("http://", "https://")):
        raise AddressMissing("The server's address is missing.", hint="Set PADDOCK_URL, for example https://race.org.")
    anyio.run(_serve, _outside(url, token))


async def _serve(connect: Connect) -> None:
    server = build(connect)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _outside(url: str, token: str) -> Connect:
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    @asynccontextmanager
    async def connect(_request: Any) -> AsyncIterator[Rest]:
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT_S) as opened:
            yield Rest(opened)

    return connect
