"""What a served process can do to its runner, through the real launcher: the run ends by name and nothing is left."""

import pytest

from runner.worker import Worker
from storage.site import Site
from tests.runner.conftest import Owner, left_behind, row_of

SERVE = "import os, signal, socket, sys, threading, time\nimport fake_server\n{body}\nfake_server.serve(answer)\n"
HONEST = "answer = fake_server.complete\n"
ANY = ("completed", "request_timeout", "server_died", "server_exited")

BODIES = {
    "floods its output": (
        "threading.Thread(target=lambda: [os.write(1, b'x' * 65536) for _ in iter(int, 1)], daemon=True).start()\n"
        + HONEST,
        ("completed",),
    ),
    "writes one byte at a time": (
        "threading.Thread(target=lambda: [os.write(1, b'\\xff') for _ in iter(int, 1)], daemon=True).start()\n"
        + HONEST,
        ("completed",),
    ),
    "stops its forwarder": (
        "def answer(request):\n    os.kill(os.getppid(), signal.SIGSTOP)\n    return fake_server.complete(request)\n",
        ("request_timeout",),
    ),
    "kills its forwarder": (
        "def answer(request):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return fake_server.complete(request)\n",
        ("server_exited",),
    ),
    "stops itself": (
        "def answer(request):\n    os.kill(os.getpid(), signal.SIGSTOP)\n    return fake_server.complete(request)\n",
        ("request_timeout",),
    ),
    "kills everybody it may": (
        "def answer(request):\n    os.kill(-1, signal.SIGKILL)\n    return fake_server.complete(request)\n",
        ("server_exited",),
    ),
    "ignores every signal": (
        "for number in range(1, 65):\n    try: signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n" + HONEST,
        ("completed",),
    ),
    "opens connections without end": (
        "held = []\n"
        "def answer(request):\n"
        "    try:\n"
        "        for _ in range(100_000):\n"
        "            held.append(socket.create_connection(('127.0.0.1', int(os.environ['PORT']))))\n"
        "    except OSError as error: print('stopped at', len(held), error, flush=True)\n"
        "    return fake_server.complete(request)\n",
        ANY,
    ),
    "writes where it may not": (
        "for place in ('/submission/x', '/submission/serve.py', '/control/inside.py', '/sys/x', '/etc/passwd', '/x',\n"
        "              '/proc/1/mem', '/proc/sys/kernel/hostname', '/usr/bin/x', '/sys/fs/cgroup/x',\n"
        "              '/proc/1/oom_score_adj', '/proc/sysrq-trigger', '/dev/kmsg', '/dev/mem'):\n"
        "    try:\n"
        "        open(place, 'r+b' if os.path.exists(place) else 'wb').write(b'-')\n"
        "        print('WROTE', place, flush=True)\n"
        "    except OSError: pass\n" + HONEST,
        ("completed",),
    ),
    "traces its parent": (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "print('TRACE', libc.ptrace(16, 1, 0, 0), libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0),"
        " libc.unshare(0x10000000), libc.setuid(0), flush=True)\n" + HONEST,
        ("completed",),
    ),
    "links to what it may not see": (
        "os.symlink('/etc/shadow', '/tmp/a'); os.mkfifo('/tmp/b'); os.symlink('/proc/1/root', '/tmp/c')\n" + HONEST,
        ("completed",),
    ),
    "does all its work beforehand and dies with its last reply": (
        "asked = []\ndef answer(request):\n    asked.append(1)\n"
        "    if len(asked) > 5: threading.Timer(0.001, lambda: os._exit(0)).start()\n"
        "    return fake_server.complete(request)\n",
        ("server_exited", "server_died", "completed"),
    ),
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_whatever_a_server_does_its_run_ends_by_name_and_nothing_is_left(
    name: str, sandboxing: None, site: Site, owner: Owner, worker: Worker
) -> None:
    body, ends = BODIES[name]
    job = owner.order(owner.upload("honest", changes={"serve.py": SERVE.format(body=body).encode()}))
    assert worker.run_one() == job.row.id
    row = row_of(site, job.row.id)
    log = owner.read("runs/one/job_logs.txt")
    assert (row.code or row.state) in ends, (row.message, log[-2000:])
    assert row.fault in ("", "submission")
    assert b"WROTE" not in log
    assert b"TRACE" not in log or b"TRACE -1 -1 -1 -1" in log or b"TRACE -1 -1 0 -1" in log
    assert len(log) <= site.settings.log_tail
    assert not left_behind(site.settings)


def test_nothing_is_remembered_from_one_run_to_the_next(
    sandboxing: None, site: Site, owner: Owner, worker: Worker
) -> None:
    """A draw that left private prompts in a keyring could have them printed by a benchmark, whose log is public."""
    prefix = owner.upload("remembers")
    for run in ("runs/one", "runs/two"):
        job = owner.order(prefix, run)
        assert worker.run_one() == job.row.id
        assert row_of(site, job.row.id).state == "completed"
    assert b"kept" in owner.read("runs/one/job_logs.txt")
    assert b"REMEMBERED" not in owner.read("runs/two/job_logs.txt")
