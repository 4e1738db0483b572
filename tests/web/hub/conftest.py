"""A client of the Hub's routes that speaks the upload protocol step by step."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from agents import tokens
from agents.rows import UserRow
from storage.database import writing
from storage.site import Site
from storage.xet.hashes import to_text
from storage.xet.shards import serialise
from tests.storage.xet.builders import claim, xorb
from tests.web.hub.serve_hub import hub_app


@dataclass
class Access:
    """An access token of the store."""

    base: str
    headers: dict[str, str]


@dataclass
class Hub:
    """The client, and a token for each user."""

    http: TestClient
    site: Site
    users: dict[str, str] = field(default_factory=dict)

    def add_user(self, name: str) -> None:
        with writing(self.site.engine) as session:
            session.add(UserRow(name=name, created_at=self.site.clock()))
            session.flush()
            self.users[name] = tokens.issue(session, name, secret=self.site.secret, now=self.site.clock())

    def call(self, user: str | None, method: str, path: str, **options: Any) -> Response:
        headers = options.pop("headers", {})
        if user:
            headers = headers | {"Authorization": f"Bearer {self.users[user]}"}
        return self.http.request(method, path, headers=headers, **options)

    def create(self, user: str, bucket: str, **body: Any) -> None:
        assert self.call(user, "POST", f"/api/buckets/{bucket}", json=body).status_code == 200

    def access(self, user: str | None, bucket: str, mode: str = "write") -> Access:
        answer = self.call(user, "GET", f"/api/buckets/{bucket}/xet-{mode}-token")
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return Access(body["casUrl"].removeprefix("http://testserver"), bearer(body["accessToken"]))

    def batch(self, user: str | None, bucket: str, *lines: dict[str, Any]) -> Response:
        body = "".join(json.dumps(line) + "\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        return self.call(user, "POST", f"/api/buckets/{bucket}/batch", content=body, headers=headers)

    def send_xorb(self, access: Access, pieces: list[bytes]) -> Response:
        raw, _, name = xorb(pieces)
        return self.http.post(f"{access.base}/v1/xorbs/default/{to_text(name)}", content=raw, headers=access.headers)

    def send_shard(self, access: Access, raw: bytes, path: str = "/v1/shards") -> Response:
        return self.http.post(access.base + path, content=raw, headers=access.headers)

    def upload(self, user: str, bucket: str, path: str, pieces: list[bytes]) -> str:
        """Upload a file as the client does; return its hash."""
        access = self.access(user, bucket)
        _, table, _ = xorb(pieces)
        assert self.send_xorb(access, pieces).status_code == 200
        assert self.send_shard(access, serialise([claim(table)])).status_code == 200
        digest = to_text(claim(table).digest)
        answer = self.batch(user, bucket, add(path, digest))
        assert answer.status_code == 200, answer.text
        return digest

    def tree(self, user: str | None, bucket: str, folder: str = "", **params: Any) -> list[dict[str, Any]]:
        answer = self.call(user, "GET", f"/api/buckets/{bucket}/tree{folder}", params=params)
        assert answer.status_code == 200, answer.text
        return list(answer.json())


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def add(path: str, digest: str, mtime: int = 0) -> dict[str, Any]:
    return {"type": "addFile", "path": path, "xetHash": digest, "mtime": mtime}


def copy(path: str, digest: str, source: str) -> dict[str, Any]:
    return {
        "type": "copyFile",
        "path": path,
        "xetHash": digest,
        "mtime": 0,
        "sourceRepoType": "bucket",
        "sourceRepoId": source,
    }


def delete(path: str) -> dict[str, Any]:
    return {"type": "deleteFile", "path": path}


@pytest.fixture
def hub(site: Site) -> Iterator[Hub]:
    """The routes over a whole site, with the users alice and bob."""
    with TestClient(hub_app(site)) as http:
        made = Hub(http, site)
        made.add_user("alice")
        made.add_user("bob")
        yield made
