"""`results/verification_status.json`: what old clients read, one state per result, none left out.

{"20260608-153019-017_low-sun.md": "pending"}
"""

import json

from sqlmodel import Session, select

from board.records import RESULTS
from board.rows import ResultRow
from board.verdicts import State
from storage.buckets import Put
from storage.errors import Invalid
from storage.site import Site

PATH = f"{RESULTS}/verification_status.json"


class BadStatusMap(Invalid):
    """The stored map is not a flat object of texts."""

    code = "BAD_STATUS_MAP"


def current(session: Session) -> dict[str, str]:
    """Map every indexed result to its state in the words of old clients, oldest first."""
    rows = session.exec(select(ResultRow.filename, ResultRow.verification).order_by(ResultRow.filename))
    return {filename: State(state).shown.value for filename, state in rows}


def write(site: Site, session: Session) -> None:
    """Rewrite the file from the index, in the session's transaction."""
    session.flush()
    site.buckets(session).apply(site.central, [Put(PATH, to_bytes(current(session)), "application/json")])


def to_bytes(states: dict[str, str]) -> bytes:
    """Write the map as it is stored."""
    return f"{json.dumps(states, indent=1)}\n".encode()


def parse(data: bytes) -> dict[str, State]:
    """Read a stored map; an entry with a word that is no state is passed over, which leaves its result pending.

    Raises:
        BadStatusMap: it isn't a JSON object.
    """
    try:
        entries = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadStatusMap(
            f"The map of verification states is not JSON: {' '.join(str(error).split()):.80}."
        ) from error
    if not isinstance(entries, dict):
        raise BadStatusMap("The map of verification states is not a JSON object.")
    known = {state.value: state for state in State}
    return {name: known[word] for name, word in entries.items() if isinstance(word, str) and word in known}
