"""The one gate for places of the central bucket that a client names.

    shared_resources/eval_blue-heron/prompts.jsonl      artifacts/kernels_blue-heron/moe.cu
                     ^dest_path with _{agent}                     ^slug  ^agent

A destination carries its agent's id, so that nobody writes over another's files and the name alone credits
them. What isn't named here as open is closed: the server chooses every other name in the bucket itself.
"""

import re
from collections.abc import Collection

from agents.names import check_agent_id
from storage.errors import InvalidPath
from storage.paths import check_path

ARTIFACTS = "artifacts"
SHARED = "shared_resources"
CLOSED = frozenset(
    {
        "README.md",
        "LEADERBOARD.md",
        "agents",
        "audit",
        "broadcasts",
        "claims",
        "inbox",
        "message_board",
        "moderation",
        "results",
        "rulings",
        "taskforces",
        "traces",
        "verdicts",
    }
)
"""The central bucket's other places; a path that starts with one was meant for where no client may write."""

_SIGNED = re.compile(r"_([a-z0-9-]+)(?![A-Za-z0-9-])")


def artifacts_folder(slug: str, agent_id: str) -> str:
    """Name the folder of an agent's artifacts.

    Raises:
        InvalidPath: the slug has another form.
    """
    return f"{ARTIFACTS}/{check_agent_id(slug, what='slug')}_{agent_id}"


def shared_path(text: str, agent_id: str, agents: Collection[str]) -> str:
    """Return the central path of a shared resource; `text` may start with `shared_resources/` or not.

    Raises:
        InvalidPath: it isn't clean, is meant for a closed place, or doesn't carry this agent's id.
    """
    path = check_path(text.removesuffix("/").removeprefix(f"{SHARED}/"))
    head = path.partition("/")[0]
    if head in CLOSED or head in (ARTIFACTS, SHARED):
        raise InvalidPath(f"No client may write to {head!r}.", hint=f"dest_path is relative to {SHARED}/.")
    return check_path(f"{SHARED}/{check_signed(path, agent_id, agents)}")


def check_signed(path: str, agent_id: str, agents: Collection[str]) -> str:
    """Return `path` if it carries `_{agent_id}` and no other agent's id.

    Raises:
        InvalidPath: it doesn't.
    """
    others = signers(path, agents) - {agent_id}
    if agent_id in _SIGNED.findall(path) and not others:
        return path
    reason = f"carries the id of {', '.join(sorted(others))}, too" if others else f"must carry _{agent_id}"
    raise InvalidPath(f"The path {path!r:.120} {reason}.", hint=f"For example notes_{agent_id}.md.")


def signers(path: str, agents: Collection[str]) -> set[str]:
    """Name the agents whose id stands in `path` after an underscore, whole: `_agent-10` is not `_agent-1`."""
    return {name for name in _SIGNED.findall(path) if name in agents}
