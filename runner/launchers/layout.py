"""What a stage is given: its launch file, its environment, its limits. The same with a sandbox and without."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from runner.launchers import inside
from runner.launchers.cgroups import Caps
from runner.launchers.contract import LaunchSpec
from runner.launchers.doors import Doors

LAYER = "layer"
CONTROL = "control"
FAREWELL_S = 5.0
"""How long a server that was told to end may take to do so."""


@dataclass(frozen=True)
class Places:
    """Where the parts of a run lie, as the served process sees them."""

    submission: Path
    layer: Path
    home: Path
    environment: Path


def machine_caps() -> Caps:
    """Give a run nine tenths of this machine's memory and enough processes for any model server."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Caps(memory_bytes=total * 9 // 10, processes=4096)


def limits(caps: Caps, *, own_user: bool) -> dict[str, int]:
    """Limits of one process; the number of processes counts per user, so it is set where the user is the run's own."""
    most = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": caps.memory_bytes}
    return {**most, "RLIMIT_NPROC": caps.processes} if own_user else most


def base_environment(places: Places) -> dict[str, str]:
    """The few variables that every stage has; nothing of ours is inherited."""
    return {"PATH": f"{places.environment / 'bin'}:/usr/bin:/bin", "HOME": str(places.home), "LANG": "C.UTF-8"}


def server_environment(spec: LaunchSpec, places: Places, port: int) -> dict[str, str]:
    """The variables of the serve command: the manifest's, then the contract's, which win."""
    manifest = spec.manifest
    env = {**base_environment(places), **manifest.env}
    if (spec.workspace / LAYER).is_dir():
        env["PYTHONPATH"] = ":".join(part for part in (str(places.layer), env.get("PYTHONPATH", "")) if part)
    return {
        **env,
        "MODEL_ID": _model(spec, places),
        "SERVED_MODEL_NAME": manifest.served_model_name,
        "HOST": "127.0.0.1",
        "PORT": str(port),
    }


def _model(spec: LaunchSpec, places: Places) -> str:
    if (spec.submission / spec.manifest.model_id).exists():
        return str(places.submission / spec.manifest.model_id)
    return spec.manifest.model_id


def write_control(
    spec: LaunchSpec, places: Places, doors: Doors, *, port: int, limits: dict[str, int], in_sandbox: bool
) -> Path:
    """Write the launch file and a copy of the first process's program; return their folder, readable by all."""
    folder = spec.workspace / CONTROL
    folder.mkdir(mode=0o755)
    shutil.copyfile(Path(inside.__file__), folder / "inside.py")
    launch = {
        "argv": list(spec.manifest.serve),
        "cwd": str(places.submission),
        "env": server_environment(spec, places, port),
        "port": port,
        "limits": limits,
        "listener": doors.listener.fileno(),
        "started": doors.started_in,
        "lifeline": doors.lifeline_out,
        "farewell_s": FAREWELL_S,
        "in_sandbox": in_sandbox,
    }
    (folder / "launch.json").write_text(json.dumps(launch))
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    return folder


def write_identity(folder: Path, uid: int) -> dict[Path, Path]:
    """Write the passwd, group and hosts files of a sandbox; return what to bind where."""
    files = {
        "passwd": f"root:x:0:0::/nonexistent:/bin/false\nrunner:x:{uid}:{uid}::/home/runner:/bin/sh\n",
        "group": f"root:x:0:\nrunner:x:{uid}:\n",
        "hosts": "127.0.0.1 localhost runner\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
    return {Path("/etc") / name: folder / name for name in files}
