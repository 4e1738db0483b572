"""Results: posting one, finding what it submitted, recording what verification found."""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from agents.tokens import Caller
from board import claims, events, outcomes, submissions, verdicts, verification_status
from board.attribution import Level, level_of
from board.changes import take_turn
from board.claims import Status
from board.listing import Folder, Record, in_folder
from board.messages import refuse_broadcast_key, to_record
from board.promotion import Published, load_source, publish, type_of
from board.records import RESULTS, RecordName, parse_name
from board.rows import PostRow, ResultRow
from board.verdicts import State, Verdict
from storage.buckets import Put
from storage.errors import NotFound
from storage.paths import Source
from storage.site import Site

_AT_ONCE = 1000
"""How many names one statement holds."""


class ResultNotFound(NotFound):
    """There is no result of that file name."""

    code = "NOT_FOUND"


def post(site: Site, session: Session, caller: Caller | None, source: str) -> Published:
    """Publish the result that `source` names in the caller's scratch bucket; its verification is pending.

    Raises:
        InvalidFrontmatter: it lacks a field or holds one that can't be ranked.
        NotOrganizer: it asks for a broadcast.
        PaddockError: as `promotion.load_source` and `promotion.publish`. Nothing is written.
    """
    file = load_source(site, session, caller, source)
    head = file.document.frontmatter
    refuse_broadcast_key(head)
    claims.read(head, site.challenge)
    published = publish(
        site,
        session,
        folder=RESULTS,
        handle=file.agent_id,
        frontmatter={**head, "type": type_of(head.get("type"), default="agent")},
        body=file.document.body,
        via="bucket",
        dedup=file.dedup,
        proof=None if caller else "none",
    )
    session.add(outcomes.row_of(site, _name(published.filename), published.row.frontmatter))
    verification_status.write(site, session)
    return published


def listing_of(*, status: Status | None = None, states: frozenset[State] | None = None) -> Folder:
    """The folder of results, narrowed to a status and to states in the words of old clients, for a listing."""
    if status is None and states is None:
        return in_folder(RESULTS)
    asked = select(ResultRow.filename)
    if status is not None:
        asked = asked.where(ResultRow.status == status)
    if states is not None:
        asked = asked.where(col(ResultRow.verification).in_([state for state in State if state.shown in states]))
    return in_folder(RESULTS, col(PostRow.filename).in_(asked))


def to_records(session: Session, posts: Sequence[PostRow]) -> list[Record]:
    """Shape results as messages are, each with its verification in the words of old clients and the reason for it."""
    names = [post.filename for post in posts]
    found = {row.filename: row for row in session.exec(select(ResultRow).where(col(ResultRow.filename).in_(names)))}
    return [{**to_record(post), **_standing(found.get(post.filename))} for post in posts]


def _standing(row: ResultRow | None) -> Record:
    if row is None:
        return {"verification": State.PENDING.value, "reason": ""}
    return {"verification": State(row.verification).shown.value, "reason": row.reason}


def proofs_of(session: Session, filenames: Sequence[str]) -> dict[str, Level]:
    """Say what stands behind the author of each of some results."""
    found: dict[str, Level] = {}
    for start in range(0, len(filenames), _AT_ONCE):
        named = col(PostRow.filename).in_(filenames[start : start + _AT_ONCE])
        asked = select(PostRow.filename, PostRow.frontmatter).where(PostRow.folder == RESULTS, named)
        found |= {filename: level_of(head) for filename, head in session.exec(asked)}
    return found


def get_row(session: Session, filename: str) -> ResultRow:
    """Return what is indexed of a result.

    Raises:
        ResultNotFound: there is none of that name.
    """
    row = session.get(ResultRow, filename)
    if row is None:
        raise ResultNotFound(f"There is no result {filename!r:.120}.", hint="GET /v1/results lists them.")
    return row


def find_submission(site: Site, session: Session, filename: str) -> Source | None:
    """Return the folder with the manifest that a result submitted, or None if it names none that is there.

    Raises:
        ResultNotFound: there is no result of that name.
    """
    row = get_row(session, filename)
    central, scratch = site.central, site.scratch(row.agent)
    places = submissions.named(_frontmatter(session, filename), central=central, scratch=scratch)
    return submissions.find(site.buckets(session), places, central=central, scratch=scratch)


def record_verdict(site: Site, session: Session, filename: str, verdict: Verdict) -> ResultRow:
    """Keep a verdict: its file, what is indexed of it, and the map of states, in the session's transaction.

    Raises:
        ResultNotFound: there is no result of that name.
        BadVerdict: a field is out of its bounds. Nothing is written.
    """
    get_row(session, filename)
    take_turn(session)  # before the bucket's locks, as whoever posts does: else two writers deadlock
    data, path = verdicts.to_bytes(verdict), verdicts.path_of(filename)
    site.buckets(session).apply(site.central, [Put(path, data, "application/json")])
    row = outcomes.row_of(site, _name(filename), _frontmatter(session, filename))
    outcomes.apply_verdict(row, verdicts.parse(data), path=path)
    row = session.merge(row)
    verification_status.write(site, session)
    told = {"filename": filename, "agent": row.agent, "verification": row.verification}
    events.record(session, events.Kind.VERDICT, told, now=site.clock())
    return row


def refresh(site: Site, session: Session, filename: str) -> None:
    """Index a result anew from its post and its verdict, after another text took the post's place.

    Raises:
        ResultNotFound: there is no result of that name.
    """
    before = get_row(session, filename)
    row = outcomes.row_of(site, _name(filename), _frontmatter(session, filename))
    if before.verdict_path:
        found = verdicts.parse(site.buckets(session).read(site.central, before.verdict_path))
        outcomes.apply_verdict(row, found, path=before.verdict_path)
    elif row.verification != State.IMPORTED:
        row.verification = before.verification  # the map of an older board listed it
    session.merge(row)
    session.flush()


def _frontmatter(session: Session, filename: str) -> dict[str, object]:
    asked = select(PostRow.frontmatter).where(PostRow.folder == RESULTS, PostRow.filename == filename)
    return dict(session.exec(asked).first() or {})


def _name(filename: str) -> RecordName:
    name = parse_name(filename)
    assert name is not None  # only files of that form are indexed
    return name
