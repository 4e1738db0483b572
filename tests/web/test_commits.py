"""An answer goes out after its transaction is committed, never before."""

from fastapi.testclient import TestClient
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlmodel import select

from agents import accounts, tokens
from board.rows import PostRow
from storage.database import reading, writing
from storage.site import Site
from web.app import create_app


def test_a_commit_that_fails_is_never_answered_as_done(site: Site) -> None:
    with writing(site.engine) as session:
        accounts.add(session, "ada", now=site.clock())
        token = tokens.issue(session, "ada", secret=site.secret, now=site.clock())

    def refuse(_connection: object) -> None:
        raise OperationalError("COMMIT", {}, Exception("disk I/O error"))

    client = TestClient(create_app(site))
    head = {"Authorization": f"Bearer {token}"}
    event.listen(site.engine, "commit", refuse)
    answer = client.post("/v1/messages", json={"agent_id": "human-ada", "body": "Hello."}, headers=head)
    event.remove(site.engine, "commit", refuse)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "UNAVAILABLE")
    with reading(site.engine) as session:
        assert session.exec(select(PostRow)).all() == []
    assert (
        client.post("/v1/messages", json={"agent_id": "human-ada", "body": "Hello."}, headers=head).status_code == 201
    )
