import json
from datetime import UTC, datetime

import pytest
from sqlmodel import Session, SQLModel, select

from board import results, verdicts, verification_status
from board.results import ResultNotFound
from board.rows import PostRow, PromotionRow, ResultRow
from board.verdicts import BadVerdict, Draw, Gate, State, Verdict
from storage.buckets import Put
from storage.errors import Conflict, Forbidden, InvalidFrontmatter, PaddockError
from storage.paths import Source
from storage.site import Site
from tests.board import racers

AT = datetime(2026, 11, 29, 12, 5, tzinfo=UTC)
VERDICT = Verdict(
    state=State.VALID,
    measured=480.0,
    interval_low=478.0,
    interval_high=482.0,
    measured_guard=2.4,
    n=2,
    hardware="cpu",
    claim_state="overclaimed",
    opened_at=AT,
    closed_at=AT,
    gates=(Gate("guard", True, 2.4, 2.5),),
    draws=(Draw(1, "completed", "", 479.0, 2.4, AT, AT), Draw(2, "completed", "", 481.0, 2.4, AT, AT)),
)


def everything(site: Site, session: Session) -> tuple[object, ...]:
    """Every file of the central bucket and every row that a post could touch."""
    files = [(file.path, file.digest) for file in site.buckets(session).list(site.central)]
    tables: list[type[SQLModel]] = [PostRow, ResultRow, PromotionRow]
    return files, [row.model_dump() for table in tables for row in session.exec(select(table))]


def states(site: Site, session: Session) -> object:
    return json.loads(site.buckets(session).read(site.central, verification_status.PATH))


def test_a_posted_result_is_a_file_a_row_and_an_entry_of_the_map(site: Site, session: Session) -> None:
    racers.enlist(site, session, "blue-heron")
    published = racers.post(site, session, "blue-heron", submission="submissions/blue-heron/mine")
    row = results.get_row(session, published.filename)
    assert published.path == f"results/{published.filename}"
    assert (row.claimed, row.guard, row.verification, row.malformed) == (507.3, 2.39, "pending", False)
    assert row.submission == "hf://buckets/race/tiny-blue-heron/submissions/blue-heron/mine"
    assert site.buckets(session).stat(site.central, published.path) is not None
    assert states(site, session) == {published.filename: "pending"}


def test_a_negative_result_is_listed_as_such(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    assert results.get_row(session, racers.post(site, session, "a", status="negative").filename).status == "negative"


@pytest.mark.parametrize(
    "fields",
    [
        {"ppl": ""},
        {"method": ""},
        {"status": "great"},
        *({"tps": bad} for bad in (".nan", ".inf", "-.inf", "8:26", "9" * 401, "0", "-1", "0.0", "507.3 tok/s")),
        *({"tps": bad} for bad in ("1e3", "0x1F", "1_000", "0777", "true", "[507.3]", "!!float 5", "'507.3 tok/s'")),
        *({"ppl": bad} for bad in (".nan", ".inf", "8:26", "9" * 401, "0", "-1")),
    ],
    ids=str,
)
def test_a_result_that_cannot_rank_is_refused_and_nothing_is_written(
    site: Site, session: Session, fields: dict[str, str]
) -> None:
    racers.enlist(site, session, "a")
    source = racers.stage(site, session, "a", "r.md", racers.result_text(**fields))
    before = everything(site, session)
    with pytest.raises(InvalidFrontmatter) as caught:
        results.post(site, session, racers.caller(), source)
    session.flush()
    assert caught.value.code == "INVALID_FRONTMATTER"
    assert everything(site, session) == before


def test_anothers_bucket_is_no_source_and_nothing_is_written(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    source = racers.stage(site, session, "a", "r.md", racers.result_text())
    before = everything(site, session)
    with pytest.raises(Forbidden) as caught:
        results.post(site, session, racers.caller("mallory"), source)
    assert caught.value.code == "BUCKET_NOT_OWNED_BY_CALLER"
    assert everything(site, session) == before


def test_the_same_bytes_are_posted_once(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    first = racers.post(site, session, "a")
    with pytest.raises(Conflict) as caught:
        racers.post(site, session, "a")
    assert (caught.value.code, caught.value.hint) == ("ALREADY_PROMOTED", first.filename)
    assert states(site, session) == {first.filename: "pending"}


def test_a_verdict_is_a_file_a_row_and_an_entry_of_the_map(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    name = racers.post(site, session, "a").filename
    row = results.record_verdict(site, session, name, VERDICT)
    stored = site.buckets(session).read(site.central, verdicts.path_of(name))
    assert verdicts.parse(stored) == VERDICT
    assert (row.verification, row.measured, row.n, row.draws) == ("valid", 480.0, 2, [479.0, 481.0])
    assert (row.claim_state, row.hardware, row.verdict_path) == ("overclaimed", "cpu", verdicts.path_of(name))
    assert states(site, session) == {name: "valid"}


def test_an_inconclusive_verdict_shows_as_pending_in_the_map(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    name = racers.post(site, session, "a").filename
    row = results.record_verdict(site, session, name, Verdict(state=State.INCONCLUSIVE, reason="More draws."))
    assert (row.verification, row.reason) == ("inconclusive", "More draws.")
    assert states(site, session) == {name: "pending"}


def test_a_later_verdict_leaves_nothing_of_the_earlier_one_behind(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    name = racers.post(site, session, "a", hardware="h200").filename
    results.record_verdict(site, session, name, VERDICT)
    row = results.record_verdict(site, session, name, Verdict(state=State.INVALID, reason="guard"))
    assert (row.verification, row.measured, row.draws, row.n, row.hardware) == ("invalid", None, [], 0, "h200")


def test_a_verdict_on_nothing_or_with_nonsense_writes_nothing(site: Site, session: Session) -> None:
    racers.enlist(site, session, "a")
    name = racers.post(site, session, "a").filename
    before = everything(site, session)
    with pytest.raises(ResultNotFound):
        results.record_verdict(site, session, "20200101-000000-000_a.md", VERDICT)
    with pytest.raises(BadVerdict):
        results.record_verdict(site, session, name, Verdict(state=State.PENDING, measured=float("nan")))
    assert everything(site, session) == before


CASES = {
    "relative": {"submission": "subs/mine"},
    "with a slash": {"submission": "subs/mine/"},
    "back-ticked": {"submission": '"`subs/mine`"'},
    "a URI": {"submission": "hf://buckets/race/tiny-a/subs/mine"},
    "a list, the first that holds one": {"submission": "[subs/none, hf://buckets/race/tiny-a/subs/mine]"},
    "the manifest itself": {"submission": "subs/mine/manifest.json"},
    "artifacts when submission holds none": {"submission": "subs/none", "artifacts": "['`subs/mine`']"},
    "the request of a run folder": {"artifacts": "runs/with-request"},
    "the status of a run folder": {"submission": "subs/none", "artifacts": "runs/with-status"},
    "past others' buckets": {"submission": "hf://buckets/race/tiny-b/subs/theirs", "artifacts": "subs/mine"},
    "past nonsense": {"submission": "[../up, 5, hf://elsewhere/x, /abs, '', hf://buckets/race/nowhere/x, subs/mine]"},
}


def furnish(site: Site, session: Session) -> None:
    """Give agent `a` a submission and run folders, `b` a submission, and the centre an artifact."""
    for agent, user in (("a", "ann"), ("b", "bob")):
        racers.enlist(site, session, agent, user)
    for agent, path, text in (
        ("a", "subs/mine/manifest.json", "{}"),
        ("b", "subs/theirs/manifest.json", "{}"),
        ("a", "runs/with-request/run_request.json", '{"submission_prefix": "subs/mine"}'),
        ("a", "runs/with-status/run_request.json", "[" * 100_000),
        ("a", "runs/with-status/job_status.json", '{"submission_prefix": "subs/mine/"}'),
        (
            "a",
            "runs/thief/run_request.json",
            '{"submission_bucket": "race/tiny-b", "submission_prefix": "subs/theirs"}',
        ),
        ("a", "runs/climber/run_request.json", '{"submission_prefix": "../tiny-b/subs/theirs"}'),
    ):
        racers.stage(site, session, agent, path, text)
    site.buckets(session).apply(site.central, [Put("artifacts/x_a/manifest.json", b"{}")])


@pytest.mark.parametrize("fields", CASES.values(), ids=CASES.keys())
def test_a_submission_is_found_by(site: Site, session: Session, fields: dict[str, str]) -> None:
    furnish(site, session)
    name = racers.post(site, session, "a", **fields).filename
    assert results.find_submission(site, session, name) == Source(site.scratch("a"), "subs/mine")


def test_relative_artifacts_lie_in_the_central_bucket(site: Site, session: Session) -> None:
    furnish(site, session)
    name = racers.post(site, session, "a", artifacts="artifacts/x_a").filename
    assert results.find_submission(site, session, name) == Source(site.central, "artifacts/x_a")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"submission": "hf://buckets/race/tiny-b/subs/theirs"},
        {"artifacts": "runs/thief"},
        {"artifacts": "runs/climber"},
        {"submission": "hf://buckets/race-admin/tiny-audit/x"},
        {"submission": "{a: b}", "artifacts": "true"},
    ],
    ids=str,
)
def test_no_submission_is_found_in_anothers_bucket_or_in_nonsense(
    site: Site, session: Session, fields: dict[str, str]
) -> None:
    furnish(site, session)
    assert results.find_submission(site, session, racers.post(site, session, "a", **fields).filename) is None


def test_a_submission_of_an_unknown_result_is_an_error(site: Site, session: Session) -> None:
    with pytest.raises(PaddockError, match="no result"):
        results.find_submission(site, session, "nothing.md")
