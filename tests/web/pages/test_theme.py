"""The switch between light and dark is a form and a cookie."""

import pytest
from fastapi.testclient import TestClient


def test_the_choice_is_kept_and_set_by_the_server(client: TestClient) -> None:
    answer = client.post("/theme", data={"theme": "dark"}, headers={"referer": "http://testserver/queue"})
    assert answer.url.path == "/queue"
    assert '<html lang="en" data-theme="dark">' in answer.text
    back = client.post("/theme", data={"theme": "system"})
    assert '<html lang="en">' in back.text


@pytest.mark.parametrize(
    "referer",
    ["http://elsewhere.example/queue", "//elsewhere.example", "javascript:alert(1)", "http://testserver//x.y/"],
)
def test_the_form_never_leads_away_from_here(client: TestClient, referer: str) -> None:
    answer = client.post("/theme", data={"theme": "dark"}, headers={"referer": referer}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_a_cookie_that_is_no_theme_is_ignored(client: TestClient) -> None:
    answer = client.get("/queue", headers={"cookie": 'theme="><script>'})
    assert '<html lang="en">' in answer.text
