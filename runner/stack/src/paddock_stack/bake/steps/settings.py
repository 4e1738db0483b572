"""Change numbers of the configuration that a server reads, in the model and its drafter alike."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from paddock_stack.bake.checkpoint import Checkpoint
from paddock_stack.bake.quantization import copied
from paddock_stack.bake.steps.step import Models, Step
from paddock_stack.bake.text_config import number, text_part
from paddock_stack.refusals import Refused


@dataclass(frozen=True)
class SetWindow(Step):
    """Give the sliding layers of the model and of its drafter the same window, in tokens.

    The drafter reads the model's keys and values; with a wider window it would read blocks that are freed already.
    """

    NAME = "set-window"
    SUMMARY = "set the sliding window of the model and of its drafter"

    window: int = field(metadata={"help": "tokens that a sliding layer sees, e.g. 192"})
    without_drafter: bool = field(default=False, metadata={"help": "say that the model is served without a drafter"})

    def apply(self, models: Models) -> Models:
        """Return the models with the window in both configurations."""
        target = models.the_target(self.NAME)
        if self.without_drafter != (models.drafter is None):
            raise Refused("set-window needs a drafter (--drafter and --drafter-out) or --without-drafter, not both")
        changed = dataclasses.replace(models, target=_with_window(target, self.window))
        if models.drafter is None:
            return changed
        return dataclasses.replace(changed, drafter=_with_window(models.drafter, self.window))


def _with_window(before: Checkpoint, window: int) -> Checkpoint:
    config = copied(before.config)
    text = text_part(config)
    if text.get("use_bidirectional_attention") == "all":
        raise Refused("the model attends both ways everywhere, where the window means something else")
    if not (1 <= window <= number(text, "max_position_embeddings", 131072)):
        raise Refused(f"a window of {window} tokens is not between 1 and the longest context")
    text["sliding_window"] = window
    return dataclasses.replace(before, config=config)


@dataclass(frozen=True)
class SetCentroidTopK(Step):
    """Let the drafter score the tokens of its `top_k` best centroids."""

    NAME = "set-centroid-top-k"
    SUMMARY = "set how many centroids the drafter looks into"

    top_k: int = field(metadata={"help": "centroids, e.g. 32"})

    def apply(self, models: Models) -> Models:
        """Return the models with the number in the drafter's configuration."""
        before = models.the_drafter(self.NAME)
        config = copied(before.config)
        if not config.get("use_ordered_embeddings"):
            raise Refused("the drafter has no ordered embeddings, so it has no centroids to choose from")
        most = number(config, "num_centroids", 2048)
        if not (1 <= self.top_k <= most):
            raise Refused(f"the drafter has {most} centroids, so {self.top_k} can't be chosen")
        config["centroid_intermediate_top_k"] = self.top_k
        return dataclasses.replace(models, drafter=dataclasses.replace(before, config=config))
