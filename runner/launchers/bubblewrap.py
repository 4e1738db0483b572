"""The command line of a sandbox: what a stage sees of this machine. Pure; root runs it, the stage runs as `uid`.

Root binds what lies under folders only root may enter; `setpriv` then drops to a real unprivileged user before
anything of the submission starts (`bwrap --uid` would only change the number that the inside sees).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUBMISSION = Path("/submission")
LAYER = Path("/layer")
CONTROL = Path("/control")
HOME = Path("/home/runner")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
_ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
_ETC_NETWORK = ("/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki")
# How many cores there are, for thread pools; all of /sys would list the machine's network interfaces.
_TOPOLOGY = ("/sys/devices/system/cpu", "/sys/devices/system/node")


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """What one stage sees; `read_only` and `writable` map a place inside to a folder or file outside."""

    bwrap: str
    setpriv: str
    uid: int
    network: bool
    cwd: Path
    tmp_bytes: int
    env: dict[str, str]
    read_only: dict[Path, Path]
    writable: dict[Path, Path] = field(default_factory=dict)
    devices: tuple[Path, ...] = ()


def command(sandbox: Sandbox, argv: Sequence[str], *, filter_fd: int) -> list[str]:
    """Build the command that runs `argv` inside `sandbox`; it inherits `filter_fd`, see `runner.launchers.syscalls`."""
    return [
        sandbox.bwrap,
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *([] if sandbox.network else ["--unshare-net"]),
        *("--die-with-parent", "--new-session", "--hostname", "runner", "--clearenv"),
        *("--seccomp", str(filter_fd)),
        *("--proc", "/proc", "--dev", "/dev", *_scratch(sandbox.tmp_bytes)),
        *_parents(sandbox),
        *_machine(sandbox.network),
        *(part for name, value in sandbox.env.items() for part in ("--setenv", name, value)),
        *(part for device in sandbox.devices for part in ("--dev-bind", str(device), str(device))),
        *(part for inside, out in sandbox.read_only.items() for part in ("--ro-bind", str(out), str(inside))),
        *(part for inside, out in sandbox.writable.items() for part in ("--bind", str(out), str(inside))),
        *("--chdir", str(sandbox.cwd), "--", *_unprivileged(sandbox), *argv),
    ]


def _scratch(tmp_bytes: int) -> list[str]:
    places = ("/tmp", "/dev/shm", str(HOME))  # noqa: S108 - a tmpfs of the sandbox's own
    return [part for place in places for part in ("--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", place)]


def _parents(sandbox: Sandbox) -> list[str]:
    """Make the folders above every place by hand: left to itself bwrap 0.8 lets only root into some of them."""
    places = [*map(Path, (*_ETC, *_TOPOLOGY)), *sandbox.read_only, *sandbox.writable]
    above = {parent for place in places for parent in place.parents if parent != Path("/")}
    nested = {folder for folder in above if not any(folder.is_relative_to(top) for top in map(Path, _SYSTEM))}
    return [part for folder in sorted(nested) for part in ("--perms", "0755", "--dir", str(folder))]


def _machine(network: bool) -> list[str]:
    places = [*_SYSTEM, *_ETC, *_TOPOLOGY, *(_ETC_NETWORK if network else ())]
    return [part for place in places for part in ("--ro-bind-try", place, place)]


def _unprivileged(sandbox: Sandbox) -> list[str]:
    return [
        sandbox.setpriv,
        *("--reuid", str(sandbox.uid), "--regid", str(sandbox.uid), "--clear-groups", "--no-new-privs"),
        *("--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"),
    ]
