"""The move to roles and scopes keeps what people were."""

from pathlib import Path

from alembic import command
from sqlalchemy import text
from sqlmodel import select

from agents.roles import Role
from agents.rows import TokenRow, UserRow
from agents.scopes import DEFAULT, read_scopes
from storage.database import alembic_config, make_engine, migrate, reading, writing

AT = "2026-11-29 12:00:00"


def test_organizers_stay_organizers_and_tokens_keep_what_they_could_do(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/old.db")
    command.upgrade(alembic_config(engine), "0003")
    with writing(engine) as session:
        for name, is_organizer in (("ada", False), ("olga", True)):
            row = {"name": name, "flag": is_organizer, "at": AT}
            session.execute(text("INSERT INTO users (name, is_organizer, created_at) VALUES (:name, :flag, :at)"), row)
        session.execute(
            text("INSERT INTO tokens (id, user, digest, label, created_at) VALUES ('tok_1', 'ada', 'x', '', :at)"),
            {"at": AT},
        )
    migrate(engine)
    with reading(engine) as session:
        roles = {row.name: Role(row.role) for row in session.exec(select(UserRow))}
        assert roles == {"ada": Role.PERSON, "olga": Role.ORGANIZER}
        assert read_scopes(session.get_one(TokenRow, "tok_1").scopes) == DEFAULT
    engine.dispose()


def test_the_move_can_be_taken_back(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/new.db")
    command.upgrade(alembic_config(engine), "0004")
    with writing(engine) as session:
        for name, role in (("ada", "person"), ("olga", "organizer"), ("opal", "operator")):
            row = {"name": name, "role": role, "at": AT}
            session.execute(text("INSERT INTO users (name, role, created_at) VALUES (:name, :role, :at)"), row)
        session.execute(
            text("INSERT INTO tokens (id, user, digest, label, created_at) VALUES ('tok_1', 'ada', 'x', '', :at)"),
            {"at": AT},
        )
    command.downgrade(alembic_config(engine), "0003")
    with reading(engine) as session:
        flags = session.execute(text("SELECT name, is_organizer FROM users ORDER BY name")).all()
        assert [(name, bool(flag)) for name, flag in flags] == [("ada", False), ("olga", True), ("opal", True)]
    engine.dispose()
