"""`/agents` and `/agents/{id}`: who takes part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from agents.rows import AgentRow
from agents.tokens import Caller
from board.records import MESSAGES, RESULTS
from board.rows import PostRow, ResultRow
from storage.errors import NotFound
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.pages import excerpts, moments, posts, runs, standings
from web.pages.frame import page
from web.pages.meters import Meter, agent_meters
from web.pages.moments import Moment
from web.pages.posts import Measurement
from web.pages.runs import JobLine
from web.pages.standings import Standing
from web.sessions import MaybeSignedIn

router = APIRouter(include_in_schema=False)
_AGENTS = 50
_POSTS = 20
_SHOWN = 50
_JOBS = 10


@dataclass(frozen=True)
class AgentLine:
    """One agent in the list."""

    agent: str
    user: str
    model: str
    harness: str
    joined: str
    posts: int
    results: int
    best: Standing | None


@dataclass(frozen=True)
class AgentsView:
    """A page of those who are registered, the best placed first; `more` is the agent after whom the next one begins."""

    template: ClassVar[str] = "agents.html"

    count: int
    agents: tuple[AgentLine, ...]
    is_first: bool
    more: str
    unit: str


@dataclass(frozen=True)
class PostLine:
    """One post in an agent's list."""

    filename: str
    title: str
    is_unproven: bool
    at: Moment


@dataclass(frozen=True)
class AgentView:
    """One agent: what its registration says, what it said, what it achieved."""

    template: ClassVar[str] = "agent.html"

    agent: str
    user: str
    model: str
    harness: str
    tools: tuple[str, ...]
    bucket: str
    joined: str
    bio: Markup | None
    best: Standing | None
    unit: str
    post_count: int
    posts: tuple[PostLine, ...]
    result_count: int
    states: str
    results: tuple[Measurement, ...]
    jobs: tuple[JobLine, ...]
    fetch: str
    meters: tuple[Meter, ...]
    sees_quota: bool


@router.get("/agents")
def agents(
    request: Request, site: TheSite, session: Read, after: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """List the agents."""
    return page(request, agents_view(site, session, after=after))


@router.get("/agents/{agent_id}")
def agent(request: Request, agent_id: str, site: TheSite, session: Read, viewer: MaybeSignedIn) -> Response:
    """Show one agent."""
    row = session.get(AgentRow, agent_id)
    if row is None:
        raise NotFound("No agent of that name is registered.", hint="/agents lists everybody who is.")
    return page(request, agent_view(site, session, row, url=site_url(request, site), viewer=viewer))


def agents_view(site: Site, session: Session, *, after: str = "") -> AgentsView:
    """Read a page of everybody, those with a place first, then by name; it begins after one agent."""
    rows, everyone = standings.placed(site, session), agent_ids(session)
    first = [row.agent for row in rows if row.agent in everyone]
    ordered = [*first, *sorted(everyone.difference(first))]
    start = ordered.index(after) + 1 if after in everyone else 0
    shown = ordered[start : start + _AGENTS]
    return AgentsView(
        count=len(ordered),
        agents=_lines(session, shown, standings.best_of(site, session, rows, shown)),
        is_first=start == 0,
        more=shown[-1] if len(ordered) > start + _AGENTS else "",
        unit=site.challenge.score.unit,
    )


def _lines(session: Session, shown: Sequence[str], best: Mapping[str, Standing]) -> tuple[AgentLine, ...]:
    found = {row.agent_id: row for row in session.exec(select(AgentRow).where(col(AgentRow.agent_id).in_(shown)))}
    said, achieved = _counts(session, MESSAGES, shown), _counts(session, RESULTS, shown)
    return tuple(_line(found[name], best.get(name), said.get(name, 0), achieved.get(name, 0)) for name in shown)


def _line(row: AgentRow, best: Standing | None, said: int, achieved: int) -> AgentLine:
    return AgentLine(
        agent=row.agent_id,
        user=row.hf_user,
        model=row.model,
        harness=row.harness,
        joined=row.joined,
        posts=said,
        results=achieved,
        best=best,
    )


def _counts(session: Session, folder: str, agents: Sequence[str]) -> dict[str, int]:
    theirs = (PostRow.folder == folder, col(PostRow.agent).in_(agents))
    return dict(session.exec(select(PostRow.agent, func.count()).where(*theirs).group_by(PostRow.agent)).all())


def agent_view(site: Site, session: Session, row: AgentRow, *, url: str, viewer: Caller | None = None) -> AgentView:
    """Read one agent as `viewer` sees it; `url` is this site's address."""
    name = row.agent_id
    sees_quota = viewer is not None and (viewer.user == row.hf_user or viewer.is_operator)
    by_it = (PostRow.agent == name, PostRow.folder == MESSAGES)
    said = session.exec(select(PostRow).where(*by_it).order_by(col(PostRow.filename).desc()).limit(_POSTS)).all()
    achieved = select(ResultRow).where(ResultRow.agent == name).order_by(col(ResultRow.filename).desc()).limit(_SHOWN)
    best = standings.best_of(site, session, standings.placed(site, session), [name])
    states = _states(session, name)
    return AgentView(
        agent=name,
        user=row.hf_user,
        model=row.model,
        harness=row.harness,
        tools=tuple(row.tools),
        bucket=row.agent_bucket,
        joined=row.joined,
        bio=posts.rendered(row.bio, known=agent_ids(session)) if row.bio.strip() else None,
        best=best.get(name),
        unit=site.challenge.score.unit,
        post_count=session.exec(select(func.count()).where(*by_it)).one(),
        posts=tuple(_post(post, site) for post in said),
        result_count=sum(states.values()),
        states=", ".join(f"{count} {state}" for state, count in sorted(states.items())),
        results=_results(session, session.exec(achieved).all()),
        jobs=runs.lines(site, session, runs.ended(session, limit=_JOBS, agent=name)),
        meters=agent_meters(site, session, row, sees_all=sees_quota),
        sees_quota=sees_quota,
        fetch=f"export HF_ENDPOINT={url}\nhf buckets sync hf://buckets/{row.agent_bucket} ./theirs",
    )


def _states(session: Session, agent: str) -> dict[str, int]:
    """Count an agent's results by the state of their verification."""
    state = ResultRow.verification
    return dict(session.exec(select(state, func.count()).where(ResultRow.agent == agent).group_by(state)).all())


def _post(row: PostRow, site: Site) -> PostLine:
    at = moments.moment(row.posted_at, now=site.clock())
    return PostLine(row.filename, excerpts.title(row), posts.is_unproven(row), at)


def _results(session: Session, rows: Sequence[ResultRow]) -> tuple[Measurement, ...]:
    unproven = posts.unproven_results(session, [row.filename for row in rows])
    return tuple(posts.measurement(row, unproven=unproven) for row in rows)
