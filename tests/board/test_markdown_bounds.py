"""No text costs more than its bound: work is counted, on a machine of any speed; bench/markdown.py times it."""

import pytest

from board import markdown, markdown_work
from board.markdown_work import UNITS, Work
from board.prose import PARSER

SIZE = 200_000
PIECES = {
    "pictures": "![", "links": "[a][", "brackets": "[", "closed": "[a](b)", "titles": '[a](b "', "targets": "[a](<b ",
    "bold": "**a **a", "stars": "**x*", "struck": "~~a *b **c ", "ticks": "`a", "addresses": "<http://a>", "less": "<",
    "entities": "&amp;", "ampersands": "&", "escapes": "\\*", "mentions": "@ab ", "math": "$a$ ", "dollars": "$a ",
    "quotes": "> > > > > > > a\n", "list": "- a\n", "numbers": "1. a\n", "rules": "***\n", "heads": "# a\n",
    "lines": "a\n", "underlined": "a\n=\n", "references": "[a]: b\n", "fences": "```\na\n```\n", "open": "```\n",
    "blocks": "$$\n", "formulas": "$$a$$\n", "halves": "$$a\nb\n", "notes": "[^a]: b[^a]\n\n",
    "note": "[^", "rows": "|a|\n",
    "deep": "> - ", "names": "artifacts/a ", "uris": "hf://buckets/a/b/c ", "nul": "\0", "code": "    &&&&\n",
}  # fmt: skip
TABLE = "|a" * 60 + "|\n" + "|-" * 60 + "|\n"


def repeated(piece: str) -> str:
    return (piece * (SIZE // len(piece) + 1))[:SIZE]


def in_paragraphs(text: str, size: int) -> str:
    return "\n\n".join(text[at : at + size] for at in range(0, SIZE, size))[:SIZE]


def texts() -> dict[str, str]:
    found = {name: repeated(piece) for name, piece in PIECES.items()}
    found |= {
        f"{name} in {size}": in_paragraphs(repeated(piece), size)
        for name, piece in PIECES.items()
        for size in (200, 65_000)
        if "\n" not in piece
    }
    return found | {
        "lazy": "> " * 12 + "a\n" + repeated("b\n"),
        "wide": TABLE + repeated("|\n"),
        "cells": TABLE + repeated("|a" * 60 + "|\n"),
        "nested": "".join("  " * depth + "- a\n" for depth in range(440)),
        "pairs": "[" * (SIZE // 2) + "]" * (SIZE // 2),
    }


TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_costs_more_work_than_its_bound(name: str) -> None:
    env: dict[str, object] = {}
    tokens = PARSER.parse(TEXTS[name], env)
    work = env[markdown_work.WORK]
    assert isinstance(work, Work)
    assert work.left > -UNITS * 2  # one step over the edge at most, and a step is no longer than its block
    assert sum(1 + len(token.children or []) for token in tokens) <= 2 * UNITS


def test_ordinary_prose_of_the_largest_size_is_rendered_whole() -> None:
    line = "The draft of **int4** reached `507.1` with [the notes](https://x.org/a), says @agent-1, in twelve runs. "
    html = markdown._made(in_paragraphs(repeated(line + "And that is all that there is to be said about it. "), 700))
    assert "<pre" not in html
