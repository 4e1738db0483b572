"""Who may do what: every route of the application, for everybody, cell by cell.

A route without a line here fails the test. A cell says: `ok` (done, or sent on), `in` (sent to the sign-in page), the
refusals 401, 403 and 404, or `bad`: let through the gate, and refused for what was asked.

The columns: a visitor, a person, the owner of what the call names, the owner of something else, an organizer, an
operator, the owner (or operator) with a token that lacks the scope named before the cells, and the owner with a revoked
token. Where no token is looked at, all are alike. Pages are asked with session cookies, the rest with bearers.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from httpx import Response

from agents.scopes import Scope
from storage.settings import Settings
from storage.site import Site
from tests.web import cast as casting
from tests.web.cast import ACTORS, Cast, cookies_of, unchanging
from web.app import create_app

TABLE = """
#                                                                      lacks   vis per own oth org opr nsc rev
GET    /v1/openapi.json                                                -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1                                                             -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/healthz                                                     -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/agents/register                                             post    401 403 ok  403 403 403 403 401
GET    /v1/agents                                                      -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/agents/{agent_id}                                           -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /api/agents                                                     -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/messages                                                    post    401 403 ok  403 403 403 403 401
GET    /v1/messages                                                    -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/messages/{filename}                                         -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /api/messages                                                   -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/inbox/{handle}                                              -       ok  ok  ok  ok  ok  ok  ok  ok
PUT    /v1/inbox/{handle}/cursor                                       post    401 403 ok  403 403 403 403 401
GET    /v1/me                                                          -       401 ok  ok  ok  ok  ok  ok  401
POST   /v1/results                                                     post    401 403 ok  403 403 403 403 401
GET    /v1/results                                                     -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/results/{filename}                                          -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /api/verification                                               -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /api/results                                                    -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/leaderboard                                                 -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/digest                                                      -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/jobs:run                                                    run     401 403 ok  403 403 403 403 401
GET    /v1/jobs                                                        read    ok  ok  ok  ok  ok  ok  403 401
GET    /v1/jobs/{job_id}                                               read    ok  ok  ok  ok  ok  ok  403 401
POST   /v1/jobs/{job_id}:cancel                                        run     401 403 ok  403 ok  ok  403 401
GET    /v1/me/tokens                                                   read    401 ok  ok  ok  ok  ok  403 401
POST   /v1/me/tokens                                                   post    401 ok  ok  ok  ok  ok  403 401
POST   /v1/me/tokens/{token_id}:rotate                                 post    401 404 ok  404 404 404 403 401
DELETE /v1/me/tokens/{token_id}                                        post    401 404 ok  404 404 404 403 401
GET    /v1/users                                                       operate 401 403 403 403 403 ok  403 401
POST   /v1/users/{user}/sign-in-links                                  operate 401 403 403 403 403 ok  403 401
GET    /v1/audit                                                       operate 401 403 403 403 403 ok  403 401
POST   /v1/taskforces                                                  post    401 403 ok  403 403 403 403 401
GET    /v1/taskforces                                                  -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/taskforces/{name}                                           -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/taskforces/{name}/files                                     post    401 403 ok  403 403 403 403 401
GET    /v1/taskforces/{name}/notes                                     -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/taskforces/{name}/files                                     -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/taskforces/{name}/files/{path:path}                         -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/traces                                                      post    401 403 ok  403 403 403 403 401
GET    /v1/traces                                                      -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/traces/{agent}/{session_id}                                 -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/stats                                                       -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/artifacts:sync                                              post    401 403 ok  403 403 403 403 401
POST   /v1/shared-resources:sync                                       post    401 403 ok  403 403 403 403 401
GET    /v1/threads/{filename}                                          -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /v1/messages/{filename}:retract                                 post    401 403 ok  403 403 403 403 401
POST   /v1/results/{filename}:retract                                  post    401 403 ok  403 403 403 403 401
POST   /v1/moderation:retract                                          post    401 403 ok  403 403 403 403 401
POST   /v1/moderation:hide                                             post    401 403 403 403 ok  ok  403 401
POST   /v1/moderation:unhide                                           post    401 403 403 403 bad bad 403 401
POST   /v1/messages/{filename}:hide                                    post    401 403 403 403 ok  ok  403 401
POST   /v1/results/{filename}:hide                                     post    401 403 403 403 ok  ok  403 401
POST   /v1/messages/{filename}:unhide                                  post    401 403 403 403 bad bad 403 401
POST   /v1/results/{filename}:unhide                                   post    401 403 403 403 bad bad 403 401
GET    /v1/moderation                                                  -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/search                                                      -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/events                                                      -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /feeds/board.atom                                               -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /feeds/results.atom                                             -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /feeds/verdicts.atom                                            -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /feeds/agents/{agent_id}.atom                                   -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /v1/me/quotas                                                   read    401 ok  ok  ok  ok  ok  403 401
GET    /v1/quotas                                                      read    401 403 403 403 403 ok  403 401
GET    /v1/quotas/{handle}                                             read    401 403 ok  403 403 ok  403 401
PUT    /v1/quotas/{handle}/{budget}                                    operate 401 403 403 403 403 ok  403 401
POST   /v1/quotas/{handle}/{budget}:reset                              operate 401 403 403 403 403 ok  403 401
GET    /api/whoami-v2                                                  -       401 ok  ok  ok  ok  ok  ok  401
GET    /api/agent-harnesses                                            -       404 404 404 404 404 404 404 404
POST   /api/buckets/{namespace}/{name}                                 bucket  401 403 ok  403 403 403 403 401
GET    /api/buckets/{namespace}/{name}                                 read    404 404 ok  404 404 404 403 401
GET    /api/buckets/{namespace}                                        read    ok  ok  ok  ok  ok  ok  403 401
DELETE /api/buckets/{namespace}/{name}                                 bucket  401 404 ok  404 404 404 403 401
PUT    /api/buckets/{namespace}/{name}/settings                        bucket  401 404 ok  404 404 404 403 401
POST   /api/repos/move                                                 bucket  401 404 ok  404 404 404 403 401
GET    /api/buckets/{namespace}/{name}/tree/{prefix:path}              read    404 404 ok  404 404 404 403 401
GET    /api/buckets/{namespace}/{name}/tree                            read    404 404 ok  404 404 404 403 401
POST   /api/buckets/{namespace}/{name}/paths-info                      read    404 404 ok  404 404 404 403 401
POST   /api/buckets/{namespace}/{name}/batch                           bucket  401 404 ok  404 404 404 403 401
HEAD   /buckets/{namespace}/{name}/resolve/{path:path}                 read    404 404 ok  404 404 404 403 401
GET    /buckets/{namespace}/{name}/resolve/{path:path}                 read    404 404 ok  404 404 404 403 401
GET    /api/buckets/{namespace}/{name}/xet-write-token                 bucket  401 404 ok  404 404 404 403 401
GET    /api/buckets/{namespace}/{name}/xet-read-token                  read    404 404 ok  404 404 404 403 401
GET    /cas/{generation}/{bucket_id}/v1/chunks/{prefix}/{digest}       read    401 401 404 401 401 401 404 401
POST   /cas/{generation}/{bucket_id}/v1/xorb-grants/{prefix}/{digest}  bucket  401 401 404 401 401 401 403 401
POST   /cas/{generation}/{bucket_id}/v1/xorbs/{prefix}/{digest}        bucket  401 401 bad 401 401 401 403 401
POST   /cas/{generation}/{bucket_id}/v2/shards                         bucket  401 401 bad 401 401 401 403 401
POST   /cas/{generation}/{bucket_id}/shards                            bucket  401 401 bad 401 401 401 403 401
POST   /cas/{generation}/{bucket_id}/v1/shards                         bucket  401 401 bad 401 401 401 403 401
POST   /cas/{generation}/{bucket_id}/v1/telemetry                      bucket  401 401 ok  401 401 401 ok  401
GET    /cas/{generation}/{bucket_id}/v2/reconstructions/{digest}       read    401 401 404 401 401 401 404 401
GET    /cas/{generation}/{bucket_id}/v1/reconstructions/{digest}       read    401 401 404 401 401 401 404 401
GET    /cas/{generation}/{bucket_id}/xorbs/{digest}                    -       bad bad bad bad bad bad bad bad
POST   /mcp                                                            -       ok  ok  ok  ok  ok  ok  ok  401
GET    /artifacts/{path:path}                                          -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /docs                                                           -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /                                                               -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /t/{filename}                                                   -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /leaderboard                                                    -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /r/{filename}                                                   -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /agents                                                         -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /agents/{agent_id}                                              -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /queue                                                          -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /jobs/{job_id}                                                  -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /p/{name}.md                                                    -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /p/{name}.json                                                  -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /p/{name}                                                       -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /llms.txt                                                       -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /skill.md                                                       -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /theme                                                          -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /signin                                                         -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /signin                                                         -       401 401 401 401 401 401 401 401
GET    /signin/link/{secret}                                           -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /signin/link/{secret}                                           -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /signout                                                        -       401 ok  ok  ok  ok  ok  ok  401
POST   /signout/everywhere                                             -       401 ok  ok  ok  ok  ok  ok  401
GET    /account                                                        -       in  ok  ok  ok  ok  ok  ok  in
POST   /account/tokens                                                 post    401 ok  ok  ok  ok  ok  403 401
POST   /account/tokens/{token_id}/rotate                               post    401 404 ok  404 404 404 403 401
POST   /account/tokens/{token_id}/revoke                               post    401 404 ok  404 404 404 403 401
POST   /account/sessions/{session_id}/end                              post    401 404 ok  404 404 404 403 401
GET    /audit                                                          operate in  403 403 403 403 ok  403 in
GET    /quotas                                                         operate in  403 403 403 403 ok  403 in
GET    /quotas/{handle}                                                -       in  403 ok  403 403 ok  ok  in
POST   /quotas/{handle}                                                operate 401 403 403 403 403 bad 403 401
GET    /moderation                                                     -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /search                                                         -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /buckets/{namespace}/{name}                                     read    404 404 ok  404 404 404 403 401
GET    /buckets/{namespace}/{name}/tree                                read    404 404 ok  404 404 404 403 401
GET    /buckets/{namespace}/{name}/tree/{path:path}                    read    404 404 ok  404 404 404 403 401
GET    /post                                                           -       in  ok  ok  ok  ok  ok  ok  in
POST   /post                                                           post    401 ok  ok  ok  ok  ok  403 401
POST   /post/preview                                                   post    401 ok  ok  ok  ok  ok  403 401
POST   /moderation/retract                                             post    401 403 ok  403 403 403 403 401
POST   /moderation/hide                                                post    401 403 403 403 ok  ok  403 401
POST   /moderation/unhide                                              post    401 403 403 403 bad bad 403 401
POST   /jobs/{job_id}/cancel                                           run     401 403 ok  403 ok  ok  403 401
GET    /inbox                                                          -       in  ok  ok  ok  ok  ok  ok  in
GET    /inbox/{handle}                                                 -       ok  ok  ok  ok  ok  ok  ok  ok
POST   /inbox/{handle}                                                 post    401 403 ok  403 403 403 403 401
GET    /taskforces                                                     -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /taskforces/{name}                                              -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /stats                                                          -       ok  ok  ok  ok  ok  ok  ok  ok
GET    /desk                                                           operate in  403 403 403 403 ok  403 in
POST   /desk/people                                                    operate 401 403 403 403 403 ok  403 401
POST   /desk/people/{user}/link                                        operate 401 403 403 403 403 ok  403 401
POST   /desk/people/{user}/role                                        operate 401 403 403 403 403 ok  403 401
GET    /join                                                           -       ok  ok  ok  ok  ok  ok  ok  ok
ANY    /static                                                         -       ok  ok  ok  ok  ok  ok  ok  ok
"""

PROGRAMS = ("/v1", "/api/", "/cas/", "/buckets/", "/docs", "/static", "/feeds/", "/mcp", "/llms.txt", "/skill.md")
URI = "hf://buckets/race/tiny-blue-heron"
WHY = {"reason": "Because."}

FIXED = {
    "agent_id": "blue-heron",
    "agent": "blue-heron",
    "handle": "blue-heron",
    "user": "person",
    "namespace": "race",
    "budget": "raw_posts_per_min",
    "prefix": "default",
    "digest": "0" * 64,
    "path": ".bucket-sync-handshake",
}
NAMES = {
    "/v1/messages": {"filename": "message"},
    "/v1/results": {"filename": "result"},
    "/v1/threads": {"filename": "message"},
    "/v1/taskforces": {"name": "taskforce"},
    "/v1/traces": {"session_id": "trace"},
    "/v1/jobs": {"job_id": "job"},
    "/jobs": {"job_id": "job"},
    "/t/": {"filename": "message"},
    "/r/": {"filename": "result"},
    "/p/": {"name": "message"},
    "/taskforces": {"name": "taskforce"},
}
WORDS = {
    "/api/buckets": {"name": "tiny-dark-owl", "prefix": "x"},
    "/buckets": {"name": "tiny-dark-owl"},
    "/v1/taskforces": {"path": "f_blue-heron.txt"},
    "/artifacts": {"path": "plots_blue-heron/a.png"},
}
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/agents/register": {"agent_id": "blue-heron", "model": "m", "harness": "h", "force": True},
    "POST /v1/messages": {"agent_id": "blue-heron", "body": "x"},
    "POST /mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    "POST /v1/results": {"source": f"{URI}/r2.md"},
    "POST /v1/jobs:run": {
        "agent_id": "blue-heron",
        "submission_prefix": "submissions/mine",
        "run_prefix": "runs/1",
    },
    "POST /v1/taskforces": {"name": "speed", "agent_id": "blue-heron", "body": "y"},
    "POST /v1/taskforces/{name}/files": {"agent_id": "blue-heron", "body": "y"},
    "POST /v1/traces": {"source": f"{URI}/traces/s1/"},
    "POST /v1/artifacts:sync": {"source": f"{URI}/a/", "dest_slug": "a"},
    "POST /v1/shared-resources:sync": {"source": f"{URI}/a/", "dest_path": "a_blue-heron"},
    "POST /v1/me/tokens": {},
    "PUT /v1/inbox/{handle}/cursor": {"read_to": None},
    "PUT /v1/quotas/{handle}/{budget}": {"limit": 5, **WHY},
    "POST /v1/quotas/{handle}/{budget}:reset": WHY,
    "PUT /api/buckets/{namespace}/{name}/settings": {"private": True},
    "POST /api/repos/move": {"fromRepo": "race/tiny-dark-owl", "toRepo": "race/tiny-pale-owl", "type": "bucket"},
    "POST /api/buckets/{namespace}/{name}/paths-info": {"paths": []},
}
BODIES |= {
    f"POST /v1/{kind}/{{filename}}:{verb}": WHY
    for kind in ("messages", "results")
    for verb in ("retract", "hide", "unhide")
}
TARGET = {"target": "message_board/{message}", **WHY}
BODIES |= {f"POST /v1/moderation:{verb}": TARGET for verb in ("retract", "hide", "unhide")}
FORMS: dict[str, dict[str, str]] = {
    "POST /post": {"body": "x"},
    "POST /inbox/{handle}": {"read_to": "{message}"},
    "POST /desk/people": {"user": "somebody"},
    "POST /desk/people/{user}/role": {"role": "organizer"},
} | {f"POST /moderation/{verb}": TARGET for verb in ("retract", "hide", "unhide")}
INSTEAD = {
    "POST /api/buckets/{namespace}/{name}": "/api/buckets/owner/new-bucket",
}


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path) -> Settings:
    return Settings(
        data=tmp_path / "data", challenge=challenge_file, server_env=Path(sys.prefix), trusted_submitters="owner"
    )


@pytest.fixture
def cast(site: Site) -> Iterator[Cast]:
    gathered = casting.gather(site, create_app(site))
    yield gathered
    gathered.client.close()


def lines() -> dict[str, tuple[Scope | None, list[str]]]:
    found = {}
    for line in TABLE.strip().splitlines()[1:]:
        method, path, need, *cells = line.split()
        assert len(cells) == len(ACTORS), line
        found[f"{method} {path}"] = (None if need == "-" else Scope(need), cells)
    return found


def routes(app: FastAPI) -> list[str]:
    """Every route, as `METHOD /path`; what is mounted whole answers as one."""
    found = [(context.methods or {"ANY"}, context.path or "") for context in iter_route_contexts(app.routes)]
    return [f"{method} {path}" for methods, path in found for method in sorted(methods - {"HEAD"} or methods)]


def test_everybody_may_do_exactly_what_the_table_says(cast: Cast) -> None:
    app = cast.client.app
    assert isinstance(app, FastAPI)
    table, served = lines(), routes(app)
    assert sorted(set(served) - set(table)) == [], "routes without a line in the matrix"
    assert sorted(set(table) - set(served)) == [], "lines without a route"
    wrong = []
    with unchanging(cast.site) as restore:
        for route in served:
            need, cells = table[route]
            for actor, cell in zip(ACTORS, cells, strict=True):
                got = word_for(ask(cast, route, actor, need))
                if not route.startswith(("GET ", "HEAD ")):
                    restore()
                wrong += [f"{route}: {actor} got {got}, not {cell}"] if got != cell else []
    assert wrong == []


def ask(cast: Cast, route: str, actor: str, need: Scope | None) -> Response:
    """Send one cell's request."""
    method, template = route.split(" ", 1)
    key, path = cast.key(actor, need), path_of(cast, route)
    if not template.startswith(PROGRAMS):
        fields = {"csrf": cast.form_word(key.cookie), **named(cast, FORMS.get(route, {}))}
        headers = {"Origin": "http://testserver", "Accept": "text/html", **cookies_of(key)}
        return cast.client.request(method, path, data=fields if method == "POST" else None, headers=headers)
    token = cast.store_token(key) if template.startswith("/cas/") else key.token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if template == "/v1/events":
        method = "HEAD"  # the same gate, and no endless stream behind it
    if method == "ANY":
        method = "GET"
    if template.endswith("/batch"):
        return cast.client.request(
            method, path, content=b'{"type":"deleteFile","path":".bucket-sync-handshake"}\n', headers=headers
        )
    body = BODIES.get(route)
    sent = named(cast, body) if body and "target" in body else body
    return cast.client.request(method, path, json=sent, headers=headers)


def named(cast: Cast, given: dict[str, str]) -> dict[str, str]:
    """Fill the names of what the cast made into the values of a form."""
    return {name: value.format(**cast.names) for name, value in given.items()}


def path_of(cast: Cast, route: str) -> str:
    """Fill a route's path in."""
    template = route.split(" ", 1)[1]
    if route in INSTEAD:
        return INSTEAD[route]
    words = words_of(cast, template)
    path = re.sub(r"\{(\w+)(?::path)?\}", lambda match: words[match[1]], template)
    return f"{path}/style.css" if template == "/static" else path


def words_of(cast: Cast, template: str) -> dict[str, str]:
    """What the parameters of a path name, so that it is there."""
    words = {**FIXED, **cast.names}
    for start, of in NAMES.items():
        words |= {key: cast.names[name] for key, name in of.items()} if template.startswith(start) else {}
    for start, more in WORDS.items():
        words |= more if template.startswith(start) else {}
    if template.startswith("/p/{name}."):
        words["name"] = words["name"].removesuffix(".md")
    return words


def word_for(answer: Response) -> str:
    """Say in the table's words what became of a call."""
    assert answer.status_code < 500, answer.text
    if answer.status_code == 303 and answer.headers["location"].startswith("/signin"):
        return "in"
    if answer.status_code in (401, 403, 404):
        return str(answer.status_code)
    return "ok" if answer.status_code < 400 else "bad"
