"""When a text is that of its token ids, although servers decode piece by piece."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from runner.harness.rendering import ChallengeTokenizer
from runner.harness.replies import agrees


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("eins zwei", "eins zwei"),
        (" eins", "eins"),
        ("eins", "eins\ufffd"),
        ("eins\ufffd\ufffdzwei", "eins\ufffdzwei"),
        ("eins", "eins zwei"),
        ("", ""),
    ],
)
def test_texts_that_differ_only_by_how_bytes_are_decoded_agree(text: str, decoded: str) -> None:
    assert agrees(text, decoded)


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("eins zwei", "eins"),
        ("eins", "eins, zwei, drei"),
        ("eins", "zwei"),
        ("", "something long"),
        ("\ufffd" * 30, "something long"),
    ],
)
def test_texts_that_say_something_else_do_not(text: str, decoded: str) -> None:
    assert not agrees(text, decoded)


def test_a_character_that_the_prompt_began_stands_in_the_streamed_text(tmp_path: Path) -> None:
    folder = tmp_path / "bytes"
    folder.mkdir()
    bytes_as_tokens = {char: place for place, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=bytes_as_tokens, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"chat_template": ""}')
    judge = ChallengeTokenizer(folder)
    ids = tokenizer.encode("aéb").ids  # a, two bytes of é, b
    text = judge.streamed_text(ids[:2], ids[2:])
    assert text == "aéb"
    assert not agrees(text, judge.text(ids[2:]))
