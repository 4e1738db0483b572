"""One suite for both engines of search: any input is a query, hits are sensible, and what is gone isn't found."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlmodel import Session

import board.markdown
import board.search
from agents.rows import AgentRow
from board import search_index
from board.rows import PostRow
from board.search import search
from board.search_index import Kind
from board.search_terms import spellings
from storage.database import make_engine, migrate


@pytest.fixture(scope="module")
def postgres_url(new_database: Callable[[], str]) -> str:
    """A migrated database for all tests here."""
    url = new_database()
    engine = make_engine(url)
    migrate(engine)
    engine.dispose()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A migrated, empty database; what a test writes is rolled back on PostgreSQL."""
    if request.param == "postgresql":
        engine = make_engine(request.getfixturevalue("postgres_url"))
    else:
        engine = make_engine(f"sqlite:///{tmp_path / 'search.db'}")
        migrate(engine)
    with Session(engine.execution_options(paddock_writes=True)) as session:
        yield session
        session.rollback()
    engine.dispose()


def put(session: Session, number: int, body: str, *, title: str = "", folder: str = "message_board") -> str:
    """Add a post as its row and its words."""
    name = f"20261129-120000-{number:03d}_ant.md"
    head: dict[str, object] = {"title": title} if title else {}
    fixed = {"type": "agent", "via": "raw", "content": body, "haystack": body, "thread": name, "content_digest": ""}
    at = "2026-11-29T12:00:00+00:00"
    row = PostRow.model_validate({**fixed, "folder": folder, "filename": name, "agent": "ant", "posted_at": at,
                                  "frontmatter": head, "body": body})  # fmt: skip
    session.add(row)
    session.flush()
    kind = Kind.RESULTS if folder == "results" else Kind.POSTS
    search_index.put(session.connection(), kind, name, title=title, body=body)
    return name


def found(session: Session, query: str, kind: Kind | None = None) -> list[str]:
    return [hit.name for hit in search(session, query, kind=kind, limit=50).hits]


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("multi-agent", "A multi-agent board."),
        ("a'b", "It says a'b here."),
        ("模型", "我们的模型很快"),
        ("型很", "我们的模型很快"),
        ("vLLM加速", "用 vLLM 加速"),
        ("한국", "대한국민"),
        ("🚀", "To the moon🚀now"),
        ("👩‍🚀", "An 👩‍🚀 flew."),
        ("CAFÉ", "a cafe\u0301 in Paris"),
        ("ｆｕｌｌ", "full width"),
        ("straße", "In der STRASSE."),
        ("quant", "Quantization of weights."),
        ("привет", "Приветствие"),
        ("สวัสดี", "คำว่าสวัสดีครับ"),
        ("snake_case", "the snake_case name"),
        ("int4 w4a16", "w4a16 is an int4 scheme"),
        ('"two words"', "these two words follow"),
        ("x" * 100, "x" * 100),
    ],
)
def test_a_word_is_found_as_people_type_it(database: Session, query: str, body: str) -> None:
    name = put(database, 1, body)
    put(database, 2, "Something else entirely.")
    assert found(database, query) == [name]


@pytest.mark.parametrize(
    "query",
    ["", " ", '"', '""', "*", "NEAR(", "NEAR(a b)", "a AND", "NOT", "OR OR", "a:b", "title:x", "^a", "-", "--", "'",
     "';DROP TABLE posts;--", "{", "()", "a*b*", "\\", "%", "_", "!!! ???", "\0", "a\0b", "&", "a & !b | <->", ":*",
     "'a':*", "\u202e", "\ud7ff", "語" * 3400, "word " * 2000, '"' * 10_000, "z" * 10_000, "🚀" * 2500,
     "é\u0301" * 3000,
    ],
)  # fmt: skip
def test_any_input_is_a_query(database: Session, query: str) -> None:
    put(database, 1, "A plain text about nothing.")
    started = time.monotonic()
    assert len(found(database, query)) <= 1
    assert time.monotonic() - started < 5


def test_every_word_must_be_there_and_words_of_a_phrase_in_order(database: Session) -> None:
    both, _, other = put(database, 1, "fast kernel"), put(database, 2, "fast car"), put(database, 3, "kernel so fast")
    assert set(found(database, "fast kernel")) == {both, other}
    assert found(database, '"fast kernel"') == [both]
    assert found(database, "fast-kernel") == [both]
    assert found(database, "模型") == []
    assert found(database, "fast zebra") == []


def test_a_hit_in_the_title_comes_first_then_the_newest(database: Session) -> None:
    names = [put(database, 1, "warmup"), put(database, 2, "warmup"), put(database, 3, "other words", title="warmup")]
    assert found(database, "warmup") == [names[2], names[1], names[0]]


def test_kinds_are_told_apart_and_an_agent_is_found_by_what_it_says(database: Session) -> None:
    post, result = put(database, 1, "heron"), put(database, 2, "heron", folder="results")
    row = AgentRow(agent_id="blue-heron", hf_user="ann", model="m", harness="h", tools=["curl"], agent_bucket="",
                   joined="", bio="I fish.", content_digest="")  # fmt: skip
    database.add(row)
    database.flush()
    assert set(found(database, "heron")) == {post, result, "blue-heron"}
    assert found(database, "heron", Kind.AGENTS) == ["blue-heron"]
    assert found(database, "heron", Kind.RESULTS) == [result]
    row.bio = "I hunt."
    database.flush()
    assert (found(database, "fish"), found(database, "hunt curl")) == ([], ["blue-heron"])


def test_what_is_put_again_is_found_by_its_new_words_alone(database: Session) -> None:
    name = put(database, 1, "before")
    search_index.put(database.connection(), Kind.POSTS, name, title="", body="after")
    assert (found(database, "before"), found(database, "after")) == ([], [name])
    search_index.drop(database.connection(), Kind.POSTS, name)
    search_index.drop(database.connection(), Kind.POSTS, name)
    assert found(database, "after") == []


def test_pages_are_whole_and_snippets_mark_what_was_asked_and_escape_the_rest(database: Session) -> None:
    names = [put(database, number, f"{'pad ' * 100}<script>warm</script> {number}") for number in range(7)]
    pages, after = [], ""
    while True:
        page = search(database, "warm", kind=None, limit=3, after=after)
        assert page.matched == 7
        pages.append([hit.name for hit in page.hits])
        if page.next is None:
            break
        after = page.next
    assert [len(found) for found in pages] == [3, 3, 1]
    assert sorted(name for found in pages for name in found) == names
    told = search(database, "warm", kind=None, limit=1).hits[0].as_json()
    assert "&lt;script&gt;<mark>warm</mark>&lt;/script&gt;" in told["snippet_html"]
    assert "<script>warm</script>" in told["snippet"]
    assert len(told["snippet"]) < 300


def test_a_long_body_is_found_by_its_end_where_the_engine_can(database: Session) -> None:
    name = put(database, 1, "filler " * 30_000 + "needle")
    is_sqlite = database.get_bind().dialect.name == "sqlite"
    assert found(database, "needle") == ([name] if is_sqlite else [])
    assert found(database, "filler") == [name]


def test_words_are_spelled_in_plain_ascii() -> None:
    words = spellings("Ünïcode 模型 ''; -- 🚀 \u202eabc a_b")
    assert all(word.isascii() and word.replace("_", "").isalnum() and word == word.lower() for word in words)


@pytest.mark.parametrize("words", ["needle", "NEEDLE", "模型", "🚀", "nee", '"sharp needle"'])
def test_a_snippet_shows_a_hit_deep_inside_a_text(database: Session, words: str) -> None:
    put(database, 1, f"{'filler ' * 5000}a sharp Needle, 模型 🚀 and more{' filler' * 500}")
    (hit,) = search(database, words, kind=None, limit=1).hits
    told = hit.as_json()
    assert "<mark>" in told["snippet_html"]
    assert "Needle" in told["snippet"]
    assert (told["snippet"][0], told["snippet"][-1]) == ("…", "…")
    assert len(told["snippet"]) < 300


@pytest.mark.parametrize(
    "text", ["a " * 100_000, "語" * 60_000, "\ufdfa " * 60_000, "[" * 200_000 + " a", "#" * 200_000 + " a"]
)
def test_a_hit_reads_as_much_of_a_hostile_text_as_it_shows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'search.db'}")
    migrate(engine)
    read: list[int] = []
    for module, name in ((board.search, "words_of"), (board.search, "normalised"), (board.markdown, "tokens_of")):
        monkeypatch.setattr(module, name, _noting(getattr(module, name), read))
    with Session(engine.execution_options(paddock_writes=True)) as session:
        put(session, 1, text)
        for query in ("a a a a", "語", "\ufdfa", "a " * 16):
            for hit in search(session, query, kind=None, limit=1).hits:
                assert len(hit.as_json()["snippet"]) < 300
    engine.dispose()
    assert read
    assert max(read) <= 2000


def _noting(real: Callable[[str], object], read: list[int]) -> Callable[[str], object]:
    def noting(text: str) -> object:
        read.append(len(text))
        return real(text)

    return noting
