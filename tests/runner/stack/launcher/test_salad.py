"""The warm-up's prompts are of no prompt set, and the same every time."""

from __future__ import annotations

import json

from paddock_stack.launcher import media, salad
from paddock_stack.profiles.schema import WarmUp
from tests.runner.stack.serving.zygote import ROOT


def test_no_public_prompt_nor_a_line_of_one_could_be_of_the_warm_up() -> None:
    lines = (ROOT / "prompts/public.jsonl").read_text().splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    assert texts
    pieces = [piece for text in texts for piece in (text, *text.splitlines()) if len(piece.split()) > 1]
    assert not [piece for piece in pieces if salad.is_salad(piece.strip())]


def test_every_prompt_of_the_warm_up_is_salad_and_no_two_are_alike() -> None:
    made = [salad.text(7, number, 60) for number in range(-1, 64)]
    assert all(salad.is_salad(text) for text in made)
    assert len(set(made)) == len(made)
    assert len({text[:40] for text in made}) == len(made)  # not even as prefixes, which a cache would share


def test_seed_decides_all_of_it() -> None:
    assert salad.text(7, 0, 5) == salad.text(7, 0, 5) != salad.text(8, 0, 5)
    assert salad.digest([salad.text(7, 0, 5)]) == salad.digest([salad.text(7, 0, 5)])


def test_lengths_reach_from_the_shortest_to_the_longest() -> None:
    made = salad.lengths(WarmUp(prompts=64, shortest=50, longest=530))
    assert (len(made), min(made), max(made)) == (64, 50, 530)
    assert salad.lengths(WarmUp(prompts=1)) == [50]


def test_picture_and_sound_are_what_they_say() -> None:
    assert media.picture(8).startswith(b"\x89PNG\r\n\x1a\n")
    assert media.sound(100)[:4] == b"RIFF"
    assert media.part("image")["image_url"]["url"].startswith("data:image/png;base64,")
    assert media.part("audio")["input_audio"]["format"] == "wav"
