"""Numbers, times and positions as the pages write them."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from web.pages import figures, moments, strips
from web.pages.excerpts import excerpt, without_title
from web.pages.logs import tail
from web.pages.strips import Measured

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [(489.26, "489.3"), (1234.5, "1,234.5"), (-1.25, "−1.2"), (None, "–"), (math.nan, "–"), (math.inf, "–")],
)
def test_a_speed_has_one_decimal(value: float | None, text: str) -> None:
    assert figures.speed(value) == text


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (96.4, 100.0, "−3.6 %"),
        (101.0, 100.0, "+1.0 %"),
        (100.0, 100.0, "0.0 %"),
        (99.999, 100.0, "0.0 %"),
        (1.0, 0.0, "–"),
        (None, 1.0, "–"),
    ],
)
def test_a_change_has_its_sign(now: float | None, before: float | None, text: str) -> None:
    assert figures.change(now, before) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_990, "10 kB"), (999_600, "1.0 MB"), (9_020_000_000, "9.0 GB")],
)
def test_a_size_is_decimal(size: int, text: str) -> None:
    assert figures.size(size) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.42, "2.420"), (65536.0, "65,536"), (5, "5"), (True, "yes"), (None, "–"), (0.006, "0.006"), (123.456, "123.5")],
)
def test_a_number_of_unknown_meaning_keeps_what_it_needs(value: object, text: str) -> None:
    assert figures.plain(value) == text


def test_a_moment_is_relative_with_the_exact_one_beside_it() -> None:
    found = moments.moment(NOW - timedelta(minutes=17), now=NOW)
    assert (found.text, found.title, found.iso) == (
        "17 min ago",
        "29 Nov 2026, 11:43:00 UTC",
        "2026-11-29T11:43:00.000Z",
    )
    assert moments.moment(NOW - timedelta(days=2), now=NOW).text == "27 Nov, 12:00"
    assert moments.moment(NOW + timedelta(hours=1), now=NOW).text == "just now"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(3.21, "3.2 s"), (42, "42 s"), (59.7, "60 s"), (124, "2 min 04 s"), (3600, "1 h 00 min"), (-1, "0.0 s")],
)
def test_a_span_reads_like_speech(seconds: float, text: str) -> None:
    assert moments.span(seconds) == text


def test_an_axis_holds_the_leader_and_those_near_it() -> None:
    rows = [Measured((488.0, 490.0), 489.0, 487.0, 491.0, 510.0), Measured((43.8, 44.0), 43.9, 43.7, 44.1)]
    axis = strips.axis_for(rows)
    assert axis is not None
    near, far = strips.strip(rows[0], axis), strips.strip(rows[1], axis)
    assert axis.holds(487.0)
    assert axis.holds(510.0)
    assert (near.off, far.off, far.draws, far.ci_x) == ("", "below", (), None)
    assert far.spoken == "2 draws from 43.8 to 44.0, mean 43.9, 95 % interval 43.7 to 44.1"


@pytest.mark.parametrize("value", [0.001, 1.0, 44.0, 1e9])
def test_an_axis_of_one_number_has_round_ticks(value: float) -> None:
    axis = strips.axis_for([Measured((), None, None, None, value)])
    assert axis is not None
    assert 2 <= len(axis.ticks) <= 8
    assert len({tick.text for tick in axis.ticks}) == len(axis.ticks)


def test_nothing_measured_has_no_axis() -> None:
    assert strips.axis_for([Measured((), None, None, None)]) is None
    assert strips.axis_for([]) is None


def test_an_excerpt_is_plain_text_without_its_title() -> None:
    assert (
        excerpt("# A *title*\n\nSome **bold** [words](http://x).\n\n```\ncode\n```\n", skip="A title")
        == "Some bold words."
    )
    assert len(excerpt("word " * 500)) <= 240


def test_a_heading_the_page_shows_already_is_dropped_once() -> None:
    assert without_title("# A title\n\nText", "A title").strip() == "Text"
    assert without_title("# Another\n\nText", "A title").startswith("# Another")
    assert without_title("# A title", "A title") == "# A title"


def test_a_log_keeps_its_end_and_the_numbers_of_its_lines() -> None:
    found = tail(b"one\n\x1b[31mError: two\x00\n\xff\xfe\n", shown=2)
    assert found.left_out == 1
    assert [(line.number, line.look) for line in found.lines] == [(2, "err"), (3, "")]
    assert "\x1b" not in found.lines[0].text
