"""Moves of a history beside posts and results: taskforces, shared files, traces."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from board import moderation_targets, syncs, taskforces, taskforces_adding, traces
from board.traces import Share

if TYPE_CHECKING:
    from tests.board.test_histories import Board

Move = Callable[["Board"], None]
NAMES = ("int4", "fp8")


def gather(agent: str, name: str, body: str, from_bucket: bool) -> Move:
    def move(board: "Board") -> None:
        caller = board.caller(agent)
        if from_bucket:
            source = board.source(agent, f"---\ncreator: me\n---\n{body}", again=False)
            taskforces.open_from_source(board.site, board.session, caller, name, source)
        else:
            taskforces.open_raw(board.site, board.session, caller, name, agent, body)

    return move


def note(agent: str, name: str, body: str, again: bool) -> Move:
    def move(board: "Board") -> None:
        source = board.source(agent, f"---\nrefs: {' '.join(board.posted[-1:])}\n---\n{body}", again=again)
        taskforces_adding.add_note_from_source(board.site, board.session, board.caller(agent), name, source)

    return move


def share(agent: str, name: str, path: str) -> Move:
    def move(board: "Board") -> None:
        source = board.source(agent, f"{agent} at {board.staged}", again=False)
        caller, signed = board.caller(agent), f"{path}_{agent}.txt"
        taskforces_adding.add_file(board.site, board.session, caller, name, source, signed)
        syncs.sync_shared(board.site, board.session, caller, source, signed)

    return move


def moderate(agent: str, name: str, index: int, verb: str) -> Move:
    """Hide or bring back a file of a taskforce, a session, a registration…; who is no organizer is refused."""

    def move(board: "Board") -> None:
        listed = board.site.buckets(board.session).list
        folders = (f"taskforces/{name}", "shared_resources", "traces", "agents")
        files = [file for folder in folders for file in listed(board.site.central, folder)]
        if files:
            done = getattr(moderation_targets, verb)
            done(board.site, board.session, board.caller(agent), files[index % len(files)].path, "For a\nreason.")

    return move


def trace(agent: str, session_id: str, tokens: str, how: Share) -> Move:
    def move(board: "Board") -> None:
        source = board.source(agent, "log", again=False).rpartition("/")[0]
        named = f"session_id: {session_id}\nnative_log_file: l\ntokens: {tokens}"
        text = f"---\nschema_version: 1\nharness: h\n{named}\n---\nx"
        board.write(agent, {f"posts/{session_id}/manifest.md": text, f"posts/{session_id}/l": "a line"})
        traces.post(board.site, board.session, board.caller(agent), f"{source}/{session_id}/", how)

    return move


def moves(agents: st.SearchStrategy[str], bodies: st.SearchStrategy[str]) -> st.SearchStrategy[Move]:
    """Any of them."""
    names = st.sampled_from(NAMES)
    tokens = st.sampled_from(["{total: 5, input: 2, output: 3}", "{total: 7}", "{}", "{total: -1}"])
    return st.one_of(
        st.builds(gather, agents, names, bodies, st.booleans()),
        st.builds(note, agents, names, bodies, st.booleans()),
        st.builds(share, agents, names, st.sampled_from(["a", "b/c"])),
        st.builds(moderate, st.just("ant"), names, st.integers(0, 9), st.sampled_from(["hide", "hide", "unhide"])),
        st.builds(trace, agents, st.sampled_from(["s1", "s2"]), tokens, st.sampled_from(Share)),
    )
