"""Stages under bubblewrap, each as an unprivileged user of its own, with caps where the machine has them."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from runner.launchers import bubblewrap, cgroups, dependencies, layout, syscalls
from runner.launchers.bubblewrap import CONTROL, HOME, LAYER, SUBMISSION, Sandbox
from runner.launchers.cgroups import Caps
from runner.launchers.contract import LaunchSpec
from runner.launchers.doors import Doors, open_doors
from runner.launchers.lingering import end_all_of
from runner.launchers.means import Means, python_prefix
from runner.launchers.served import Group, Served
from runner.launchers.slots import Slot

_UV = Path("/control/uv")
_OUTER_ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Exposed(RuntimeError):
    """Something that a sandbox must see holds our data folder."""


class Sandboxed:
    """Starts stages in a sandbox; see `runner.launchers.bubblewrap` for what they see."""

    def __init__(self, *, means: Means, environment: Path, data: Path, caps: Caps, log_bytes: int) -> None:
        self._means = means
        self._environment = environment.absolute()
        self._data = data.resolve()
        self._caps = caps
        self._log_bytes = log_bytes

    def serve(self, spec: LaunchSpec, slot: Slot, cleanup: ExitStack) -> Served:
        """Start the serve command beside its forwarder, alone in its network."""
        places = layout.Places(submission=SUBMISSION, layer=LAYER, home=HOME, environment=self._environment)
        with open_doors(slot.sockets, cleanup) as doors:
            limits = layout.limits(self._caps, own_user=True)
            port = spec.manifest.port
            control = layout.write_control(spec, places, doors, port=port, limits=limits, in_sandbox=True)
            layer = spec.workspace / layout.LAYER
            sandbox = self._sandbox(
                spec,
                slot,
                network=False,
                env=layout.base_environment(places),
                read_only={CONTROL: control, **({LAYER: layer} if layer.is_dir() else {})},
            )
            argv = [str(self._python), "-I", str(CONTROL / "inside.py"), str(CONTROL / "launch.json")]
            return Served(self._start(sandbox, argv, slot, cleanup, doors), doors)

    def install(self, spec: LaunchSpec, slot: Slot, cleanup: ExitStack) -> Group:
        """Start installing the dependencies into the workspace's layer."""
        layer = spec.workspace / layout.LAYER
        layer.mkdir(mode=0o755)
        os.chown(layer, slot.uid, slot.uid)
        env = {"PATH": f"{self._environment / 'bin'}:/usr/bin:/bin", "HOME": str(HOME), "LANG": "C.UTF-8"}
        sandbox = self._sandbox(
            spec,
            slot,
            network=True,
            env={**env, **dependencies.variables(HOME / "cache")},
            read_only={_UV: dependencies.uv_binary()},
            writable={LAYER: layer},
        )
        argv = dependencies.command(_UV, self._python, LAYER, spec.manifest.dependencies)
        return self._start(sandbox, argv, slot, cleanup)

    @property
    def _python(self) -> Path:
        return self._environment / "bin/python"

    def _start(
        self, sandbox: Sandbox, argv: Sequence[str], slot: Slot, cleanup: ExitStack, doors: Doors | None = None
    ) -> Group:
        end_all_of(slot.uid)
        group = cgroups.make(f"{slot.sockets.parent.name}-{slot.number}", self._caps)
        cleanup.callback(group.remove)
        cleanup.callback(end_all_of, slot.uid)
        with syscalls.filter_fd() as filter_fd:
            return Group(
                bubblewrap.command(sandbox, argv, filter_fd=filter_fd),
                env=_OUTER_ENV,
                log_bytes=self._log_bytes,
                cleanup=cleanup,
                joins=group.joins,
                pass_fds=(*(doors.inherited if doors else ()), filter_fd),
                lifeline=doors.lifeline if doors else None,
            )

    def _sandbox(
        self,
        spec: LaunchSpec,
        slot: Slot,
        *,
        network: bool,
        env: dict[str, str],
        read_only: dict[Path, Path],
        writable: dict[Path, Path] | None = None,
    ) -> Sandbox:
        assert self._means.bwrap is not None
        assert self._means.setpriv is not None
        prefix = python_prefix(self._environment)
        seen = {self._environment: self._environment, SUBMISSION: spec.submission, **read_only}
        seen |= {} if prefix == Path("/usr") else {prefix: prefix}
        for place in (Path("/usr"), *seen.values()):
            if self._data.is_relative_to(place.resolve()):
                raise Exposed(f"the data folder {self._data} lies inside {place}, which submissions can read")
        return Sandbox(
            bwrap=self._means.bwrap,
            setpriv=self._means.setpriv,
            uid=slot.uid,
            network=network,
            cwd=SUBMISSION,
            tmp_bytes=self._caps.memory_bytes // 4,
            env=env,
            read_only={**seen, **layout.write_identity(spec.workspace, slot.uid)},
            writable=writable or {},
            devices=tuple(sorted(Path("/dev").glob("nvidia*"))),
        )
