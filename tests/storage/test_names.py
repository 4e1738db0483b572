"""Files that were there before names were compared get the form by which they are."""

from pathlib import Path

from alembic import command
from sqlalchemy import text

from storage.database import alembic_config, make_engine, migrate
from storage.paths import fold, parents


def test_the_migration_gives_every_file_its_folded_name(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/old.db")
    command.upgrade(alembic_config(engine), "0001")
    bucket = "INSERT INTO buckets VALUES ({n}, 'race/b{n}', 'alice', 0, '2026-11-29 12:00:00')"
    file = "INSERT INTO files VALUES (:bucket, :path, '0', 0, 0, NULL, '2026-11-29 12:00:00')"
    with engine.begin() as connection:
        for number in (1, 2):
            connection.execute(text(bucket.format(n=number)))
            for path in ("Dir/É.md", "dir/é.md", "straße"):  # twins that the old rules let in
                connection.execute(text(file), {"bucket": number, "path": path})
    migrate(engine)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT bucket_id, path, folded FROM files")).all()
    engine.dispose()
    assert len(found) == 6
    assert all(folded == fold(path) for _, path, folded in found)


def test_twins_fold_alike_and_others_do_not() -> None:
    assert fold("Dir/É.MD") == fold("dir/e\u0301.md")
    assert fold("STRASSE") == fold("straße")
    assert len({fold(name) for name in ("a", "b", "a/b", "ab", "a b", "a-b")}) == 6
    assert parents("a/b/c") == ["a", "a/b"]
    assert parents("a") == []
