"""Content hashes, caps, and what is kept of a submission."""

from pathlib import Path

import pytest
from sqlalchemy import update
from sqlmodel import col

from runner import snapshots
from runner.manifests import BadManifest
from runner.snapshots import SubmissionNotFound, SubmissionTooLarge, content_hash
from storage.buckets import Delete, Put
from storage.database import writing
from storage.errors import InvalidPath
from storage.local.rows import FileRow
from storage.paths import Source
from storage.site import Site
from tests.runner.conftest import Owner


def test_the_hash_depends_on_paths_contents_and_sizes_and_not_on_order() -> None:
    one, two = ("a", "d1", 1), ("b", "d2", 2)
    assert content_hash([one, two]) == content_hash([two, one])
    others = [[one], [two], [("a", "d2", 1), two], [("a", "d1", 2), two], [("ab", "d1", 1), two]]
    assert len({content_hash([one, two]), *map(content_hash, others)}) == 6


def test_the_same_content_elsewhere_has_the_same_hash(site: Site, owner: Owner) -> None:
    places = [owner.upload("honest"), owner.upload("honest", to="copies/of/it")]
    with writing(site.engine) as session:
        hashes = {snapshots.take(site, session, Source(owner.bucket, place)).content_hash for place in places}
    assert len(hashes) == 1


def test_a_snapshot_outlives_its_source_and_is_written_read_only(site: Site, owner: Owner, tmp_path: Path) -> None:
    prefix = owner.upload("honest", changes={"sub/deep.bin": bytes(range(256)) * 1000})
    with writing(site.engine) as session:
        snapshot = snapshots.take(site, session, Source(owner.bucket, prefix))
        for file in site.buckets(session).list(owner.bucket, prefix):
            site.buckets(session).apply(owner.bucket, [Delete(file.path)])
    snapshots.materialise(site, snapshot.content_hash, tmp_path / "out", lambda: None)
    assert (tmp_path / "out/sub/deep.bin").read_bytes() == bytes(range(256)) * 1000
    assert {path.stat().st_mode & 0o222 for path in (tmp_path / "out").rglob("*") if path.is_file()} == {0}
    assert snapshot.files == 4


def test_caps_a_missing_manifest_and_an_empty_prefix_are_named(site: Site, owner: Owner) -> None:
    prefix = owner.upload("honest")
    with writing(site.engine) as session:
        source = Source(owner.bucket, prefix)
        for change in ({"max_sync_files": 2}, {"max_sync_bytes": 100}):
            object.__setattr__(site, "settings", site.settings.model_copy(update=change))
            with pytest.raises(SubmissionTooLarge):
                snapshots.take(site, session, source)
            site.settings.__dict__.update({"max_sync_files": 100, "max_sync_bytes": 10**9})
        with pytest.raises(SubmissionNotFound):
            snapshots.take(site, session, Source(owner.bucket, "submissions/none"))
        site.buckets(session).apply(owner.bucket, [Put("bare/serve.py", b"pass")])
        with pytest.raises(BadManifest, match=r"holds no manifest\.json"):
            snapshots.take(site, session, Source(owner.bucket, "bare"))
        assert site.buckets(session).list(site.audit) == []


def test_a_file_that_is_also_a_folder_is_refused_where_the_store_took_it(site: Site, owner: Owner) -> None:
    prefix = owner.upload("honest", changes={"a": b"1", "c/b": b"2"})
    with writing(site.engine) as session:
        moved = update(FileRow).where(col(FileRow.path) == f"{prefix}/c/b").values(path=f"{prefix}/a/b")
        session.execute(moved)  # ours refuses it; a Hub may not
        with pytest.raises(InvalidPath, match="a file and a folder"):
            snapshots.take(site, session, Source(owner.bucket, prefix))
