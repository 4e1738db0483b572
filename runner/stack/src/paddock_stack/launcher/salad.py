"""Make the warm-up's prompts: words of no language, from a fixed alphabet and a seed.

    vokatu zimelo pubagi ratusevi …

Nothing of a prompt set can be among them: a text all of whose words are made of these syllables is no text that anybody
asks about, and `is_salad` says whether one is. The run's record carries the SHA-256 of them all.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence

from paddock_stack.profiles.schema import WarmUp

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
_SALAD = re.compile(rf"(?:[{CONSONANTS}][{VOWELS}]){{3,4}}(?: (?:[{CONSONANTS}][{VOWELS}]){{3,4}})*")


def lengths(warm_up: WarmUp) -> list[int]:
    """Return each prompt's length in tokens, from the shortest to the longest, in an order of the seed's."""
    span, last = warm_up.longest - warm_up.shortest, max(warm_up.prompts - 1, 1)
    made = [warm_up.shortest + span * number // last for number in range(warm_up.prompts)]
    random.Random(warm_up.seed).shuffle(made)  # noqa: S311  # an order, no secret
    return made


def text(seed: int, number: int, words: int) -> str:
    """Return prompt `number` of a seed, `words` words long."""
    draw = random.Random(f"{seed}/{number}")  # noqa: S311  # the same words every time are the point
    return " ".join(_word(draw) for _ in range(words))


def is_salad(words: str) -> bool:
    """Return whether `words` could be a prompt of ours."""
    return _SALAD.fullmatch(words) is not None


def digest(prompts: Sequence[str]) -> str:
    """Return the hex SHA-256 of the prompts, one a line."""
    return hashlib.sha256("\n".join(prompts).encode()).hexdigest()


def _word(draw: random.Random) -> str:
    return "".join(draw.choice(CONSONANTS) + draw.choice(VOWELS) for _ in range(draw.choice((3, 4))))
