"""How long 200 kB take to render, at worst and ordinarily, against sanitising the same bytes; and what the cache saves.

The reference is `nh3.clean` of the escaped text: what any way of showing it costs.
"""

import time
from collections.abc import Callable
from html import escape
from statistics import median

import nh3

from board import markdown
from tests.board.test_markdown_bounds import SIZE, TEXTS, in_paragraphs, repeated

LINE = "The draft of **int4** reached `507.1` with [the notes](https://x.org/a), says @agent-1, in twelve runs. "


def seconds(deed: Callable[[], object], n: int = 5) -> float:
    spent = []
    for _ in range(n):
        began = time.process_time()
        deed()
        spent.append(time.process_time() - began)
    return median(spent)


def main() -> None:
    prose = in_paragraphs(repeated(LINE), 700)
    markdown._made(prose)
    reference, ordinary = seconds(lambda: nh3.clean(escape(prose))), seconds(lambda: markdown._made(prose))
    cached = seconds(lambda: markdown.render(prose, known={"agent-1"}), 25)
    post = prose[:2000]
    worst, name = max((seconds(lambda text=text: markdown._made(text), 1), name) for name, text in TEXTS.items())
    print(f"{SIZE} characters, CPU seconds, medians")
    print(f"sanitise the escaped text   {reference:.4f}")
    print(f"ordinary prose              {ordinary:.4f}   {ordinary / reference:.0f} times that")
    print(f"worst of {len(TEXTS)} hostile texts  {worst:.4f}   ({name})")
    print(f"the same prose again        {cached:.4f}   {ordinary / cached:.0f} times faster")
    print(f"a post of 2,000 characters  {seconds(lambda: markdown._made(post)):.4f}")


if __name__ == "__main__":
    main()
