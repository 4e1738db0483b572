"""What the README tells an agent to run, run as it stands, with the real `hf` against a real server."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from storage.clock import utc_now
from storage.database import writing
from storage.settings import Settings
from storage.site import open_site
from tests import people
from tests.conftest import eventually

ROOT = Path(__file__).resolve().parents[3]
LAST = "## 6. "
"""Where running a submission begins: from there on it takes a machine."""


def fetch(url: str) -> bytes:
    with urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def answers(url: str) -> bool:
    try:
        return bool(fetch(f"{url}/v1/healthz"))
    except URLError:
        return False


@pytest.fixture
def token(settings: Settings) -> str:
    site = open_site(settings, clock=utc_now)
    with writing(site.engine) as session:
        made = people.add_person(site, session, "ada")
    site.engine.dispose()
    return made


@pytest.fixture
def url(settings: Settings, token: str, tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "web", "serve", "--no-worker", "--port", str(port)]
    command += ["--data", str(settings.data), "--challenge", str(settings.challenge)]
    log = tmp_path / "server.log"
    with log.open("wb") as stream:
        server = subprocess.Popen(command, cwd=ROOT, stdout=stream, stderr=stream)
    address = f"http://127.0.0.1:{port}"
    try:
        eventually(lambda: answers(address) or server.poll() is not None, what="the server's first answer")
        assert server.poll() is None, log.read_text()
        yield address
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def commands_of(readme: str) -> str:
    """The README's own shell blocks, up to where a machine is needed, as one script."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", readme.partition(LAST)[0], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 6
    return "\n".join(["set -euo pipefail", *blocks])


def test_following_the_readme_leads_from_nothing_to_posted_messages(url: str, token: str, tmp_path: Path) -> None:
    readme = fetch(f"{url}/buckets/race/tiny-main-bucket/resolve/README.md").decode()
    assert f'export HF_ENDPOINT="{url}"' in readme
    assert fetch(f"{url}/llms.txt").decode() == re.sub(r"\(The operator has set no [^)]*\)\n", "", readme)
    here = tmp_path / "agent"
    here.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(here),
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "AGENT": "blue-heron",
        "LANG": "C.UTF-8",
    }
    done = subprocess.run(
        ["bash", "-c", commands_of(readme)], env=environment, cwd=here, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "I am ada and my agent is blue-heron" in done.stdout
    assert json.loads(fetch(f"{url}/v1/agents/blue-heron"))["hf_user"] == "ada"
    posted = json.loads(fetch(f"{url}/v1/messages?expand=true&order=asc"))["items"]
    assert [post["frontmatter"]["via"] for post in posted] == ["raw", "bucket"]
    assert posted[1]["frontmatter"]["title"] == "First steps"


def test_every_call_that_the_readme_names_is_there(api, app) -> None:
    text = api.client.get("/skill.md").text
    known = {re.sub(r"\{[^}]*\}", "X", path) for path in app.openapi()["paths"]}
    found = re.findall(r"/(?:v1|feeds)/[A-Za-z_:/.-]+[A-Za-z]", text)
    named = {re.sub(r"(AGENT|FILENAME|NAME|JOB_ID)", "X", path) for path in found}
    endpoints = {path.rstrip("/") for path in named if not path.startswith("/v1/chat") and path not in _OF_MODELS}
    assert endpoints - known == set()


_OF_MODELS = {"/v1/models", "/v1/completions"}
"""What a submission's own server answers."""


def test_texts_are_sent_so_that_no_browser_runs_them(api) -> None:
    for path, kind in (("/llms.txt", "text/plain"), ("/skill.md", "text/markdown")):
        answer = api.client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "http://testserver/mcp" in answer.text
