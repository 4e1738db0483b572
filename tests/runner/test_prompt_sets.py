"""How reference records are asked for."""

from pathlib import Path

import pytest

from runner import prompt_sets
from storage.site import Site

PYTHON = '#!/bin/sh\necho "$@" >> "$(dirname "$0")/asked"\necho done\n'


@pytest.fixture
def asked(site: Site, tmp_path: Path) -> Path:
    """The file in which a stand-in for the server environment notes what it is asked to run."""
    python = tmp_path / "server-env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    object.__setattr__(site, "settings", site.settings.model_copy(update={"server_env": python.parent.parent}))
    return python.with_name("asked")


def _seeds(site: Site, asked: Path) -> list[str]:
    asked.unlink(missing_ok=True)
    assert list(prompt_sets.make_references(site, Path("model"))) == ["done", "done"]
    return [line.partition("--seed ")[2].split()[0] for line in asked.read_text().splitlines()]


def test_nobody_without_the_secret_can_draw_the_private_targets_again(site: Site, asked: Path) -> None:
    private, public = _seeds(site, asked)
    assert public == "1"
    assert int(private) > 2**32
    assert _seeds(site, asked) == [private, public]
    object.__setattr__(site, "secret", b"another site's")
    assert _seeds(site, asked)[0] != private
