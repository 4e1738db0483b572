"""Write the audit log up and be killed at it, as a process of its own: `DATA CHALLENGE ROW`, or `commit` for ROW.

ROW counts the lines that are made before the kill; `commit` is after the last of them, just before the commit.
"""

import os
import signal
import sys
from pathlib import Path

from agents import audit_files
from agents.rows import AuditRow
from storage.database import writing
from storage.settings import Settings
from storage.site import open_site


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(data: str, challenge: str, when: str) -> None:
    site = open_site(Settings(data=Path(data), challenge=Path(challenge)))
    whole, made = audit_files.line_of, []

    def line_of(row: AuditRow) -> bytes:
        made.append(row)
        if str(len(made)) == when:
            die()
        return whole(row)

    audit_files.line_of = line_of
    with writing(site.engine) as session:
        audit_files.flush(site, session)
        die()


if __name__ == "__main__":
    main(*sys.argv[1:])
