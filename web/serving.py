"""`paddock serve`: web, worker and ticks as one thing that starts and stops together."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn

from runner import prompt_sets, schedule
from storage.site import Site
from web.app import create_app

_GRACE_S = 20


def serve(site: Site, *, with_worker: bool) -> None:
    """Serve `site` until interrupted, then stop the worker and every run it had.

    Raises:
        OSError: the address can't be had. Nothing was started.
    """
    settings = site.settings
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.create_server((settings.host, settings.port), family=family, backlog=2048) as listener:
        prompt_sets.ensure_private(site)
        with schedule.ticking(site), _worker(site, with_worker), suppress(KeyboardInterrupt):
            uvicorn.Server(_config(site)).run(sockets=[listener])


def _config(site: Site) -> uvicorn.Config:
    settings = site.settings
    return uvicorn.Config(
        create_app(site),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies or "127.0.0.1",
    )


@contextmanager
def _worker(site: Site, wanted: bool) -> Iterator[None]:
    """Run a worker process beside us; it holds the reading end of a pipe and stops when we are gone."""
    if not wanted:
        yield
        return
    reading_end, writing_end = os.pipe()
    command = [sys.executable, "-m", "web", "worker", "--lifeline-fd", str(reading_end)]
    command += ["--data", str(site.settings.data), "--challenge", str(site.settings.challenge)]
    child = subprocess.Popen(command, pass_fds=(reading_end,), stdin=subprocess.DEVNULL, start_new_session=True)
    os.close(reading_end)
    try:
        yield
    finally:
        os.close(writing_end)
        try:
            child.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
