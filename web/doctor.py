"""`paddock doctor`: what this machine has for running a race, one finding a line."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from runner import prompt_sets
from runner.launchers.means import find_means
from storage.site import Site

_LOW_DISK_BYTES = 20_000_000_000


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    ok: bool
    detail: str


def examine(site: Site) -> list[Finding]:
    """Look at everything that a race needs from this machine."""
    return [_server_env(site), _sandbox(), _tokenizer(site), _references(site), _disk(site.settings.data)]


def _server_env(site: Site) -> Finding:
    place = site.settings.server_env
    is_there = (place / "bin" / "python").exists() and (place / "pyvenv.cfg").exists()
    return Finding("server environment", is_there, str(place) if is_there else f"none at {place}; run: make server-env")


def _sandbox() -> Finding:
    missing = find_means().missing()
    without = f"{', '.join(missing)}; only users in PADDOCK_TRUSTED_SUBMITTERS are run"
    return Finding("sandbox", not missing, without if missing else "bubblewrap, as a user of its own")


def _tokenizer(site: Site) -> Finding:
    path = site.challenge.resolve(site.challenge.prompts.tokenizer) / "tokenizer.json"
    return Finding("tokenizer of the race", path.exists(), str(path))


def _references(site: Site) -> Finding:
    path = prompt_sets.private_references(site)
    hint = "run: paddock references --model FOLDER (until then results stay pending)"
    return Finding("private reference records", path.exists(), str(path) if path.exists() else hint)


def _disk(data: Path) -> Finding:
    free = shutil.disk_usage(data).free
    return Finding("disk", free > _LOW_DISK_BYTES, f"{free / 1e9:.0f} GB free at {data}")
