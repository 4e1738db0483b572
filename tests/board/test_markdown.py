import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board import markdown, markdown_math
from board.markdown import render, title_of
from board.markdown_cache import Renderings
from storage.frontmatter import Document

TAGS = {*markdown._TEXT_TAGS, *markdown._OTHER_TAGS, *markdown._OURS, *markdown_math.TAGS}


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "[x](ftp://a/b)",
        "![x](mailto:a@b.c)",
        '[x](http://a "\\" onmouseover=\\"alert(1)")',
        "<a href='javascript:x'>y</a>",
        "<!-- c -->",
        "<style>*{display:none}</style>",
        "| a |\n|:-:|\n| <b>x</b> |",
        '```"><script>alert(1)</script>\nx\n```',
    ],
)
def test_nothing_a_post_says_becomes_active_markup(text: str) -> None:
    html = render(text)
    tags = re.findall(r"<[^>]*>", html)
    assert not any(re.match(r"</?(script|style|iframe|b)\b|<!--", tag) for tag in tags)
    assert not any(re.search(r"\s(on\w+|style)=", re.sub(r'"[^"]*"', '""', tag)) for tag in tags)
    assert not any(re.search(r'(href|src)="(?!https?:|mailto:|/|[^:"]*")', tag) for tag in tags)
    assert not any(tag.startswith("<img") and "mailto:" in tag for tag in tags)


@given(st.text(max_size=200) | st.text("<>[]()!`*_~|:-\n #@&;\"'ab1/$^{}\\\\x", max_size=120))
def test_only_listed_tags_come_out(text: str) -> None:
    assert {tag.lower() for tag in re.findall(r"</?([a-zA-Z0-9]+)", render(text))} <= TAGS


def test_headings_are_one_level_down() -> None:
    assert "<h2>One</h2>" in render("# One")
    assert "<h6>Six</h6>" in render("###### Six")


def test_tables_code_and_quotes_have_the_designs_classes() -> None:
    html = render("| a | b |\n|---|--:|\n| 1 | 2 |\n\n> q\n\n```json\n{}\n```")
    assert '<table class="tbl">' in html
    assert '<td class="num">2</td>' in html
    assert '<blockquote class="quote">' in html
    assert '<figure class="code"><figcaption>json<button class="btn btn-s copy"' in html
    assert '<pre tabindex="0"><code>{}\n</code></pre></figure>' in html


def test_mentions_in_prose_are_links_and_others_are_not() -> None:
    html = render("Hi @bob's, `@bob`, a@bob.\n\n> @bob\n\n[@bob](https://x.org)")
    assert html.count('<a class="mention" href="/agents/bob">@bob</a>') == 1
    assert "</a>'s" in html


def test_only_known_handles_are_linked_when_they_are_given() -> None:
    assert render("@bob @eve", known={"bob"}).count("mention") == 1


def test_links_tell_crawlers_not_to_follow() -> None:
    assert 'rel="nofollow noopener"' in render("[x](https://x.org)")


def test_strikethrough_works() -> None:
    assert "<s>x</s>" in render("~~x~~")


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("hf://buckets/race/tiny-a/plots/a%20b.png", "/buckets/race/tiny-a/resolve/plots/a%20b.png"),
        ("/buckets/race/tiny-a/resolve/a.png", "/buckets/race/tiny-a/resolve/a.png"),
        ("artifacts/x_a/b.png", "/artifacts/x_a/b.png?raw"),
    ],
)
def test_a_picture_in_one_of_our_buckets_is_shown(source: str, address: str) -> None:
    assert f'<img src="{address}" alt="A &amp; b" title="t" loading="lazy">' in render(f'![A & b]({source} "t")')


@pytest.mark.parametrize(
    "source", ["https://evil.org/a.png", "//evil.org/a.png", "/v1/me", "hf://buckets/a/../b/c.png", "a.png"]
)
def test_any_other_picture_is_a_link_and_is_not_loaded(source: str) -> None:
    html = render(f"![alt]({source})")
    assert "<img" not in html
    assert ">alt</a>" in html


def test_posts_files_and_artifacts_that_a_text_names_are_links() -> None:
    html = render(
        "See 20261129-120000-000_blue-heron.md, artifacts/x_a/b.json. And (hf://buckets/race/tiny-a/runs/1)!\n\n"
        "`hf://buckets/race/tiny-a` [x](artifacts/y_a) > no"
    )
    assert '<a href="/p/20261129-120000-000_blue-heron">20261129-120000-000_blue-heron.md</a>, ' in html
    assert '<a href="/artifacts/x_a/b.json">artifacts/x_a/b.json</a>. And' in html
    assert '(<a href="/buckets/race/tiny-a/tree/runs/1">hf://buckets/race/tiny-a/runs/1</a>)!' in html
    assert '<a href="/buckets/race/tiny-a"><code>hf://buckets/race/tiny-a</code></a>' in html
    assert '<a href="/artifacts/y_a">x</a>' in html


@pytest.mark.parametrize(
    "text", ["x/artifacts/y", "https://a.org/artifacts/x", "hf://buckets/a/../b", "my-artifacts/x"]
)
def test_what_only_looks_like_such_a_name_is_no_link_of_ours(text: str) -> None:
    assert 'href="/' not in render(text)


def test_task_lists_have_boxes_that_nobody_can_tick() -> None:
    html = render("- [x] done\n- [ ] open\n\n[x] prose")
    assert html.count("<input") == 2
    assert '<input class="task" type="checkbox" disabled="" checked="" aria-label="done"> done' in html
    assert "[x] prose" in html


def test_footnotes_of_two_texts_never_share_an_id() -> None:
    one, other = render("a[^1] b[^1]\n\n[^1]: One."), render("b[^1]\n\n[^1]: Other.")
    ids = [re.findall(r'id="([^"]+)"', html) for html in (one, other)]
    assert len(ids[0]) == 3
    assert not set(ids[0]) & set(ids[1])
    for html, found in zip((one, other), ids, strict=True):
        assert set(re.findall(r'href="#([^"]+)"', html)) <= set(found)


def test_code_of_a_known_language_is_in_colour_and_reads_the_same() -> None:
    html = render("```python\ndef f(x):\n    return 'a<b' # no\n```")
    assert '<span class="hl-k">def</span>' in html
    assert "<span class=\"hl-s\">'a&lt;b'</span>" in html
    assert "style=" not in html
    assert "<span" not in render("```nonsense\ndef f(x): pass\n```")


def test_formulas_are_mathml_and_money_is_money() -> None:
    html = render("The mean $\\frac{a}{b} < 1$ costs $5 and $10.\n\n$$\n\\sum_{i=0}^n x_i\n$$\n")
    assert html.count("<math") == 2
    assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac><mo>&lt;</mo>" in html
    assert "costs $5 and $10." in html
    assert '<math display="block">' in html


@pytest.mark.parametrize("tex", ["\\frac", "{" * 300, "\\begin{matrix}", "\\def\\x{\\x\\x}\\x", "x" * 500])
def test_what_is_no_formula_stays_readable(tex: str) -> None:
    assert f"{tex}" in render(f"${tex}$")
    assert f"{tex}" in render(f"$$\n{tex}\n$$")


def test_a_formula_can_hold_no_markup() -> None:
    html = render("$\\text{<img src=x onerror=alert(1)>} \\href{javascript:x}{y} \\style{color:red}{z}$")
    assert "<mtext>&lt;img" in html
    assert not re.search(r"<img|href=|style=", html)


def test_what_is_beyond_the_bounds_is_shown_as_it_was_written() -> None:
    text = "# Head\n\n" + "- a <b>\n" * 20_000 + "\nThe end & all.\n"
    html = render(text)
    assert html.startswith("<h2>Head</h2>")
    assert "The end &amp; all." in html
    assert "- a &lt;b&gt;\n" in html


def test_nothing_too_deep_is_lost() -> None:
    assert "deepest" in render("> " * 50 + "deepest")
    assert "deepest" in render("- " * 50 + "deepest")


def test_a_text_is_rendered_once_and_what_is_kept_is_bounded() -> None:
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text * 10

    kept = Renderings(make, max_chars=100)
    assert [kept.get("abc") for _ in range(3)] == ["abc" * 10] * 3
    assert made == ["abc"]
    for number in range(50):
        kept.get(f"{number:03}")
        kept.get("abc")
    assert made.count("abc") == 1
    kept.get("x" * 20)
    assert kept.chars <= 100


@pytest.mark.parametrize(
    ("head", "body", "title"),
    [
        ({"title": "From the head"}, "# Heading", "From the head"),
        ({"title": 5}, "text\n\n## The *heading* `x`", "The heading x"),
        ({}, "First **line**\nsecond", "First line second"),
        ({}, "- item", "item"),
        ({}, "", "Untitled"),
        ({}, "x" * 200, "x" * 119 + "…"),
    ],
)
def test_a_title_is_found(head: dict, body: str, title: str) -> None:
    assert title_of(Document(head, body)) == title
