from datetime import UTC, datetime

import pytest
from sqlmodel import Session

from board.listing import ListQuery, Page, in_folder, page, read_moment, read_query
from board.messages import to_record
from board.promotion import publish
from storage.errors import InvalidPath, InvalidQuery
from storage.site import Site

FOLDER = in_folder("message_board")


@pytest.fixture
def names(site: Site, session: Session, clock) -> list[str]:
    """Six messages, an hour apart, of two agents, and a result that no listing of messages may show."""
    made = []
    for number in range(6):
        head = {"type": "agent", "tag": "ÉCLAIR"} if number == 2 else {"type": "note"}
        done = publish(
            site, session, folder="message_board", handle=("ada-bot", "bob")[number % 2], frontmatter=head,
            body=f"Number {number} 100%_sure", via=("raw", "bucket")[number % 2],
        )  # fmt: skip
        made.append(done.filename)
        clock.forward(hours=1)
    publish(site, session, folder="results", handle="bob", frontmatter={}, body="r", via="bucket")
    return made


def ask(session: Session, **params: str) -> Page:
    return page(session, FOLDER, read_query(params), expand_limit=4)


def listed(session: Session, **params: str) -> list[str]:
    return [row.filename for row in ask(session, **params).rows]


def test_newest_first_and_any_other_order_is_ascending(session: Session, names: list[str]) -> None:
    assert listed(session) == names[::-1]
    assert listed(session, order="asc") == listed(session, order="sideways") == names


def test_pages_follow_next_in_both_directions(session: Session, names: list[str]) -> None:
    for order, cursor, expected in (("desc", "before", names[::-1]), ("asc", "after", names)):
        seen: list[str] = []
        found = ask(session, order=order, limit="4")
        while True:
            seen += [row.filename for row in found.rows]
            assert (found.count, found.matched) == (6, 6)
            if found.next is None:
                break
            found = ask(session, order=order, limit="4", **{cursor: found.next})
        assert seen == expected


def test_cursors_are_exclusive(session: Session, names: list[str]) -> None:
    assert listed(session, after=names[1], before=names[4], order="asc") == names[2:4]


def test_a_last_page_that_is_full_has_no_next(session: Session, names: list[str]) -> None:
    assert ask(session, limit="6").next is None


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_of_zero_or_less_means_all(session: Session, names: list[str], limit: str) -> None:
    assert len(listed(session, limit=limit)) == 6


def test_full_records_come_in_capped_pages(session: Session, names: list[str]) -> None:
    found = ask(session, expand="true", limit="0")
    assert (len(found.rows), found.next) == (4, names[2])
    item = found.as_json(to_record)["items"][0]
    assert item["filename"] == names[5]
    assert item["frontmatter"]["agent"] == "bob"
    assert item["body"] == "Number 5 100%_sure"


@pytest.mark.parametrize(
    ("since", "first"),
    [
        ("2026-11-29T14:00:00Z", 2),
        ("2026-11-29T14:00:00", 2),
        ("2026-11-29T15:00:00+01:00", 2),
        ("2026-11-29T15:00:00 01:00", 2),
        ("2026-11-29T14:00:00.001Z", 3),
        ("20261129-140000", 2),
        ("20261129-140000-000", 2),
        ("20261129-140000-001", 3),
        ("20261129", 0),
        ("2026-11-29", 0),
        ("20261130", 6),
    ],
)
def test_since_is_inclusive_in_every_form(session: Session, names: list[str], since: str, first: int) -> None:
    assert listed(session, since=since, order="asc") == names[first:]


def test_until_is_inclusive_and_means_the_first_millisecond(session: Session, names: list[str]) -> None:
    assert listed(session, until="20261129-140000", order="asc") == names[:3]
    assert listed(session, until="20261129") == []


def test_filters_and_search_count_in_matched(session: Session, names: list[str]) -> None:
    found = ask(session, agent="bob", limit="2")
    assert (found.count, found.matched, len(found.rows)) == (6, 3, 2)
    assert listed(session, via="raw", type="agent") == [names[2]]
    assert listed(session, q="éclair") == listed(session, q="nUMBER 2") == [names[2]]
    assert len(listed(session, q="100%_SURE")) == 6
    assert listed(session, q="100_") == []


@pytest.mark.parametrize(
    "params",
    [{"since": "yesterday"}, {"until": "20261399"}, {"since": "0001-01-01T00:00:00+14:00"}, {"limit": "ten"},
     {"limit": "1.5"}, {"expand": "maybe"}, {"since": "20261129-1200"}],
)  # fmt: skip
def test_what_cannot_be_read_is_an_invalid_query(params: dict[str, str]) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        read_query(params)
    assert refusal.value.code == "INVALID_QUERY"


def test_capitals_in_a_handle_are_an_invalid_path_with_a_hint() -> None:
    with pytest.raises(InvalidPath) as refusal:
        read_query({"agent": "Bob"})
    assert "bob" in (refusal.value.hint or "")


def test_an_empty_question_has_the_defaults() -> None:
    assert read_query({"q": None}) == ListQuery()
    assert read_moment("20261129-120000-007") == datetime(2026, 11, 29, 12, 0, 0, 7000, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["2026-11-29T12:00:00 01:00", "2026-11-29T12:00:00 0100", "2026-11-29T12:00:00 01", "2026-11-29 12:00:00 01:00"],
)
def test_a_plus_that_became_a_space_is_still_an_offset(text: str) -> None:
    assert read_moment(text) == datetime(2026, 11, 29, 11, tzinfo=UTC)
    assert read_moment("2026-11-29 12:30") == datetime(2026, 11, 29, 12, 30, tzinfo=UTC)
