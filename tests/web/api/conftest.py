"""A client of the whole application, over a real site."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from agents.roles import Role
from storage.database import reading, writing
from storage.site import Site
from tests.people import add_agent, add_bucket, add_files, add_person
from web.app import create_app


@dataclass
class Api:
    """A client of the API, and what a person does beside it."""

    client: TestClient
    site: Site

    def person(self, name: str, *, is_organizer: bool = False, role: Role = Role.PERSON) -> dict[str, str]:
        """Add a person; returns the headers of their calls, which may be all that the role may."""
        with writing(self.site.engine) as session:
            token = add_person(self.site, session, name, role=Role.ORGANIZER if is_organizer else role)
        return {"Authorization": f"Bearer {token}"}

    def bucket(self, agent_id: str, *, owner: str, handshake: str | None = None, private: bool = False) -> None:
        with writing(self.site.engine) as session:
            add_bucket(self.site, session, agent_id, owner=owner, handshake=handshake, private=private)

    def agent(self, agent_id: str, headers: dict[str, str]) -> None:
        with writing(self.site.engine) as session:
            add_agent(self.site, session, agent_id, headers["Authorization"].removeprefix("Bearer "))

    def upload(self, agent_id: str, path: str, text: str | bytes) -> str:
        """Put a file into a scratch bucket; returns its source URI."""
        with writing(self.site.engine) as session:
            add_files(self.site, session, agent_id, {path: text})
        return f"{self.site.scratch(agent_id).uri}/{path}"

    def files(self) -> dict[str, str]:
        """Every file of the central bucket, with its digest."""
        with reading(self.site.engine) as session:
            return {file.path: file.digest for file in self.site.buckets(session).list(self.site.central)}

    def read(self, path: str) -> bytes:
        with reading(self.site.engine) as session:
            return self.site.buckets(session).read(self.site.central, path)


@pytest.fixture
def app(site: Site) -> FastAPI:
    return create_app(site)


@pytest.fixture
def api(app: FastAPI, site: Site) -> Iterator[Api]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Api(client, site)
