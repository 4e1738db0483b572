"""Building the server environment: an unchanged one is kept, a half-built one is made again, a lack is one sentence."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "server_env.py"
FAKE_UV = """#!{python}
import pathlib, sys
with open({log!r}, "a") as log:
    print(*sys.argv[1:], file=log)
if sys.argv[1] == "venv":
    packages = pathlib.Path(sys.argv[-1], "lib", "torchvision")
    packages.mkdir(parents=True)
    (packages / "_meta_registrations.py").write_text("broken")
    python = pathlib.Path(sys.argv[-1], "bin", "python")
    python.parent.mkdir()
    python.write_text("#!/bin/sh\\necho " + str(packages.parent) + "\\n")
    python.chmod(0o755)
elif "--dry-run" in sys.argv and not any(word in sys.argv for word in {offers!r}):
    sys.exit(1)
elif {breaks} and "-r" in sys.argv:
    sys.exit("no space left")
"""


class Machine:
    """A machine whose uv is a stand-in that writes down what it was asked."""

    def __init__(self, root: Path) -> None:
        self.log, self.target, self._bin = root / "log", root / "env", root / "bin"
        self._bin.mkdir()
        (self._bin / "python").symlink_to(sys.executable)

        # A repository of its own, whose stack a test may change.
        self.stack = root / "runner" / "stack"
        (self.stack / "src").mkdir(parents=True)
        for name in ("pyproject.toml", "README.md", "src/code.py"):
            (self.stack / name).write_text("first")
        self.script = Path(shutil.copytree(SCRIPT.parent, root / "scripts"), SCRIPT.name)

    def build(self, *, offers: tuple[str, ...] = (), breaks: bool = False) -> subprocess.CompletedProcess[str]:
        uv = self._bin / "uv"
        uv.write_text(FAKE_UV.format(python=sys.executable, log=str(self.log), offers=offers, breaks=breaks))
        uv.chmod(0o755)
        self.log.write_text("")
        command = [str(self._bin / "python"), str(self.script), str(self.target)]
        environment = {"PATH": "/usr/bin:/bin", "PIP_FIND_LINKS": "/wheels"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    @property
    def asked(self) -> str:
        return self.log.read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_torch_comes_from_find_links_where_they_hold_it(machine: Machine) -> None:
    assert machine.build(offers=("/wheels", "--torch-backend=cpu")).returncode == 0
    assert "--find-links /wheels --compile-bytecode -r" in machine.asked


def test_torch_comes_from_the_cpu_index_elsewhere(machine: Machine) -> None:
    assert machine.build(offers=("--torch-backend=cpu",)).returncode == 0
    assert "--torch-backend=cpu --compile-bytecode -r" in machine.asked


def test_nowhere_to_get_torch_is_one_sentence_and_no_stamp(machine: Machine) -> None:
    done = machine.build()
    assert done.returncode == 1
    assert done.stderr.startswith("server environment: neither pip's find-links nor PyTorch's CPU index offers torch==")
    assert len(done.stderr.splitlines()) == 1
    assert not (machine.target / "paddock-stamp").exists()


def test_second_run_asks_for_nothing(machine: Machine) -> None:
    machine.build(offers=("/wheels",))
    done = machine.build(offers=("/wheels",))
    assert (done.returncode, machine.asked) == (0, "")


def test_serving_stack_is_installed_last(machine: Machine) -> None:
    machine.build(offers=("/wheels",))
    last = machine.asked.splitlines()[-1]
    assert last.endswith(f"--no-deps --reinstall-package paddock-stack --compile-bytecode {machine.stack}")


@pytest.mark.parametrize("name", ["src/code.py", "src/more.py", "pyproject.toml"])
def test_changed_stack_is_installed_again_and_nothing_else(machine: Machine, name: str) -> None:
    machine.build(offers=("/wheels",))
    (machine.stack / name).write_text("second")
    assert machine.build(offers=("/wheels",)).returncode == 0
    assert len(machine.asked.splitlines()) == 1
    assert "--reinstall-package paddock-stack" in machine.asked
    assert (machine.build(offers=("/wheels",)).returncode, machine.asked) == (0, "")


def test_half_built_environment_is_built_again(machine: Machine) -> None:
    broken = machine.build(offers=("/wheels",), breaks=True)
    assert broken.returncode == 1
    assert "no space left" in broken.stderr
    (machine.target / "left-over").write_text("x")
    assert machine.build(offers=("/wheels",)).returncode == 0
    assert not (machine.target / "left-over").exists()


def test_torchvision_and_vllm_are_fitted_to_the_cpu(machine: Machine) -> None:
    machine.build(offers=("/wheels",))
    assert (machine.target / "lib" / "torchvision" / "_meta_registrations.py").read_text() == ""
    (metadata,) = machine.target.glob("lib/vllm-*+cpu.dist-info/METADATA")
    assert "+cpu" in metadata.read_text()
