"""Words to search by: the same for what is stored and for what is asked, in plain ASCII for every engine.

    "multi-agent 模型 🚀"  ->  multi  agent  _06a21  _0578b  _1f680

Letters are folded (case, width, accents). A character of a script that writes without spaces is a word of its own,
as is an emoji, so that a phrase of them finds any part of a text. What isn't ASCII is spelled by its code points:
no engine's own idea of a letter can lose it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_PHRASES = 16
MAX_WORDS = 32
_MAX_LETTERS = 40
"""How much of a word is looked at, before and after folding (one sign can fold to 18): engines bound a word, too."""
_LEAST_PREFIX = 3

_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
    "\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"  # arrows, signs, emoji
)
_WORD = re.compile(f"[{_ALONE}]|(?:(?![{_ALONE}])[^\\W_])+")
_CHUNK = re.compile(r'"([^"]*)"|(\S+)')


@dataclass(frozen=True)
class Word:
    """One word of a text: where it stands (`end` exclusive) and how it is spelled for an engine."""

    start: int
    end: int
    spelled: str
    is_alone: bool = False


@dataclass(frozen=True)
class Phrase:
    """Words that must follow each other; the last may be the beginning of a longer one if `is_prefix`."""

    words: tuple[str, ...]
    is_prefix: bool


def normalised(text: str) -> str:
    """Bring a text into the form that `words_of` measures positions in."""
    return unicodedata.normalize("NFC", text)


def words_of(text: str) -> Iterator[Word]:
    """Yield the words of a normalised text, in order."""
    for match in _WORD.finditer(text):
        letters = match[0]
        folded = _folded(letters[:_MAX_LETTERS])
        if folded:
            yield Word(match.start(), match.end(), _spelled(folded), len(letters) == 1 and not letters.isascii())


def spellings(text: str) -> list[str]:
    """List the words of any text as engines store them."""
    return [word.spelled for word in words_of(normalised(text))]


def phrases_of(query: str) -> list[Phrase]:
    """Read what somebody typed: words are looked for with any ending, what stands in quotes just so.

    Any text is a query; one without a word in it is none. At most 16 phrases of 32 words are looked at.
    """
    chunks = (match.groups() for match in _CHUNK.finditer(normalised(query)))
    found = (_phrase(quoted or plain or "", is_exact=quoted is not None) for quoted, plain in chunks)
    return [phrase for phrase in found if phrase.words][:MAX_PHRASES]


def matches(words: Sequence[Word], phrase: Phrase) -> Iterator[int]:
    """Yield each index in `words` where `phrase` begins."""
    *before, ending = phrase.words
    for at in range(len(words) - len(before)):
        if before and words[at].spelled != before[0]:
            continue
        if all(word.spelled == asked for word, asked in zip(words[at : at + len(before)], before, strict=True)):
            last = words[at + len(before)].spelled
            if last == ending or (phrase.is_prefix and last.startswith(ending)):
                yield at


def _phrase(text: str, *, is_exact: bool) -> Phrase:
    words = list(words_of(text))[:MAX_WORDS]
    last = words[-1] if words else None
    is_prefix = last is not None and not is_exact and not last.is_alone and last.end - last.start >= _LEAST_PREFIX
    return Phrase(tuple(word.spelled for word in words), is_prefix)


def _folded(letters: str) -> str:
    apart = unicodedata.normalize("NFKD", letters.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char)).casefold()[:_MAX_LETTERS]


def letters_of(spelled: str) -> str:
    """Read a word's folded letters back from how engines spell it."""
    if not spelled.startswith("_"):
        return spelled
    codes = spelled[1:]
    return "".join(chr(int(codes[at : at + 5], 16)) for at in range(0, len(codes), 5))


def _spelled(letters: str) -> str:
    if letters.isascii() and letters.isalnum():
        return letters
    return "_" + "".join(f"{ord(char):05x}" for char in letters)
