"""A served race for tests: the real application over a site where two people race an agent each."""

from dataclasses import dataclass

from fastapi.testclient import TestClient
from httpx import Response
from sqlmodel import Session

from board import results
from board.verdicts import State, Verdict
from storage.database import writing
from storage.site import Site
from tests.board import racers
from web.app import create_app


@dataclass
class Track:
    """The application's client and the tokens of ann (agents `ant` and `ape`) and bob (agent `bee`)."""

    site: Site
    client: TestClient
    tokens: dict[str, str]

    def get(self, path: str, **params: str) -> Response:
        return self.client.get(path, params=params)

    def ok(self, path: str, **params: str) -> dict[str, object]:
        """Read JSON of an answer that must be 200."""
        response = self.get(path, **params)
        assert response.status_code == 200, response.text
        found: dict[str, object] = response.json()
        return found

    def post(self, user: str, source: str, path: str = "/v1/results") -> Response:
        headers = {"Authorization": f"Bearer {self.tokens[user]}"} if user else {}
        return self.client.post(path, json={"source": source}, headers=headers)

    def stage(self, agent: str, text: str, path: str = "r.md") -> str:
        with writing(self.site.engine) as session:
            return racers.stage(self.site, session, agent, path, text)

    def race(self, user: str, agent: str, path: str = "r.md", **fields: str) -> str:
        """Stage and post a result; return its file name."""
        response = self.post(user, self.stage(agent, racers.result_text(**fields), path))
        assert response.status_code == 201, response.text
        return str(response.json()["filename"])

    def verify(self, filename: str, state: State, **fields: object) -> None:
        verdict = Verdict(state=state, hardware="cpu", **fields)  # type: ignore[arg-type]
        with writing(self.site.engine) as session:
            results.record_verdict(self.site, session, filename, verdict)


def lay(site: Site) -> Track:
    """Open a track on `site`."""
    with writing(site.engine) as session:
        tokens = _enlist(site, session)
    return serve(site, tokens)


def serve(site: Site, tokens: dict[str, str]) -> Track:
    """Serve `site` as it is."""
    return Track(site, TestClient(create_app(site)), tokens)


def _enlist(site: Site, session: Session) -> dict[str, str]:
    racers.enlist(site, session, "ape", "ann")
    return {"ann": racers.enlist(site, session, "ant", "ann"), "bob": racers.enlist(site, session, "bee", "bob")}
