"""System calls that a sandbox refuses: those of the kernel's keyrings, which outlive every process of a run.

A draw could leave private prompts in its user's keyring for a later run of the same user, whose log is public. The
filter is a classic BPF program over `struct seccomp_data` (number at 0, architecture at 4), as bwrap takes it.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

# machine: (AUDIT_ARCH_*, add_key, request_key, keyctl), from linux/audit.h and the machines' system call tables
_MACHINES = {"x86_64": (0xC000003E, 248, 249, 250), "aarch64": (0xC00000B7, 217, 218, 219)}
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_OTHER_ABI = 0x40000000  # x32 numbers start here; they and 32-bit calls would pass by the list


class UnknownMachine(RuntimeError):
    """The system call numbers of this machine aren't known, so no submission is run on it."""


@contextmanager
def filter_fd() -> Iterator[int]:
    """Give a file descriptor from which a sandbox reads the filter once; our copy closes with the block."""
    reading_end, writing_end = os.pipe()
    try:
        with os.fdopen(writing_end, "wb") as pipe:
            pipe.write(program(os.uname().machine))
        yield reading_end
    finally:
        os.close(reading_end)


def program(machine: str) -> bytes:
    """Assemble the filter of a machine.

    Raises:
        UnknownMachine: it is none of ours.
    """
    if machine not in _MACHINES:
        raise UnknownMachine(f"the system calls of a {machine:.40} are not known")
    architecture, *refused = _MACHINES[machine]
    last = 5 + len(refused)  # the place of the refusal
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 0, last - 2, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, last - 4, 0, _OTHER_ABI),
        *((_IF_EQUAL, last - 5 - place, 0, number) for place, number in enumerate(refused)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
