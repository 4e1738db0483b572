"""One Paddock: its settings, race, database, store and secret, opened once by each entry point."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from sqlalchemy import Engine
from sqlmodel import Session

from storage.buckets import SYSTEM, BucketStore
from storage.challenge import Challenge, load_challenge
from storage.clock import Clock, utc_now
from storage.database import make_engine, migrate, writing
from storage.local.blobs import Blobs
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.settings import Settings


@dataclass(frozen=True)
class Site:
    """What every entry point (web, worker, command line) works with."""

    settings: Settings
    challenge: Challenge
    engine: Engine
    blobs: Blobs
    secret: bytes
    clock: Clock = utc_now

    def buckets(self, session: Session) -> BucketStore:
        """Bind the bucket store that the challenge names to a session."""
        if self.challenge.storage.backend == "hub":
            from storage.hub.buckets import connect  # the Hub's client takes a third of a second to import

            return connect(self.challenge.storage, own=frozenset({self.central, self.audit}))
        return LocalBuckets(session, self.blobs, clock=self.clock)

    @property
    def central(self) -> BucketName:
        """The shared record, written by the server alone."""
        return BucketName(self.challenge.org, f"{self.challenge.slug}-main-bucket")

    @property
    def audit(self) -> BucketName:
        """The private bucket of verification runs and of submissions' snapshots."""
        return BucketName(f"{self.challenge.org}-admin", f"{self.challenge.slug}-audit")

    def scratch(self, agent_id: str) -> BucketName:
        """The bucket that `agent_id` writes."""
        return BucketName(self.challenge.org, f"{self.challenge.slug}-{agent_id}")

    @property
    def private(self) -> Path:
        """Folder of the private prompts and reference records; readable by us alone."""
        return self.settings.data / "private"


def open_site(settings: Settings, *, clock: Clock = utc_now) -> Site:
    """Open a data folder, making, migrating and completing it as needed.

    Raises:
        BadChallenge: the race's file is wrong.
    """
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    settings.data.chmod(0o700)  # the store holds private buckets' bytes
    site = Site(
        settings=settings,
        challenge=load_challenge(settings.challenge),
        engine=make_engine(settings.sqlalchemy_url),
        blobs=Blobs(settings.data / "store"),
        secret=_secret(settings.data / "secret.key"),
        clock=clock,
    )
    site.private.mkdir(mode=0o700, exist_ok=True)
    with _alone(settings.data / "opening.lock"):
        migrate(site.engine)
        _make_buckets(site)
    return site


def _make_buckets(site: Site) -> None:
    """Make the server's own buckets that aren't there yet."""
    with writing(site.engine) as session:
        buckets = site.buckets(session)
        for name, private in ((site.central, False), (site.audit, True)):
            if buckets.find(name) is None:
                buckets.create(name, owner=SYSTEM, private=private)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time through: two that open a new folder must not both make its tables and buckets."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _secret(path: Path) -> bytes:
    """Read the folder's secret, made once; whole from the first moment, whoever else opens the folder now."""
    if not path.exists():
        with NamedTemporaryFile(dir=path.parent) as fresh:
            fresh.write(secrets.token_bytes(32))
            fresh.flush()
            os.fsync(fresh.fileno())
            with suppress(FileExistsError):  # another process was first: its secret stands
                os.link(fresh.name, path)
    return path.read_bytes()
