"""The first process beside a submission's server: starts it, joins a unix socket to its port, ends with its exit code.

    python -I inside.py launch.json

It runs under the server environment's Python, inside the sandbox where there is one, so it imports nothing but the
standard library. The launch file holds {"argv", "cwd", "env", "port", "limits", "listener", "started", "lifeline",
"farewell_s", "in_sandbox"}: `limits` maps names of `resource.RLIMIT_*` to a number; three are inherited file
descriptors. `listener` is the unix socket that listens already, `started` a pipe that gets one byte when the sandbox
around us stands, and `lifeline` a pipe: a byte in it sends the server SIGTERM and ends all `farewell_s` later; its end
of file, which the worker's death brings, ends all at once. Without a sandbox nobody else ends the server's children, so
we do, whatever session they moved to.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import Any

_PIECE_BYTES = 1 << 16
_PR_SET_CHILD_SUBREAPER = 36


def main(launch_file: str) -> None:
    """Serve until the server ends, then end at once with its exit code, or 128 and the signal that ended it."""
    launch = json.loads(Path(launch_file).read_bytes())
    os.write(launch["started"], b"1")
    os.close(launch["started"])
    for name, most in launch["limits"].items():
        resource.setrlimit(getattr(resource, name), (most, most))
    asyncio.run(_serve(launch))


async def _serve(launch: dict[str, Any]) -> None:
    if not launch["in_sandbox"]:
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # whoever loses its parent becomes our child

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _join(reader, writer, launch["port"])

    await asyncio.start_unix_server(relay, sock=socket.socket(fileno=launch["listener"]))
    try:
        server = await asyncio.create_subprocess_exec(
            *launch["argv"], cwd=launch["cwd"], env=launch["env"], stdin=asyncio.subprocess.DEVNULL
        )
    except OSError as fault:
        print(f"cannot start {launch['argv'][0]!r}: {fault.strerror}", file=sys.stderr, flush=True)  # noqa: T201
        os._exit(127)
    asyncio.get_running_loop().add_reader(launch["lifeline"], _end_as_told, server, launch)
    code = await server.wait()
    if not launch["in_sandbox"]:
        _end_descendants()
    os._exit(code if code >= 0 else 128 - code)  # open connections end with us, without a word in the server's log


def _end_as_told(server: asyncio.subprocess.Process, launch: dict[str, Any]) -> None:
    if not os.read(launch["lifeline"], 1):
        _end_all()
    asyncio.get_running_loop().call_later(launch["farewell_s"], _end_all)
    with contextlib.suppress(OSError):  # the server can do what it likes to the log that it shares with us
        print("-- the run is over: the server is told to end --", flush=True)  # noqa: T201
    with contextlib.suppress(ProcessLookupError):
        server.terminate()


def _end_all() -> None:
    _end_descendants()
    os.killpg(0, signal.SIGKILL)


def _end_descendants() -> None:
    """Kill all that stems from us; what is born meanwhile is found in the next round."""
    while found := _descendants():
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue


def _descendants() -> set[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in {os.getpid(), *found}} - found:
        found |= more
    return found


async def _join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    try:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        writer.close()
        return
    try:
        await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))
    finally:
        for end in (server_writer, writer):
            end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side is done; a lost connection ends the copy like its end of file."""
    try:
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.close()


if __name__ == "__main__":
    main(sys.argv[1])
