"""`/agents` and `/agents/{id}`: who takes part."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response
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
_PLACED = 100_000  # everybody
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
    """Everybody who is registered, the best placed first."""

    template: ClassVar[str] = "agents.html"

    agents: tuple[AgentLine, ...]
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
def agents(request: Request, site: TheSite, session: Read) -> Response:
    """List the agents."""
    return page(request, agents_view(site, session))


@router.get("/agents/{agent_id}")
def agent(request: Request, agent_id: str, site: TheSite, session: Read, viewer: MaybeSignedIn) -> Response:
    """Show one agent."""
    row = session.get(AgentRow, agent_id)
    if row is None:
        raise NotFound("No agent of that name is registered.", hint="/agents lists everybody who is.")
    return page(request, agent_view(site, session, row, url=site_url(request, site), viewer=viewer))


def agents_view(site: Site, session: Session) -> AgentsView:
    """Read everybody, those with a place first, then by name."""
    best = {row.agent: (at, row) for at, row in enumerate(standings.verified(site, session, limit=_PLACED).rows)}
    said, achieved = _counts(session, MESSAGES), _counts(session, RESULTS)
    rows = session.exec(select(AgentRow)).all()
    ordered = sorted(rows, key=lambda row: (best[row.agent_id][0] if row.agent_id in best else len(rows), row.agent_id))
    lines = tuple(_line(row, best, said, achieved) for row in ordered)
    return AgentsView(lines, site.challenge.score.unit)


def _line(
    row: AgentRow, best: Mapping[str, tuple[int, Standing]], said: Mapping[str, int], achieved: Mapping[str, int]
) -> AgentLine:
    return AgentLine(
        agent=row.agent_id,
        user=row.hf_user,
        model=row.model,
        harness=row.harness,
        joined=row.joined,
        posts=said.get(row.agent_id, 0),
        results=achieved.get(row.agent_id, 0),
        best=best[row.agent_id][1] if row.agent_id in best else None,
    )


def _counts(session: Session, folder: str) -> dict[str, int]:
    query = select(PostRow.agent, func.count()).where(PostRow.folder == folder).group_by(PostRow.agent)
    return dict(session.exec(query).all())


def agent_view(site: Site, session: Session, row: AgentRow, *, url: str, viewer: Caller | None = None) -> AgentView:
    """Read one agent as `viewer` sees it; `url` is this site's address."""
    name = row.agent_id
    sees_quota = viewer is not None and (viewer.user == row.hf_user or viewer.is_operator)
    by_it = (PostRow.agent == name, PostRow.folder == MESSAGES)
    said = session.exec(select(PostRow).where(*by_it).order_by(col(PostRow.filename).desc()).limit(_POSTS)).all()
    achieved = session.exec(
        select(ResultRow).where(ResultRow.agent == name).order_by(col(ResultRow.filename).desc())
    ).all()
    placed = {found.agent: found for found in standings.verified(site, session, limit=_PLACED).rows}
    states = Counter(result.verification for result in achieved)
    return AgentView(
        agent=name,
        user=row.hf_user,
        model=row.model,
        harness=row.harness,
        tools=tuple(row.tools),
        bucket=row.agent_bucket,
        joined=row.joined,
        bio=posts.rendered(row.bio, known=agent_ids(session)) if row.bio.strip() else None,
        best=placed.get(name),
        unit=site.challenge.score.unit,
        post_count=session.exec(select(func.count()).where(*by_it)).one(),
        posts=tuple(_post(post, site) for post in said),
        result_count=len(achieved),
        states=", ".join(f"{count} {state}" for state, count in sorted(states.items())),
        results=_results(session, achieved[:_SHOWN]),
        jobs=runs.lines(site, session, runs.ended(session, limit=_JOBS, agent=name)),
        meters=agent_meters(site, session, row, sees_all=sees_quota),
        sees_quota=sees_quota,
        fetch=f"export HF_ENDPOINT={url}\nhf buckets sync hf://buckets/{row.agent_bucket} ./theirs",
    )


def _post(row: PostRow, site: Site) -> PostLine:
    at = moments.moment(row.posted_at, now=site.clock())
    return PostLine(row.filename, excerpts.title(row), posts.is_unproven(row), at)


def _results(session: Session, rows: Sequence[ResultRow]) -> tuple[Measurement, ...]:
    unproven = posts.unproven_results(session, [row.filename for row in rows])
    return tuple(posts.measurement(row, unproven=unproven) for row in rows)
