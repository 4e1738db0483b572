"""The unmodified `hf` command shows why an upload is over its owner's quota."""

from pathlib import Path

import pytest

from agents import quotas
from agents.quotas import bytes_of
from storage.database import writing
from storage.site import open_site
from tests.storage.xet.builders import noise
from tests.web.hub.test_hf_client import BUCKET, Client, Server, alice, server

__all__ = ["alice", "server"]


def limit(server: Server, budget: str, most: int) -> None:
    site = open_site(server.settings)
    with writing(site.engine) as session:
        kind = next(kind for kind in bytes_of(site.challenge.limits, "alice") if kind.name == budget)
        quotas.set_limit(session, kind, most, actor="test", reason="a test", now=site.clock())
    site.engine.dispose()


def test_the_line_says_what_is_held_and_what_is_allowed(alice: Client, server: Server, tmp_path: Path) -> None:
    old, new = tmp_path / "old.bin", tmp_path / "new.bin"
    old.write_bytes(noise(900_000, seed=1))
    new.write_bytes(noise(950_000, seed=2))
    limit(server, "bucket_bytes", 1_000_000)
    alice.buckets("cp", old, f"{BUCKET}/old.bin")
    said = alice.buckets("cp", new, f"{BUCKET}/new.bin", ok=False)
    expected = (
        "new.bin: over quota: alice's buckets hold 900,000 bytes of files, "
        "this would make it 1,850,000, and 1,000,000 are allowed"
    )
    assert expected in said.replace("\n", " ")
    assert "Traceback" not in said
    alice.buckets("cp", new, f"{BUCKET}/old.bin")  # the same bytes in the old one's place


@pytest.mark.parametrize(("length", "sent"), [(1_100_000, True), (3_000_000, False)])
def test_a_hopeless_upload_is_refused_before_it_is_a_file(
    alice: Client, server: Server, tmp_path: Path, length: int, sent: bool
) -> None:
    file = tmp_path / "huge.bin"
    file.write_bytes(noise(length))
    limit(server, "bucket_bytes", 1_000_000)
    said = alice.buckets("cp", file, f"{BUCKET}/huge.bin", ok=False)
    assert ("Over quota: this upload has at least 1,100,000 bytes of files" in said) is sent, said
    assert sent or "413" in said
    xorbs = list((server.settings.data / "store" / "xorbs").rglob("*"))
    assert any(path.is_file() for path in xorbs) is sent
