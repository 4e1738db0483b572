"""Who follows the board's events, and the one look at the database a second that serves all of them.

Every web process looks for itself, so an event reaches the readers of each, whichever process (or the worker, or a
command) caused it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from storage.errors import TooMany

LOOK_EVERY_S = 1.0
MAX_PER_CLIENT = 20
MAX_IN_ALL = 500


class Watch:
    """Wakes followers when the sequence of events has grown; one lives in each application."""

    def __init__(self, newest: Callable[[], int]) -> None:
        """Watch what `newest` tells, a call that blocks for as long as a short query does."""
        self._newest = newest
        self._clients: Counter[str] = Counter()
        self._grown = asyncio.Condition()
        self._seen = 0
        self._looking: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self.is_closed = False

    @contextmanager
    def follower(self, client: str) -> Iterator[None]:
        """Count one follower of `client` for as long as the block lasts.

        Raises:
            TooMany: the client, or all clients together, have as many as there may be.
        """
        if not (self._clients[client] < MAX_PER_CLIENT and self._clients.total() < MAX_IN_ALL):
            raise TooMany(
                f"At most {MAX_PER_CLIENT} streams a client and {MAX_IN_ALL} in all are open at once.",
                retry_after_s=30,
                hint="Close one, or ask GET /v1/messages now and then.",
            )
        self._clients[client] += 1
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield
        finally:
            self._clients[client] -= 1
            self._clients += Counter()  # forgets clients who have none left
            if not self._clients and self._looking:
                self._looking.cancel()

    async def grown_past(self, last: int, *, within_s: float) -> bool:
        """Wait for an event after `last` or the server's end; False if neither came within `within_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s), self._grown:
                return await self._grown.wait_for(lambda: self._seen > last or self.is_closed)
        return False

    def close(self) -> None:
        """End every stream: the server stops. Called on the loop's own thread."""
        self.is_closed = True
        if self._looking:
            self._looking.cancel()
        self._closing = asyncio.create_task(self._wake())

    async def _look(self) -> None:
        while not self.is_closed:
            self._seen = await asyncio.to_thread(self._newest)
            await self._wake()
            await asyncio.sleep(LOOK_EVERY_S)

    async def _wake(self) -> None:
        async with self._grown:
            self._grown.notify_all()
