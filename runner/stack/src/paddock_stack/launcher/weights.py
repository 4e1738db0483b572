"""Find a checkpoint's folder, wherever it lies, and hold it against the hash that pins it.

A checkpoint's hash is the SHA-256 of one line `{path} TAB {sha256} TAB {size}` a file, in the order of the paths. A pin
may also be the SHA-256 of the one weights file, which is how public submissions pin their drafters. A Hub id's
`revision` pins it too where it is a whole commit; a branch or a tag may move.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paddock_stack.bake.checkpoint import PROVENANCE, read_json
from paddock_stack.bake.hashing import Digest, digest_of
from paddock_stack.launcher.history import Said, steps_of
from paddock_stack.profiles.schema import Weights
from paddock_stack.refusals import Refused

BUCKETS = "hf://buckets/"
_COMMIT = re.compile(r"[0-9a-f]{40}")


class WrongWeights(Refused):
    """A checkpoint is missing, or is not the one that its hash names."""


@dataclass(frozen=True)
class Found:
    """A checkpoint on this machine: its folder, its hash, and that of its weights file where it has just one.

    `pinned_by` is `sha256`, `revision` or empty; `baked_by` are the steps that its own provenance tells.
    """

    uri: str
    folder: Path
    sha256: str
    weights_sha256: str
    pinned_by: str = ""
    baked_by: tuple[Said, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {**asdict(self), "folder": str(self.folder)}


def find(weights: Weights, base: Path, cache: Path) -> Found:
    """Return the checkpoint that `weights` names, fetched into `cache` if need be; relative folders are `base`'s.

    Raises:
        WrongWeights: it isn't there, can't be fetched, or has another hash than the pinned one.
    """
    folder, is_commit = _located(weights, base, cache)
    if not (folder / "config.json").is_file():
        raise WrongWeights(f"{weights.uri} holds no config.json; name the folder of a checkpoint")
    files = {path.relative_to(folder).as_posix(): digest_of(path) for path in sorted(_files(folder))}
    _check_promises(folder, files)
    lines = (f"{name}\t{digest.sha256}\t{digest.size_bytes}\n" for name, digest in sorted(files.items()))
    whole = hashlib.sha256("".join(lines).encode()).hexdigest()
    single = [digest.sha256 for name, digest in files.items() if name.endswith(".safetensors")]
    pinned_by = "sha256" if weights.sha256 else "revision" if is_commit else ""
    found = Found(weights.uri, folder, whole, single[0] if len(single) == 1 else "", pinned_by, steps_of(folder))
    if weights.sha256 and weights.sha256 not in (found.sha256, found.weights_sha256):
        raise WrongWeights(f"{weights.uri} has the hash {found.sha256} and not {weights.sha256}, which pins it")
    return found


def _check_promises(folder: Path, files: Mapping[str, Digest]) -> None:
    """Raise `WrongWeights` where the folder is no longer what its provenance was written for."""
    promised = read_json(folder / PROVENANCE).get("files") if PROVENANCE in files else {}
    for name, digest in promised.items() if isinstance(promised, dict) else [("its list of files", None)]:
        if name not in files or files[name].record() != digest:
            raise WrongWeights(f"{folder}: {name} is not what {PROVENANCE} was written for; bake it anew")


def _files(folder: Path) -> list[Path]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return [path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _located(weights: Weights, base: Path, cache: Path) -> tuple[Path, bool]:
    """Return the folder, and whether it is a commit of the Hub that `revision` names in full."""
    uri = weights.uri
    if uri.startswith(BUCKETS):
        return _from_bucket(uri, cache), False
    for folder in (Path(uri), base / uri):
        if uri and folder.is_dir():
            return folder.resolve(), False
    if uri.startswith(("/", ".", "~")) or uri.count("/") != 1:
        raise WrongWeights(f"there is no folder {uri!r}, and it is no Hub id and no {BUCKETS}… either")
    return _from_hub(uri, weights.revision), _COMMIT.fullmatch(weights.revision) is not None


def _from_bucket(uri: str, cache: Path) -> Path:
    folder = cache / "weights" / hashlib.sha256(uri.encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    hf = Path(sys.executable).with_name("hf")
    command = [str(hf) if hf.exists() else "hf", "buckets", "sync", uri, str(folder), "--delete"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))
    except OSError as fault:
        raise WrongWeights(f"{uri} needs the program hf, which is not here: {fault.strerror}") from fault
    if done.returncode != 0:
        raise WrongWeights(f"{uri} can't be fetched: {done.stderr.strip()[-500:]}")
    return folder


def _from_hub(uri: str, revision: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as fault:
        raise WrongWeights(f"{uri} needs huggingface_hub, which is not installed here") from fault
    try:
        return Path(snapshot_download(uri, revision=revision or None))
    except Exception as fault:  # the library raises kinds of its own, its transport's and plain OSError
        at = f"{uri}, revision {revision}," if revision else uri
        raise WrongWeights(f"{at} is neither in the Hub's cache here nor can it be fetched: {fault}") from fault
