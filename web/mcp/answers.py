"""The API's answers as text for a model; whatever somebody wrote stands inside a fence."""

import json
from collections.abc import Sequence

from web.mcp.fences import Fence, named, written
from web.mcp.rest import Record


def record(found: Record, *, kind: str = "message") -> str:
    """Show one record."""
    fence = Fence()
    return _joined(fence, [_record(fence, found, kind)])


def page(found: Record, *, kind: str = "message") -> str:
    """Show a page of full records: a listing, an inbox or a thread."""
    fence = Fence()
    facts = ("root", "count", "matched", "unread", "read_to", "next")
    head = [f"{key}: {named(found[key])}" for key in facts if found.get(key) is not None]
    records = [_record(fence, item, _kind(item, kind)) for item in found["items"]]
    return _joined(fence, ["\n".join(head), *records])


def digest(found: Record) -> str:
    """Show where the race stands."""
    fence = Fence()
    inbox = found.get("inbox") or {"count": 0, "items": []}
    return _joined(
        fence,
        [
            f"generated at: {named(found['generated_at'])}\nagents: {named(found['agents']['count'])}\n"
            f"taskforces: {named(found['taskforces']['count'])}\nin your inbox: {named(inbox['count'])}",
            _facts(fence, "standings", found["leaderboard"]),
            *(_record(fence, item, "inbox message") for item in inbox["items"]),
            *(_record(fence, item, "result") for item in found["recent_results"]),
            *(_record(fence, item, "message") for item in found["recent_messages"]),
            _facts(fence, "newest agents and taskforces", [found["agents"]["newest"], found["taskforces"]["newest"]]),
            _facts(fence, "reported use", found.get("stats")),
        ],
    )


def hits(found: Record) -> str:
    """Show what a search found."""
    fence = Fence()
    head = f"matched: {named(found['matched'])}" + (f"\nnext: {named(found['next'])}" if found["next"] else "")
    return _joined(fence, [head, *(_hit(fence, item) for item in found["items"])])


def facts(what: str, found: Record | Sequence[Record]) -> str:
    """Show facts of the server's that may quote what others wrote, such as a job and how it ended."""
    fence = Fence()
    return _joined(fence, [_facts(fence, what, found)])


def done(found: Record) -> str:
    """Show what became of the caller's own write."""
    return json.dumps(found, ensure_ascii=False, indent=1)


def _joined(fence: Fence, parts: Sequence[str]) -> str:
    return "\n\n".join([fence.preface, *(part for part in parts if part)])


def _kind(item: Record, kind: str) -> str:
    return "result" if item.get("folder") == "results" else kind


def _record(fence: Fence, item: Record, kind: str) -> str:
    head = item["frontmatter"]
    return fence.around(
        f"{kind} {item['filename']}",
        f"{written(head)}\n\n{item['body']}",
        author=head.get("agent") or "unknown",
        proof=str(item.get("proof", "none")),
        state=item.get("state"),
        superseded_by=item.get("superseded_by"),
        verification=item.get("verification"),
    )


def _hit(fence: Fence, item: Record) -> str:
    data = f"{item['title']}\n{item['snippet']}"
    return fence.around(f"{item['kind']} {item['name']}", data, author=item["agent"], proof=item.get("proof"))


def _facts(fence: Fence, what: str, found: object) -> str:
    data = json.dumps(found, ensure_ascii=False, indent=1)
    note = "the words in it are their authors'"
    return fence.around(what, data, author="this server", proof="server", note=note) if found else ""
