"""Ticks, in one elected process: whoever holds the lock file reaps, scans and posts; others keep trying."""

import fcntl
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import IO

from apscheduler.schedulers.background import BackgroundScheduler

from agents import audit_files
from runner import endings, queue, staged, verification, volleys
from runner.launchers.local import LocalLauncher
from runner.rows import VolleyRow
from storage.database import reading, writing
from storage.local import sweep
from storage.site import Site

_log = logging.getLogger(__name__)
_WRITE_UP_EVERY = timedelta(minutes=1)
_SWEEP_EVERY = timedelta(days=1)


class Ticker:
    """One site's ticks. The lock is the file's, so a killed holder frees it at once."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._launcher = LocalLauncher(site.settings)
        self._lock: IO[str] | None = None
        self._over = threading.Event()
        self._next_write_up_at = site.clock()
        self._next_sweep_at = site.clock()

    def tick(self) -> None:
        """Do one round if this process is the elected one; a failure is logged and the next round comes."""
        if not self._is_elected():
            return
        for part in (self._reap, self._scan, self._post, self._start, self._write_up):
            try:
                part()
            except Exception:  # noqa: BLE001 - one bad round must not end the ticks
                _log.exception("a tick failed")

    def sweep(self) -> None:
        """Sweep the store once a day if this process is the elected one; after a failure, too, that is the next day.

        Call it beside the ticks: they must not wait for it. Files without a row are left to `paddock sweep`: a server
        started with the wrong database has only such.
        """
        if self._lock is None or self._site.clock() < self._next_sweep_at:
            return
        self._next_sweep_at = self._site.clock() + _SWEEP_EVERY
        try:
            now, is_over, store = self._site.clock(), self._over.is_set, (self._site.engine, self._site.blobs)
            _log.info("removed %s", sweep.sweep(*store, now=now, takes_strangers=False, is_over=is_over))
        except Exception:  # noqa: BLE001 - one bad sweep must not end the ticks
            _log.exception("a sweep failed")

    def end(self) -> None:
        """Let a sweep end after its page; the next process that is elected begins anew."""
        self._over.set()

    def close(self) -> None:
        """Let go of the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _is_elected(self) -> bool:
        if self._lock is not None:
            return True
        lock = (self._site.settings.data / "scheduler.lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return False
        self._lock = lock
        return True

    def _reap(self) -> None:
        reap_lost(self._site)

    def _scan(self) -> None:
        staged.scan(self._site, self._launcher.refusal)

    def _post(self) -> None:
        staged.post_results(self._site)

    def _start(self) -> None:
        start_waiting(self._site)

    def _write_up(self) -> None:
        """Write the audit log up, once a minute at most."""
        if self._site.clock() < self._next_write_up_at:
            return
        with reading(self._site.engine) as session:
            is_due = audit_files.is_due(self._site, session)
        if is_due:
            with writing(self._site.engine) as session:
                audit_files.flush(self._site, session)
        self._next_write_up_at = self._site.clock() + _WRITE_UP_EVERY


def start_waiting(site: Site) -> None:
    """Start every waiting volley that nothing holds up any more, each in a transaction of its own."""
    with reading(site.engine) as session:
        ids = [volley.id for volley in volleys.waiting(session)]
    for volley_id in ids:
        try:
            with writing(site.engine) as session:
                verification.start(site, session, session.get_one(VolleyRow, volley_id, with_for_update=True))
        except Exception:  # noqa: BLE001 - one volley that can't start must not keep the others from it
            _log.exception("volley %s can't be started", volley_id)


def reap_lost(site: Site) -> list[str]:
    """End every job that lost its worker, each in a transaction of its own; return the ids of those that ended."""
    with reading(site.engine) as session:
        silent = [row.id for row in queue.lost(session, site.clock())]
    return [job_id for job_id in silent if _reap_one(site, job_id)]


def _reap_one(site: Site, job_id: str) -> bool:
    try:
        with writing(site.engine) as session:
            ended = endings.reap(site, session, job_id)
    except Exception:  # noqa: BLE001 - one job that can't be ended must not keep the others from it
        _log.exception("job %s lost its worker and can't be ended", job_id)
        return False
    return ended


@contextmanager
def ticking(site: Site) -> Iterator[None]:
    """Tick in the background until the block ends."""
    ticker = Ticker(site)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)  # a round that runs into the next one is no news
    scheduler = BackgroundScheduler(timezone="UTC")
    for job in (ticker.tick, ticker.sweep):  # each in a thread of its own
        scheduler.add_job(
            job, "interval", seconds=site.settings.tick, max_instances=1, coalesce=True, misfire_grace_time=None
        )
    scheduler.start()
    try:
        yield
    finally:
        ticker.end()
        scheduler.shutdown(wait=True)
        ticker.close()
