"""What stands in the place of a hidden file that is no record.

A file that rows are made of keeps what its server wrote, so that a taskforce still has its creator, an agent its owner
and a session its tokens; of what somebody wrote themselves nothing is left. Any other file keeps nothing.
"""

from collections.abc import Callable

from agents.registrations import FOLDER as AGENTS
from board import traces_manifest
from board.moderation import State
from board.promotion import SERVER_KEYS
from board.taskforces_index import is_readme
from board.traces_index import is_manifest
from storage.frontmatter import Document, Value, parse_bytes, serialise

_GONE = State.HIDDEN.value
_README = SERVER_KEYS | {"taskforce", "creator", "created", "updated"}
_AGENT = frozenset({"agent_name", "hf_user", "agent_bucket", "joined"})
_MANIFEST = SERVER_KEYS | {"promoted_at", "share", "completeness", "session_id", "started_at"}


def stand_in(path: str, read: Callable[[], bytes], reason: str) -> bytes:
    """Write what takes the place of the file at a central path; `read` gives its bytes, where they are needed.

    Raises:
        InvalidFrontmatter, TooLarge: it isn't what its place says it is.
    """
    return serialise({**_left(path, read), "type": _GONE, _GONE: reason}, "").encode()


def _left(path: str, read: Callable[[], bytes]) -> dict[str, Value]:
    if is_readme(path):
        return _of(parse_bytes(read()), _README)
    if path.startswith(f"{AGENTS}/"):
        return _of(parse_bytes(read()), _AGENT)
    if is_manifest(path):
        document = parse_bytes(read())
        return _of(document, _MANIFEST) | _counts(document)
    return {}


def _of(document: Document, keys: frozenset[str]) -> dict[str, Value]:
    return {key: value for key, value in document.frontmatter.items() if key in keys}


def _counts(document: Document) -> dict[str, Value]:
    """The numbers of a manifest; the names it must have are no longer its author's."""
    manifest = traces_manifest.read(document.frontmatter)
    named: dict[str, Value] = dict.fromkeys(("schema_version", "harness"), _GONE)
    tokens: dict[str, Value] = {f"{name}_tokens": count for name, count in manifest.tokens.items()}
    return {**named, **tokens, "tool_calls": manifest.tool_calls, "cost_usd": manifest.cost_usd}
