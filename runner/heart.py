"""A worker's hold on its job, kept up by a thread: it renews the lease and hears what should end the run."""

import threading
import time
from datetime import timedelta
from types import TracebackType

from runner import queue
from runner.queue import Lease, LeaseLost
from storage.database import reading, writing
from storage.site import Site


class Cancelled(Exception):
    """The job's owner asked for its end."""


class WorkerStopped(Exception):
    """This worker was told to stop, or its parent is gone."""


class Heart:
    """Beats while a run goes on; `check` is what every wait of the run calls."""

    def __init__(self, site: Site, lease: Lease, stop: threading.Event) -> None:
        self._site = site
        self._lease = lease
        self._stop = stop
        self._over = threading.Event()
        self._cancelled = False
        self._lost: Exception | None = None
        self._renewed_at = time.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heart", daemon=True)

    def __enter__(self) -> "Heart":
        """Start beating."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop beating; the lease then lasts as long as the last beat gave it."""
        self._over.set()
        self._thread.join()

    def check(self) -> None:
        """Raise if the run has to end.

        Raises:
            WorkerStopped, Cancelled, LeaseLost: why.
        """
        if self._stop.is_set():
            raise WorkerStopped
        if self._lost is not None:
            raise LeaseLost(f"The lease could not be renewed: {self._lost}") from self._lost
        if time.monotonic() - self._renewed_at > self._site.settings.lease:
            raise LeaseLost("The lease could not be renewed in time.")
        if self._cancelled:
            raise Cancelled

    def _beat(self) -> None:
        settings = self._site.settings
        while not self._over.wait(min(settings.tick, settings.lease / 3)):
            try:
                if time.monotonic() - self._renewed_at >= settings.lease / 3:
                    self._renew(timedelta(seconds=settings.lease))
                self._listen()
            except Exception as error:  # noqa: BLE001 - whatever it was, the run must hear of it and not go on unheld
                self._lost = error
                return

    def _renew(self, lease: timedelta) -> None:
        asked_at = time.monotonic()
        with writing(self._site.engine) as session:
            queue.renew(session, self._lease, now=self._site.clock(), lease=lease)
        self._renewed_at = asked_at

    def _listen(self) -> None:
        with reading(self._site.engine) as session:
            self._cancelled = queue.is_to_stop(session, self._lease, self._site.clock())
