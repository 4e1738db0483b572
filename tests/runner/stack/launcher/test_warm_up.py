"""What the warm-up asks of a server: chats, completions, one scored prompt, every tower."""

from __future__ import annotations

from typing import Any

import pytest

from paddock_stack.launcher import checks, salad
from paddock_stack.launcher.asking import NotAnswered, Server
from paddock_stack.launcher.warm_up import warm_up
from paddock_stack.profiles.schema import WarmUp

SETTINGS = WarmUp(prompts=4, shortest=50, longest=530)


class Fake(Server):
    """Answers like a server whose tokenizer makes three tokens of a word; the towers in `broken` don't work."""

    def __init__(self, *broken: str) -> None:
        super().__init__("nowhere", 1, "key")
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "broken", broken)

    asked: list[tuple[str, dict[str, Any]]]
    broken: tuple[str, ...]

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked.append((path, body))
        if path == "/tokenize":
            return {"tokens": [7] * (3 * len(body["prompt"].split()))}
        content = body["messages"][0]["content"] if "messages" in body else ""
        if any(part["type"].startswith(word) for word in self.broken for part in content if isinstance(part, dict)):
            raise NotAnswered("500")
        length = len(body.get("prompt", ())) or 3 * len(str(content).split())
        usage = {"prompt_tokens": length, "completion_tokens": body["max_tokens"]}
        return {"usage": usage, "choices": [{"prompt_logprobs": [None] * length}]}


def test_half_are_chats_and_half_completions_of_token_ids_of_all_lengths() -> None:
    server = Fake()
    told = warm_up(server, "gemma", SETTINGS, ())
    asked = [(path, body) for path, body in server.asked if path != "/tokenize"]
    chats = [body for path, body in asked if path == "/v1/chat/completions"]
    completions = [body for path, body in asked if path == "/v1/completions" and "prompt_logprobs" not in body]
    assert (len(chats), len(completions), told.scored_prompts) == (2, 2, 1)
    assert all(salad.is_salad(body["messages"][0]["content"]) for body in chats)
    assert all(isinstance(token, int) for body in completions for token in body["prompt"])
    assert all(
        body["max_tokens"] == 16 and body["ignore_eos"] and body["temperature"] == 0 for body in (*chats, *completions)
    )
    assert abs(told.shortest_tokens - 50) <= 3
    assert abs(told.longest_tokens - 530) <= 3


def test_warm_up_is_the_same_every_time() -> None:
    first, second = Fake(), Fake()
    assert warm_up(first, "m", SETTINGS, ()).prompts_sha256 == warm_up(second, "m", SETTINGS, ()).prompts_sha256
    assert first.asked == second.asked


def test_every_tower_is_looked_through() -> None:
    config = {"vision_config": {"x": 1}, "audio_config": {"x": 1}, "text_config": {}}
    server = Fake()
    assert warm_up(server, "m", SETTINGS, checks.has_towers(config)).towers == ("image", "audio")
    kinds = [part["type"] for _, body in server.asked[-2:] for part in body["messages"][0]["content"]]
    assert kinds == ["text", "image_url", "text", "input_audio"]
    assert checks.has_towers({"model_type": "gemma4_text"}) == ()


@pytest.mark.parametrize(("broken", "kind"), [("image_url", "image"), ("input_audio", "audio")])
def test_tower_that_does_not_work_ends_the_start(broken: str, kind: str) -> None:
    with pytest.raises(NotAnswered, match=f"the {kind} tower does not work here"):
        warm_up(Fake(broken), "m", SETTINGS, ("image", "audio"))
