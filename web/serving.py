"""`paddock serve`: web, worker and ticks as one thing that starts and stops together."""

import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn

from board import onboarding
from runner import prompt_sets, schedule
from storage.database import writing
from storage.site import Site
from web.app import create_app
from web.redaction import redact_logs

_log = logging.getLogger(__name__)
_GRACE_S = 20
_PAUSE_S = 2.0


def serve(site: Site, *, with_worker: bool) -> None:
    """Serve `site` until interrupted, then stop the worker and every run it had.

    Raises:
        OSError: the address can't be had. Nothing was started.
    """
    redact_logs()
    settings = site.settings
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.create_server((settings.host, settings.port), family=family, backlog=2048) as listener:
        prompt_sets.ensure_private(site)
        with writing(site.engine) as session:
            onboarding.refresh(site, session)
        with schedule.ticking(site), _worker(site, with_worker), suppress(KeyboardInterrupt):
            Server(server_config(site)).run(sockets=[listener])


class Server(uvicorn.Server):
    """Ends the streams of events first: they would outlast every other answer."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving."""
        self.config.app.state.live.close()  # type: ignore[union-attr]  # what `create_app` made
        await super().shutdown(sockets)


def server_config(site: Site) -> uvicorn.Config:
    """Configure the server of a site."""
    return uvicorn.Config(
        create_app(site),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        proxy_headers=False,  # `web.proxies` reads them: it knows hosts and ports, too
    )


@contextmanager
def _worker(site: Site, wanted: bool) -> Iterator[None]:
    """Keep a worker process beside us, started again if it dies; it stops when we stop or are gone.

    The worker holds the reading end of a pipe whose writing end is ours alone.
    """
    if not wanted:
        yield
        return
    reading_end, writing_end = os.pipe()
    keeper = _Keeper(_worker_command(site, reading_end), reading_end)
    keeper.start()
    try:
        yield
    finally:
        keeper.stopping.set()
        os.close(writing_end)
        keeper.end(within_s=_GRACE_S)
        os.close(reading_end)


def _worker_command(site: Site, lifeline: int) -> list[str]:
    command = [sys.executable, "-m", "web", "worker", "--lifeline-fd", str(lifeline)]
    return [*command, "--data", str(site.settings.data), "--challenge", str(site.settings.challenge)]


class _Keeper(threading.Thread):
    """Runs the worker process and, while nobody wants an end, runs it again."""

    def __init__(self, command: list[str], lifeline: int) -> None:
        super().__init__(name="worker-keeper", daemon=True)
        self.stopping = threading.Event()
        self._command = command
        self._lifeline = lifeline
        self._child: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        while not self.stopping.is_set():
            self._child = subprocess.Popen(
                self._command, pass_fds=(self._lifeline,), stdin=subprocess.DEVNULL, start_new_session=True
            )
            code = self._child.wait()
            if not self.stopping.is_set():
                _log.error("the worker ended with exit code %s; it is started again", code)
                self.stopping.wait(_PAUSE_S)

    def end(self, *, within_s: float) -> None:
        """Wait for the worker's end, and bring it about when that takes too long."""
        self.join(within_s)
        if self.is_alive() and self._child is not None:
            self._child.kill()
            self.join()
