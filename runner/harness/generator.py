"""Make prompts from a seed: as many as wanted, no two alike, none with a long beginning in common with another.

Public extras come from a seed that everyone knows, private prompts from a secret one. The same seed gives the same
prompts in the same order, and a longer list begins with the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from runner.harness.keyed_random import KeyedRandom
from runner.harness.prompts import Prompt
from runner.harness.vocabulary import (
    ADJECTIVES,
    FRAMES,
    GOODS,
    LANGUAGES,
    OPINIONS,
    PEOPLE,
    PLACES,
    TASKS,
    TOPICS,
    TRADES,
    VERBS,
)

LONGEST_SHARED_BEGINNING = 63  # characters that two prompts may have in common at their start


@dataclass(frozen=True)
class _Draft:
    category: str
    language: str
    text: str


def generate(seed: bytes, count: int) -> list[Prompt]:
    """Return `count` prompts that `seed` alone decides, with ids `gen-0001` and up."""
    draw = KeyedRandom(seed)
    beginnings: set[str] = set()
    prompts: list[Prompt] = []
    while len(prompts) < count:
        draft = draw.choice(_MAKERS)(draw)
        beginning = draft.text[: LONGEST_SHARED_BEGINNING + 1]
        if beginning in beginnings:
            continue
        beginnings.add(beginning)
        name = f"gen-{len(prompts) + 1:04d}"
        prompts.append(Prompt(id=name, category=draft.category, language=draft.language, text=draft.text))
    return prompts


def _word_problem(draw: KeyedRandom) -> _Draft:
    seller, buyer = draw.sample(PEOPLE, 2)
    good, count, price = draw.choice(GOODS), draw.randint(30, 900), draw.randint(2, 80)
    text = (
        f"{seller}, a {draw.choice(TRADES)} from {draw.choice(PLACES)}, {draw.choice(VERBS)} {count} {good} on Monday. "
        f"On Tuesday {buyer} took {draw.randint(5, 60)} % of them for {price} coins each, and every "
        f"{draw.randint(3, 11)}th of the rest turned out to be {draw.choice(ADJECTIVES)} and was given away. "
        f"What is left, what came in, and which of the numbers did you have to round? {draw.choice(_DEMANDS)}"
    )
    return _Draft("maths", "en", text)


def _explanation(draw: KeyedRandom) -> _Draft:
    topic, other = draw.sample(TOPICS, 2)
    opening = draw.choice(("Explain", "Describe", "Teach", "Make clear", "Tell"))
    text = (
        f"{opening} to a {draw.choice(ADJECTIVES)}-hatted {draw.choice(TRADES)} named {draw.choice(PEOPLE)} what "
        f"{topic} and {other} have in common. {draw.choice(_DEMANDS)}"
    )
    return _Draft("explanation", "en", text)


def _code_task(draw: KeyedRandom) -> _Draft:
    task, trap = draw.choice(TASKS)
    text = (
        f"{draw.choice(PEOPLE)} of {draw.choice(PLACES)} wants {draw.choice(LANGUAGES)} code that "
        f"{task.format(n=draw.randint(2, 400))}. Write it, say what happens when {trap}, name its cost in time and "
        f"memory, and add {draw.randint(3, 7)} tests. {draw.choice(_DEMANDS)}"
    )
    return _Draft("code", "en", text)


def _other_language(draw: KeyedRandom) -> _Draft:
    language = draw.choice(sorted(FRAMES))
    text = FRAMES[language].format(
        person=draw.choice(PEOPLE),
        place=draw.choice(PLACES),
        a=draw.randint(40, 2000),
        b=draw.randint(3, 38),
        c=draw.randint(2, 19),
    )
    return _Draft("reasoning", language, text)


def _account(draw: KeyedRandom) -> _Draft:
    opening = f"{draw.choice(PLACES)}, as {draw.choice(PEOPLE)} the {draw.choice(TRADES)} told it:"
    sentences = [_sentence(draw) for _ in range(draw.randint(6, 90))]
    question = f"Summarise this in {draw.randint(2, 5)} sentences and list the opinions apart from the facts."
    return _Draft("summary", "en", f"{opening} {' '.join(sentences)}\n\n{question} {draw.choice(_DEMANDS)}")


def _sentence(draw: KeyedRandom) -> str:
    if draw.random() < 0.2:
        return f"{draw.choice(OPINIONS)}, said {draw.choice(PEOPLE)}."
    return (
        f"{draw.choice(('On day', 'By hour', 'At stop', 'In round'))} {draw.randint(1, 60)} {draw.choice(PEOPLE)} "
        f"{draw.choice(VERBS)} {draw.randint(2, 300)} {draw.choice(ADJECTIVES)} {draw.choice(GOODS)} near "
        f"{draw.choice(PLACES)}."
    )


def _table(draw: KeyedRandom) -> _Draft:
    goods = draw.sample(GOODS, draw.randint(3, 5))
    opening = (
        f"{draw.choice(PEOPLE)} keeps a stock list in {draw.choice(PLACES)}; {draw.randint(2, 9)} lines are wrong."
    )
    rows = [
        f"| {place} | {' | '.join(str(draw.randint(0, 500)) for _ in goods)} |"
        for place in draw.sample(PLACES, draw.randint(4, len(PLACES)))
    ]
    head = f"| place | {' | '.join(goods)} |\n|{'---|' * (len(goods) + 1)}"
    question = f"Which place holds most in all, and where do {goods[0]} outnumber {goods[-1]}?"
    return _Draft("table", "en", "\n".join([opening, "", head, *rows, "", f"{question} {draw.choice(_DEMANDS)}"]))


def _one_line(draw: KeyedRandom) -> _Draft:
    text = (
        f"Write {draw.randint(2, 12)} lines of verse about {draw.choice(ADJECTIVES)} {draw.choice(GOODS)} "
        f"and {draw.choice(TOPICS)}."
    )
    return _Draft("writing", "en", text)


_DEMANDS = (
    "Think step by step.",
    "Keep it under two hundred words.",
    "State what you assume.",
    "Give the answer first, then the reasons.",
    "Finish with a check of your own answer.",
    "Say how sure you are and why.",
    "Use a small example.",
    "Mention the most common mistake.",
)
_MAKERS: tuple[Callable[[KeyedRandom], _Draft], ...] = (
    _other_language,
    _other_language,
    _word_problem,
    _explanation,
    _code_task,
    _other_language,
    _account,
    _table,
    _one_line,
)
