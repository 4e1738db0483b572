import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from board.markdown import render, title_of
from storage.frontmatter import Document


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


@given(st.text(max_size=200) | st.text("<>[]()!`*_~|:-\n #@&;\"'ab1/", max_size=120))
def test_only_listed_tags_come_out(text: str) -> None:
    text_tags = {"p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre", "blockquote"}
    other_tags = {"ul", "ol", "li", "a", "img", "table", "thead", "tbody", "tr", "th", "td"}
    allowed = text_tags | other_tags | {"figure", "figcaption", "button"}
    assert set(re.findall(r"</?([a-zA-Z0-9]+)", render(text))) <= allowed


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


def test_strikethrough_and_relative_images_work() -> None:
    assert "<s>x</s>" in render("~~x~~")
    assert 'src="/a.png"' in render("![a](/a.png)")


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
