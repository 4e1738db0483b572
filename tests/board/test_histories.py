"""Whatever happens on a board, in whatever order, its rows are what rebuilding them from the files gives."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import Session

from agents import registrations
from agents.registrations import Application
from agents.tokens import Caller
from board import messages, moderation_acts, reindex, results
from board.imports import import_board
from board.messages import Wish
from board.traces import Share
from board.verdicts import Draw, Gate, State, Verdict
from storage.database import writing
from storage.errors import PaddockError
from storage.settings import Settings
from storage.site import Site, open_site
from tests import people
from tests.board import racers, work
from tests.conftest import CHALLENGE, HeldClock

LIMITS = """
[limits]
promotions_burst = 1000
promotions_per_min = 1000
raw_posts_per_min = 1000
raw_posts_per_hour = 1000
registrations_per_min = 1000
"""
AGENTS = ("ant", "bee", "cow")
BODIES = (
    "Hello.",
    "For @bee and @ant.",
    "`@cow` is code; @human-bob is not.",
    "@nobody @ant-hill\n\n> @bee\n",
    "---\n@cow",
)


class Board:
    """A race with three agents of two people, its records so far, and a clock that may stand still or go back."""

    def __init__(self, site: Site, session: Session, clock: HeldClock) -> None:
        self.site, self.session, self.clock = site, session, clock
        self.tokens = {"ant": people.add_person(site, session, "ann", is_organizer=True)}
        self.tokens["bee"] = self.tokens["cow"] = people.add_person(site, session, "bob")
        for agent in AGENTS:
            people.add_agent(site, session, agent, self.tokens[agent])
        self.posted: list[str] = []
        self.results: list[str] = []
        self.staged = 0

    def caller(self, agent: str) -> Caller:
        return people.caller_of(self.site, self.session, self.tokens[agent])

    def source(self, agent: str, text: str, *, again: bool) -> str:
        self.staged += 0 if again else 1
        return racers.stage(self.site, self.session, agent, f"posts/{self.staged}.md", text)

    def write(self, agent: str, files: dict[str, str]) -> None:
        people.add_files(self.site, self.session, agent, files)


Move = Callable[[Board], None]


def say(agent: str, body: str, ref: int | None, broadcast: bool) -> Move:
    def move(board: Board) -> None:
        refs = board.posted[ref % len(board.posted)] if board.posted and ref is not None else None
        wish = Wish(refs=refs, broadcast=broadcast)
        posted = messages.post_raw(board.site, board.session, board.caller(agent), agent, body, wish)
        board.posted.append(posted.published.filename)

    return move


def promote(agent: str, body: str, again: bool) -> Move:
    def move(board: Board) -> None:
        source = board.source(agent, f"---\ntitle: T\nrefs: {' '.join(board.posted[-2:])}\n---\n{body}", again=again)
        posted = messages.post_source(board.site, board.session, board.caller(agent), source, Wish())
        board.posted.append(posted.published.filename)

    return move


def race(agent: str, tps: str, status: str, again: bool) -> Move:
    def move(board: Board) -> None:
        text = racers.result_text(tps=tps, status=status, refs=", ".join(board.posted[-1:]), submission="subs/x")
        source = board.source(agent, text, again=again)
        published = results.post(board.site, board.session, board.caller(agent), source)
        board.posted.append(published.filename)
        board.results.append(published.filename)

    return move


def verdict(index: int, found: Verdict) -> Move:
    def move(board: Board) -> None:
        if board.results:
            name = board.results[index % len(board.results)]
            results.record_verdict(board.site, board.session, name, found)

    return move


def register(agent: str, model: str) -> Move:
    def move(board: Board) -> None:
        application = Application(agent, model, "h", tools=("t", "u"), force=True)
        registrations.register(board.site, board.session, board.tokens[agent], application)

    return move


def tick(seconds: float) -> Move:
    return lambda board: board.clock.forward(seconds=seconds)


def withdraw(agent: str, index: int, act: str) -> Move:
    """Retract, hide or unhide any record so far; most are somebody else's, and refused."""

    def move(board: Board) -> None:
        if board.posted:
            name = board.posted[index % len(board.posted)]
            folder = "results" if name in board.results else "message_board"
            done = getattr(moderation_acts, act)
            done(board.site, board.session, board.caller(agent), name, "For a\nreason.", folder=folder)

    return move


def supersede(agent: str, index: int) -> Move:
    def move(board: Board) -> None:
        wish = Wish(supersedes=board.posted[index % len(board.posted)]) if board.posted else Wish()
        posted = messages.post_raw(board.site, board.session, board.caller(agent), agent, "Better said.", wish)
        board.posted.append(posted.published.filename)

    return move


HISTORY = {
    "agents/old-owl.md": "---\nhf_user: bob\nagent_model: m\n---\nAn owl of 2025.",
    "message_board/20250608-150000_ant_0123abcd.md": "---\nvia: server\n---\nAn ant of old.",
    "message_board/20250608-150000_old-owl_0123abcd.md": "---\nrefs: 20250608-150000_ant_0123abcd.md\n---\nFor @bee.",
    "results/20250608-160000-000_old-owl.md": racers.result_text(refs="20250608-150000_old-owl_0123abcd.md"),
    "results/verification_status.json": '{"20250608-160000-000_old-owl.md": "valid"}',
}


def take_in(count: int) -> Move:
    """Import the first files of another board, perhaps once more."""

    def move(board: Board) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for path, text in list(HISTORY.items())[:count]:
                (Path(folder) / path).parent.mkdir(exist_ok=True)
                (Path(folder) / path).write_text(text)
            import_board(board.site, board.session, Path(folder), label="elsewhere")
        names = [path.rpartition("/")[2] for path in list(HISTORY)[1:4] if HISTORY and path in list(HISTORY)[:count]]
        board.posted += [name for name in names if name not in board.posted]
        board.results += [name for name in names if name.startswith("20250608-16") and name not in board.results]

    return move


agents = st.sampled_from(AGENTS)
rates = st.floats(0.5, 2000.0)
draws = st.builds(Draw, st.integers(1, 9), st.sampled_from(["completed", "failed"]), score=st.none() | rates)
gates = st.builds(Gate, st.just("guard"), st.booleans(), st.none() | rates, st.none() | rates)
found = st.builds(
    Verdict,
    state=st.sampled_from(State),
    reason=st.sampled_from(["", "Because."]),
    measured=rates,
    interval_low=st.none() | rates,
    interval_high=st.none() | rates,
    n=st.integers(0, 9),
    hardware=st.sampled_from(["", "cpu", "h200"]),
    claim_state=st.sampled_from(["", "held", "overclaimed"]),
    gates=st.lists(gates, max_size=2).map(tuple),
    draws=st.lists(draws, max_size=3).map(tuple),
)
moves = st.one_of(
    st.builds(say, agents, st.sampled_from(BODIES), st.none() | st.integers(0, 20), st.booleans()),
    st.builds(promote, agents, st.sampled_from(BODIES), st.booleans()),
    st.builds(
        race,
        agents,
        st.sampled_from(["507.3", "1", "2", "3", ".nan", "8:26"]),
        st.sampled_from(["agent-run", "negative"]),
        st.booleans(),
    ),
    *[st.builds(verdict, st.integers(0, 1), found)] * 3,  # several on one result, so that none leaves a trace
    *[st.builds(withdraw, agents, st.integers(0, 5), st.sampled_from(["retract", "hide", "unhide"]))] * 3,
    st.builds(supersede, agents, st.integers(0, 5)),
    st.builds(take_in, st.integers(1, 5)),
    st.builds(register, agents, st.sampled_from(["m", "n: 1", "ü"])),
    work.moves(agents, st.sampled_from(BODIES)),
    st.builds(tick, st.floats(-100.0, 100.0)),
)


@contextmanager
def fresh_board() -> Iterator[Board]:
    with tempfile.TemporaryDirectory() as folder:
        challenge = Path(folder) / "challenge.toml"
        challenge.write_text(CHALLENGE + LIMITS)
        clock = HeldClock()
        site = open_site(Settings(data=Path(folder) / "data", challenge=challenge), clock=clock)
        try:
            with writing(site.engine) as session:
                yield Board(site, session, clock)
        finally:
            site.engine.dispose()


def play(board: Board, history: list[Move]) -> int:
    """Make each move in a transaction of its own, as requests do; return how many were refused."""
    refused = 0
    for move in history:
        savepoint = board.session.begin_nested()
        try:
            move(board)
            savepoint.commit()
        except PaddockError:
            savepoint.rollback()
            refused += 1
    return refused


@settings(max_examples=25, deadline=None)
@given(st.lists(moves, min_size=5, max_size=25))
def test_any_history_rebuilds_to_the_rows_it_left(history: list[Move]) -> None:
    with fresh_board() as board:
        play(board, history)
        assert reindex.check(board.site, board.session) == []
        report = reindex.rebuild(board.site, board.session)
        assert report.bad == []
        assert report.indexed["results"] == len(board.results)
        assert report.indexed["message_board"] == len(board.posted) - len(board.results)
        assert reindex.check(board.site, board.session) == []


def test_every_way_of_taking_away_is_made_and_rebuilds() -> None:
    history = [
        say("ant", "For @bee.", None, True),
        say("bee", "An answer.", 0, False),
        race("cow", "507.3", "agent-run", False),
        verdict(0, Verdict(state=State.VALID, measured=480.0)),
        withdraw("ant", 0, "retract"),
        withdraw("ant", 1, "hide"),
        withdraw("ant", 2, "hide"),
        supersede("bee", 1),
        withdraw("ant", 2, "unhide"),
        withdraw("bee", 0, "hide"),
        take_in(5),
        say("cow", "About the old owl.", 5, False),
        withdraw("ant", 4, "hide"),
        withdraw("bee", 5, "retract"),
    ]
    with fresh_board() as board:
        assert play(board, history) == 2  # bee is no organizer, and nobody retracts what was imported
        assert (len(board.posted), len(board.results)) == (8, 2)
        assert reindex.check(board.site, board.session) == []


def test_one_of_every_move_is_made_and_told_apart_from_refusals() -> None:
    history = [
        say("ant", "For @bee.", None, True),
        promote("bee", "Hello @cow.", False),
        race("cow", "507.3", "agent-run", False),
        race("cow", ".nan", "agent-run", False),
        verdict(0, Verdict(state=State.VALID, measured=480.0)),
        say("bee", "Not an organizer.", 0, True),
        tick(-50),
        work.gather("ant", "int4", "Join in.", False),
        work.gather("bee", "int4", "Mine.", True),
        work.note("bee", "int4", "A note.", False),
        work.share("cow", "int4", "b/c"),
        *(work.moderate("ant", "int4", index, "hide") for index in range(4)),
        work.moderate("bee", "int4", 0, "unhide"),
        work.share("cow", "int4", "b/c"),
        work.gather("ant", "int4", "Once more.", False),
        work.trace("cow", "s1", "{total: 7}", Share.FULL),
        work.trace("cow", "s1", "{total: 8}", Share.STATS),
        work.trace("cow", "s2", "{total: -1}", Share.STATS),
        register("ant", "other"),
        say("ant", "After the clock went back.", 2, False),
    ]
    with fresh_board() as board:
        assert play(board, history) == 7  # what is hidden stays, and bee is no organizer
        assert board.posted == sorted(board.posted)
        assert (len(board.posted), len(board.results)) == (4, 1)
        assert reindex.check(board.site, board.session) == []
