"""Read and edit `quantization_config`, of which only compressed-tensors' pack-quantized form is known here.

    {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["re:.*vision_tower.*"],
     "config_groups": {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 32, …}}}}

A module is quantised by the first group that has a target for its name; failing that, for its class; unless `ignore`
means it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from paddock_stack.bake.integers import WHOLE_ROW, Scheme
from paddock_stack.bake.names import matches, renumbered_patterns
from paddock_stack.bake.text_config import Config, is_multimodal
from paddock_stack.refusals import Refused

KEY = "quantization_config"
TOWERS = ["re:.*vision_tower.*", "re:.*audio_tower.*", "re:.*embed_vision.*", "re:.*embed_audio.*"]


def part(config: Config) -> Config | None:
    """Return the mutable quantisation part of `config`, or None; raise `Refused` for a form unknown here."""
    held = config.get(KEY) or config.get("text_config", {}).get(KEY)
    if held is None:
        return None
    if held.get("quant_method") != "compressed-tensors" or held.get("format") != "pack-quantized":
        raise Refused(
            f"the checkpoint is quantised as {held.get('quant_method')} {held.get('format')}; "
            "only compressed-tensors pack-quantized is known here"
        )
    _check_form(dict_of(held))
    return dict_of(held)


def _check_form(held: Config) -> None:
    groups = [dict_of(group) for group in dict_of(held.get("config_groups")).values()]
    for patterns in (held.setdefault("ignore", []), *(group.get("targets") for group in groups)):
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise Refused("the checkpoint's quantisation names its modules in another form than lists of patterns")


def dict_of(value: object) -> Config:
    """Return `value`, which must be a JSON object."""
    if not isinstance(value, dict):
        raise Refused("config.json has something other than an object where one belongs")
    return value


def scheme_of(config: Config, module: str, of_class: str) -> Scheme | None:
    """Return how the configuration quantises `module`, or None where it stays in floats."""
    group = _group_of(config, module, of_class)
    return None if group is None else _scheme(group)


def renumber(config: Config, modules: Iterable[str], new_numbers: Mapping[int, int]) -> None:
    """Give layers their new numbers in every pattern of `config`, in place."""
    held, modules = part(config), list(modules)
    if held is None:
        return
    held["ignore"] = renumbered_patterns(held["ignore"], modules, new_numbers)
    for group in held["config_groups"].values():
        group["targets"] = renumbered_patterns(group["targets"], modules, new_numbers)


def ignore(config: Config, pattern: str) -> None:
    """Leave what `pattern` means in floats, in place; without a quantisation part there is nothing to do."""
    held = part(config)
    if held is not None and pattern not in held["ignore"]:
        held["ignore"].append(pattern)


def regard(config: Config, wanted: Iterable[str], modules: Iterable[str]) -> None:
    """Take the modules `wanted` out of `ignore`, in place; what else a pattern among them means stays ignored."""
    held, wanted = part(config), set(wanted)
    if held is None:
        return
    kept: dict[str, None] = {}
    for pattern in held["ignore"]:
        if not pattern.startswith("re:") and any(pattern.endswith(f".{module}") for module in wanted):
            continue  # the same module under the name that a server gives it
        meant = {module for module in modules if matches(module, pattern)}
        kept |= dict.fromkeys(sorted(meant - wanted)) if meant & wanted else {pattern: None}
    held["ignore"] = list(kept)


def start(config: Config, scheme: Scheme, ignored: list[str]) -> None:
    """Give an unquantised `config` a quantisation part under which every linear module but `ignored` has `scheme`."""
    start_empty(config)
    config[KEY]["ignore"] += ignored
    config[KEY]["config_groups"]["group_0"] = _new_group(["Linear"], scheme)


def start_empty(config: Config) -> None:
    """Give an unquantised `config` a quantisation part under which nothing is quantised yet."""
    config[KEY] = {
        **{"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed"},
        "ignore": list(TOWERS) if is_multimodal(config) else [],
        "config_groups": {},
    }


def add_group(config: Config, targets: list[str], scheme: Scheme) -> None:
    """Quantise what `targets` mean under `scheme`, in place, ahead of what other groups say of them."""
    held = part(config)
    if held is None:
        raise Refused("a group was added to a configuration that has no quantisation part")
    groups = held["config_groups"]
    for group in groups.values():
        group["targets"] = [target for target in group["targets"] if target not in targets]
    free = next(name for number in range(len(groups) + 1) if (name := f"group_{number}") not in groups)
    held["config_groups"] = {name: group for name, group in groups.items() if group["targets"]}
    held["config_groups"] = {free: _new_group(targets, scheme), **held["config_groups"]}


def rescheme(config: Config, packed: Iterable[str], changed: Iterable[str], scheme: Scheme) -> None:
    """Give `scheme`, in place, to each group whose `packed` modules have all `changed`; others stay as they are."""
    held, packed, changed = part(config), list(packed), set(changed)
    groups = [] if held is None else held["config_groups"].values()
    for group in groups:
        meant = {module for module in packed if _group_of(config, module, "Linear") is group}
        if meant and meant <= changed:
            group["weights"] = _new_group([], scheme)["weights"]


def copied(config: Config) -> Config:
    """Return a copy of `config` that may be edited in place."""
    return copy.deepcopy(config)


def _group_of(config: Config, module: str, of_class: str) -> Config | None:
    held = part(config)
    if held is None or any(matches(module, pattern) for pattern in held["ignore"]):
        return None
    groups: list[Config] = list(held["config_groups"].values())
    for group in groups:
        if any(matches(module, target) for target in group["targets"]):
            return group
    return next((group for group in groups if of_class in group["targets"]), None)


def _scheme(group: Config) -> Scheme:
    weights = dict_of(group.get("weights"))
    by_row = weights.get("strategy") == "channel"
    known = weights.get("type") == "int" and weights.get("symmetric") and not weights.get("actorder")
    if not known or weights.get("strategy") not in ("group", "channel") or group.get("input_activations"):
        raise Refused("the checkpoint's weights are not quantised as symmetric integers by group or by row")
    return Scheme(weights["num_bits"], WHOLE_ROW if by_row else weights["group_size"])


def _new_group(targets: list[str], scheme: Scheme) -> dict[str, Any]:
    weights: dict[str, Any] = {"num_bits": scheme.bits, "type": "int", "symmetric": True, "dynamic": False}
    if scheme.group_size == WHOLE_ROW:
        weights |= {"strategy": "channel", "group_size": None}
    else:
        weights |= {"strategy": "group", "group_size": scheme.group_size}
    return {"targets": targets, "weights": weights, "input_activations": None, "output_activations": None}
