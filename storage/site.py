"""One Paddock: its settings, race, database, store and secret, opened once by each entry point."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

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
        """Bind the bucket store to a session."""
        return LocalBuckets(session, self.blobs, clock=self.clock)

    @property
    def central(self) -> BucketName:
        """The shared record, written by the server alone."""
        return BucketName(self.challenge.org, f"{self.challenge.slug}-main-bucket")

    @property
    def audit(self) -> BucketName:
        """The private bucket of verification runs and the audit log."""
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
    migrate(site.engine)
    with writing(site.engine) as session:
        buckets = site.buckets(session)
        for name, private in ((site.central, False), (site.audit, True)):
            if buckets.find(name) is None:
                buckets.create(name, owner=SYSTEM, private=private)
    return site


def _secret(path: Path) -> bytes:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(32))
        file.flush()
        os.fsync(file.fileno())
    return path.read_bytes()
