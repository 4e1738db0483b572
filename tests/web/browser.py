"""A browser as the server sees it: it sends Origin with forms, and the word that stands in the page."""

import re
from dataclasses import dataclass

from fastapi.testclient import TestClient
from httpx import Response

from storage.site import Site

_WORD = re.compile(r'name="csrf" value="([0-9a-f]{64})"')
_TOKEN = re.compile(r"<code>(pdk_[A-Za-z0-9]{38})</code>")


@dataclass
class Browser:
    """One browser's tabs; cookies are the client's."""

    client: TestClient
    site: Site

    def get(self, path: str) -> Response:
        return self.client.get(path, headers={"accept": "text/html"})

    def post(self, path: str, fields: dict[str, str]) -> Response:
        """Send a form as it is, from a page of this site."""
        headers = {"origin": str(self.client.base_url).rstrip("/"), "accept": "text/html"}
        return self.client.post(path, data=fields, headers=headers)

    def form(self, path: str, **fields: str) -> Response:
        """Send a form with the word of this browser's session."""
        return self.post(path, {"csrf": self.word(), **fields})

    def word(self) -> str:
        found = _WORD.search(self.get("/queue").text)
        assert found, "nobody is signed in"
        return found[1]

    def sign_in(self, token: str, *, back: str = "") -> Response:
        return self.post("/signin", {"token": token, "next": back})

    def token_in(self, page: str) -> str:
        found = _TOKEN.search(page)
        assert found, page
        return found[1]
