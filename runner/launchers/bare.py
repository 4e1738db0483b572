"""Stages without a sandbox, for users whom the operator named: a process group that dies with us, no more."""

import socket
from contextlib import ExitStack
from pathlib import Path

from runner.launchers import dependencies, layout
from runner.launchers.cgroups import Caps
from runner.launchers.contract import LaunchSpec
from runner.launchers.doors import Doors, open_doors
from runner.launchers.means import tied_to_us
from runner.launchers.served import Group, Served
from runner.launchers.slots import Slot


class Bare:
    """Starts stages as the worker's own user, with a clean environment."""

    def __init__(self, *, environment: Path, caps: Caps, log_bytes: int) -> None:
        self._environment = environment.absolute()
        self._caps = caps
        self._log_bytes = log_bytes

    def serve(self, spec: LaunchSpec, slot: Slot, cleanup: ExitStack) -> Served:
        """Start the serve command on a free port."""
        places = self._places(spec)
        with open_doors(slot.sockets, cleanup) as doors:
            limits = layout.limits(self._caps, own_user=False)
            control = layout.write_control(spec, places, doors, port=_free_port(), limits=limits, in_sandbox=False)
            python = str(self._environment / "bin/python")
            argv = [python, "-I", str(control / "inside.py"), str(control / "launch.json")]
            return Served(self._start(argv, layout.base_environment(places), cleanup, doors), doors)

    def install(self, spec: LaunchSpec, _slot: Slot, cleanup: ExitStack) -> Group:
        """Start installing the dependencies into the workspace's layer."""
        places = self._places(spec)
        places.layer.mkdir()
        argv = dependencies.command(
            dependencies.uv_binary(),
            self._environment / "bin/python",
            places.layer,
            [str(places.submission / line) if line.startswith("./") else line for line in spec.manifest.dependencies],
        )
        env = {**layout.base_environment(places), **dependencies.variables(places.home / "cache")}
        return self._start(tied_to_us(argv), env, cleanup)

    def _places(self, spec: LaunchSpec) -> layout.Places:
        home = spec.workspace / "home"
        home.mkdir(exist_ok=True)
        return layout.Places(
            submission=spec.submission,
            layer=spec.workspace / layout.LAYER,
            home=home,
            environment=self._environment,
        )

    def _start(self, argv: list[str], env: dict[str, str], cleanup: ExitStack, doors: Doors | None = None) -> Group:
        return Group(
            argv,
            env=env,
            log_bytes=self._log_bytes,
            cleanup=cleanup,
            pass_fds=doors.inherited if doors else (),
            lifeline=doors.lifeline if doors else None,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
