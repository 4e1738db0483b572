"""A machine is one that profiles know, or has to be named."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddock_stack.launcher.machines import UnknownMachine, find_machine
from paddock_stack.profiles.schema import Machine


def test_machine_without_a_gpu_is_the_cpu(tmp_path: Path) -> None:
    assert find_machine(tmp_path) is Machine.CPU


@pytest.mark.parametrize(("name", "machine"), [("NVIDIA A10G", Machine.A10G), ("NVIDIA H200", Machine.H200)])
def test_gpu_is_known_by_its_name(name: str, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_gpu(tmp_path, monkeypatch, name)
    assert find_machine(tmp_path) is machine


def test_other_gpu_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_gpu(tmp_path, monkeypatch, "NVIDIA L4")
    with pytest.raises(UnknownMachine, match="no profile knows the GPU 'NVIDIA L4'"):
        find_machine(tmp_path)


def test_gpu_that_nobody_can_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia0").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnknownMachine, match="say it with --machine"):
        find_machine(tmp_path)


def _with_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (folder / "nvidia0").touch()
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\necho '{name}'\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
