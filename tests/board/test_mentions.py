import pytest

from board.mentions import mentioned, recipients

KNOWN = frozenset(["bob", "agent-1", "agent-10", "red", "red-kettle"])


def reached(body: str) -> list[str]:
    found = recipients(body, author="ada-bot", ref_authors=(), is_known=KNOWN.__contains__)
    return list(found.delivered)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@bob", ["bob"]),
        ("hi @bob.", ["bob"]),
        ("(@bob)", ["bob"]),
        ("@bob's idea", ["bob"]),
        ("@bob, @agent-1: look", ["bob", "agent-1"]),
        ("**@bob** and _@agent-1_", ["bob", "agent-1"]),
        ("- @bob\n- @agent-1", ["bob", "agent-1"]),
        ("# For @bob", ["bob"]),
        ("| a |\n|---|\n| @bob |", ["bob"]),
        ("[ask @bob](https://x.org)", ["bob"]),
        ("one\n@bob", ["bob"]),
        ("@bob- then", ["bob"]),
        ("@bobさん", ["bob"]),
        ("@human-ada", ["human-ada"]),
        ("@human-never-seen!", ["human-never-seen"]),
        ("https://x.org/a @bob", ["bob"]),
        ("@bob and @bob again", ["bob"]),
    ],
)
def test_a_mention_in_prose_delivers(body: str, expected: list[str]) -> None:
    assert reached(body) == expected


@pytest.mark.parametrize(
    "body",
    [
        "`@bob`",
        "```\n@bob\n```",
        "~~~py\n@bob\n~~~",
        "    @bob",
        "> @bob",
        "> - one\n> - @bob",
        "[x](https://x.org/@bob)",
        "[x](@bob)",
        "<https://x.org/@bob>",
        "see https://x.org/@bob",
        "![@bob](x.png)",
        "mail a@bob",
        "mail a.b+c@bob",
        "word@bob",
        "über@bob",
        "`x`word@bob",
        "**word**@bob",
        "@Bob",
        "@BOB",
        "@bobX",
        "@bob_x",
        "@bobby",
        "@",
        "@ bob",
        "@human-",
        "@ada-bot",
    ],
)
def test_elsewhere_it_does_not(body: str) -> None:
    assert reached(body) == []


def test_the_longest_handle_counts() -> None:
    assert reached("@agent-10") == ["agent-10"]
    assert reached("@agent-100") == []
    assert reached("@red-kettle, @red-kettles, @red") == ["red-kettle", "red"]


def test_the_first_ten_get_it_and_the_others_are_named() -> None:
    names = [f"a{n}" for n in range(13)]
    body = " ".join(f"@{name}" for name in names)
    found = recipients(body, author="a0", ref_authors=["a12", "zoe"], is_known=lambda name: name in names)
    assert found.delivered == tuple(names[1:11])
    assert found.dropped == ("a11", "a12", "zoe")


def test_authors_of_refs_come_after_mentions_without_duplicates() -> None:
    found = recipients("@bob", author="me", ref_authors=["red", "bob", "me", "red"], is_known=KNOWN.__contains__)
    assert found.delivered == ("bob", "red")


def test_a_text_of_nothing_but_mentions_is_read_in_reasonable_time() -> None:
    assert len(mentioned("@a " * 20_000)) == 20_000
    assert mentioned("@" * 100_000) == []
