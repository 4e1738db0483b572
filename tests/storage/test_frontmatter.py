import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import InvalidFrontmatter
from storage.frontmatter import MAX_BYTES, Document, Value, parse, parse_bytes, serialise

_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
_numbers = st.integers(-(10**39), 10**39) | st.decimals(-(10**12), 10**12, places=6).map(float)
_values = st.recursive(
    st.none() | st.booleans() | _numbers | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=6,
)


def _depth(value: Value) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(st.dictionaries(_text, _values, max_size=6).filter(lambda head: _depth(head) <= 5), _text)
def test_what_is_serialised_reads_back_the_same(head: dict[str, Value], body: str) -> None:
    expected = Document(head, body.replace("\r\n", "\n"))
    document = parse(serialise(head, body))
    assert document == expected
    assert list(document.frontmatter) == list(head)


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda data: b"---\n" + data + b"\n---\n"))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        document = parse_bytes(data)
    except InvalidFrontmatter:
        return
    assert isinstance(document.frontmatter, dict)


@given(st.text("\n:-[]{}&*!|>'\"%@`#?, ab01.~<\\xU\t", max_size=80))
def test_hostile_yaml_is_read_or_refused(text: str) -> None:
    try:
        document = parse(f"---\n{text}\n---\n")
    except InvalidFrontmatter:
        return
    assert parse(serialise(document.frontmatter, document.body)) == document


@pytest.mark.parametrize(
    "value",
    ["8:26", "190:20:30", "0777", "08", "0x1FF", "0b11", "1_000", ".inf", "-.inf", ".nan", ".NaN", "+5", ".5", "5.",
     "1.5e+3", "1" * 401, "1" * 41, "-00.5"],
)  # fmt: skip
def test_another_notation_of_a_number_is_refused(value: str) -> None:
    with pytest.raises(InvalidFrontmatter):
        parse(f"---\ntps: {value}\n---\n")
    assert parse(f"---\ntps: '{value}'\n---\n").frontmatter == {"tps": value}
    assert parse(serialise({"tps": value}, "")).frontmatter == {"tps": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [("12", 12), ("-3.50", -3.5), ("0", 0), ("true", True), ("false", False), ("null", None), ("", None),
     ("yes", "yes"), ("No", "No"), ("2026-06-08", "2026-06-08"), ("2026-06-08 15:30 UTC", "2026-06-08 15:30 UTC"),
     ("1e5", "1e5"), ("v1.2.3", "v1.2.3"), ("[a, 2]", ["a", 2]), ("{a: {b: c}}", {"a": {"b": "c"}})],
)  # fmt: skip
def test_a_plain_scalar_is_a_word_a_decimal_or_text(text: str, value: Value) -> None:
    found = parse(f"---\nkey: {text}\n---\n").frontmatter["key"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("a: &x 1", "anchors"),
        ("a: *x", "anchors"),
        ("a: !!str 1", "tags"),
        ("a: !!python/object:os.system x", "tags"),
        ("<<: {a: 1}", "merge"),
        ("a: 1\na: 2", "twice"),
        ("1: a", "text"),
        ("true: a", "text"),
        ("[a]: b", "deeper"),
        ("? {a: 1}\n: b", "deeper"),
        ("null: a", "text"),
        ("2.5: a", "text"),
        ("a: &x {b: 1}\nc:\n  <<: *x", "anchors"),
        ("a: {b: 1, b: 2}", "twice"),
        ("a: !<tag:yaml.org,2002:str> 1", "tags"),
        ("a: {b: {c: {d: {e: {f: 1}}}}}", "deeper"),
        ("- a", "mapping"),
        ("just words", "mapping"),
        ("a: [", "not YAML"),
        ("a: 'never closed", "not YAML"),
        ('a: "\\UFFFFFFFF"', "not YAML"),
        ('a: "\\0"', "stored"),
        ('a: "\\ud800"', "stored"),
        ("a: 1\n--- b\n", "more than one"),
        ("\n".join(f"k{n}: 1" for n in range(65)), "64 keys"),
        ("a: " + "x" * MAX_BYTES, "larger than"),
    ],
)
def test_what_the_stored_form_does_not_have_is_refused_with_the_reason(head: str, reason: str) -> None:
    with pytest.raises(InvalidFrontmatter, match=reason):
        parse(f"---\n{head}\n---\nbody")


@pytest.mark.parametrize("text", ["1e5", "8135e10", "1.5E3", "0o17", "1.", ".5", "007", "12"])
def test_text_that_another_reader_takes_for_a_number_is_stored_in_quotes(text: str) -> None:
    assert f"a: '{text}'\n" in serialise({"a": text}, "")
    assert parse(serialise({"a": text}, "")).frontmatter == {"a": text}


def test_five_levels_and_64_keys_are_accepted() -> None:
    head = "a: {b: {c: {d: {e: 1}}}}\n" + "\n".join(f"k{n}: 1" for n in range(59))
    assert len(parse(f"---\n{head}\n---\n").frontmatter) == 60


def test_dashes_inside_a_block_scalar_do_not_end_the_frontmatter() -> None:
    document = parse("---\ntext: |\n  one\n  ---\n  two\n---\nbody")
    assert document == Document({"text": "one\n---\ntwo\n"}, "body")


def test_a_byte_order_mark_and_crlf_are_normalised() -> None:
    assert parse_bytes(b"\xef\xbb\xbf---\r\na: b\r\n---\r\n\r\none\r\ntwo") == Document({"a": "b"}, "one\ntwo")


def test_a_file_without_frontmatter_is_all_body() -> None:
    assert parse("# Title\n\n---\n\ntext") == Document({}, "# Title\n\n---\n\ntext")


def test_frontmatter_that_is_never_closed_is_refused() -> None:
    with pytest.raises(InvalidFrontmatter, match="never closed"):
        parse("---\na: b\n\nbody")


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InvalidFrontmatter, match="UTF-8"):
        parse_bytes(b"---\na: \xff\n---\n")


def test_numbers_that_cannot_be_plain_decimals_are_not_written() -> None:
    for number in (float("nan"), float("inf"), 1e300, 10**40):
        with pytest.raises(InvalidFrontmatter):
            serialise({"tps": number}, "")
