"""Prompt sets and reference records: the public ones a race ships, the private ones a data folder makes.

The private set comes from a secret seed; it lies in `DATA/private/` (mode 0700) and is never copied into a
bucket. Reference records are made by the reference model itself, in the server environment.
"""

import hashlib
import hmac
import os
import secrets
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from runner.harness import generator
from runner.harness.prompts import Prompt
from storage.errors import PreconditionFailed
from storage.site import Site

_SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "make_references.py"


_PUBLIC_SEED = 1


class NoReference(PreconditionFailed):
    """Reference records can't be made: no server environment, no model, or the script failed."""

    code = "NO_REFERENCE"


def public_prompts(site: Site) -> Path:
    """Where the public prompts lie: the race's file, or a copy of it that the generated ones follow."""
    ours = site.challenge.resolve(site.challenge.prompts.public)
    count = site.challenge.prompts.public_generated
    if count == 0:
        return ours
    seed = f"{site.challenge.org}/{site.challenge.slug}"
    path = site.settings.data / f"public-{hashlib.sha256(ours.read_bytes()).hexdigest()[:12]}-{count}.jsonl"
    if not path.exists():
        _write_whole(path, ours.read_text("utf-8") + _lines(generator.generate(seed.encode(), count)))
    return path


def private_prompts(site: Site) -> Path:
    """Where the private prompts lie."""
    return site.private / "prompts.jsonl"


def private_references(site: Site) -> Path:
    """Where the reference records of the private prompts lie."""
    return site.private / "references.jsonl"


def ensure_private(site: Site) -> None:
    """Make the private prompts if there are none yet. They are written whole or not at all."""
    if private_prompts(site).exists():
        return
    prompts = generator.generate(secrets.token_bytes(32), site.challenge.prompts.private_count)
    _write_whole(private_prompts(site), _lines(prompts))


def make_references(site: Site, model: Path, *, device: str = "cpu", dtype: str = "float32") -> Iterator[str]:
    """Make the reference records of both sets with the checkpoint in `model`; yields a line after each.

    Raises:
        NoReference: with the last line the script printed. Earlier records stay as they were.
    """
    ensure_private(site)
    prompts = site.challenge.prompts
    orders = [(private_prompts(site), private_references(site), _private_seed(site))]
    if prompts.public_references is not None:
        orders.append((public_prompts(site), site.challenge.resolve(prompts.public_references), _PUBLIC_SEED))
    for source, target, seed in orders:
        yield _make(site, model, source, target, seed, ["--device", device, "--dtype", dtype])


def _private_seed(site: Site) -> int:
    """Derive the seed that private targets are drawn with: whoever knew it could draw them again and tell decoys."""
    return int.from_bytes(hmac.digest(site.secret, b"private references", "sha256")[:7])


def _make(site: Site, model: Path, source: Path, target: Path, seed: int, where: list[str]) -> str:
    python = site.settings.server_env / "bin" / "python"
    if not python.exists():
        raise NoReference(f"There is no server environment at {site.settings.server_env}.", hint="make server-env")
    target.parent.mkdir(parents=True, exist_ok=True)
    harness = site.challenge.harness
    command = [python, _SCRIPT, "--model", model, "--prompts", source, "--out", target]
    command += ["--tokenizer", site.challenge.resolve(site.challenge.prompts.tokenizer)]
    command += ["--seed", str(seed), *where]
    command += ["--target-tokens", str(harness.output_tokens), "--max-prompt-tokens", str(harness.max_prompt_tokens)]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    if done.returncode != 0:
        raise NoReference(f"The reference records could not be made: {lines[-1] if lines else 'no message'}")
    return lines[-1] if lines else str(target)


def _lines(prompts: Iterable[Prompt]) -> str:
    return "".join(f"{prompt.to_json()}\n" for prompt in prompts)


def _write_whole(path: Path, text: str) -> None:
    temporary = path.with_suffix(".part")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
