import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import InvalidPath
from storage.paths import BucketName, Source, check_path, parse_bucket, parse_source

PREFIX = "hf://buckets/race/tiny-a/"


@pytest.mark.parametrize("path", ["a", "a/b.md", "a b/ü.md", "a..b", "x-/_y", "a/b.c.d"])
def test_a_clean_relative_path_is_accepted(path: str) -> None:
    assert check_path(path) == path
    assert parse_source(PREFIX + path) == Source(BucketName("race", "tiny-a"), path)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "a/./b", "a\\b", "a\0b", "a\nb", "a\x7fb",
     "a\x85b", "a\u2028b", "e\u0301", "\ud800", "x" * 1025, "a/\u202eb", "\u200b"],
)  # fmt: skip
def test_every_other_path_is_refused_even_in_ones_own_bucket(path: str) -> None:
    with pytest.raises(InvalidPath) as refusal:
        check_path(path, dot_led=True)
    assert refusal.value.code == "INVALID_PATH"


@pytest.mark.parametrize("path", [".x", "a/.x", ".git/config", "..x"])
def test_dot_led_names_are_for_ones_own_bucket_only(path: str) -> None:
    assert check_path(path, dot_led=True) == path
    with pytest.raises(InvalidPath):
        check_path(path)


@pytest.mark.parametrize(
    "text",
    ["", "a/b", "hf://buckets/", "hf://buckets/race", "hf://buckets/race/tiny-a", PREFIX, PREFIX + "/", PREFIX + "a//",
     "hf://buckets//tiny-a/x", "hf://buckets/ra ce/t/x", "hf://buckets/../t/x", "hf://buckets/race/../x", "HF://buckets/r/t/x",
     "hf://datasets/race/tiny-a/x", "hf://buckets/race/t..a/x", "hf://buckets/race/.t/x", "hf://buckets/race/t\n/x"],
)  # fmt: skip
def test_other_sources_are_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        parse_source(text)


def test_one_slash_at_a_sources_end_is_dropped() -> None:
    assert parse_source(PREFIX + "runs/r1/").path == "runs/r1"


def test_a_buckets_name_may_hold_what_an_agent_id_may() -> None:
    assert parse_bucket("race/tiny-a--b") == BucketName("race", "tiny-a--b")


@given(st.text(max_size=60))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    try:
        path = check_path(text)
    except InvalidPath:
        return
    assert all(part and not part.startswith(".") for part in path.split("/"))
    assert parse_source(PREFIX + path).path == path
