"""Reads a submission's manifest.json strictly; what is wrong is refused by name before anything is spent.

{"name": "mine", "model_id": "model", "served_model_name": "gemma-4-e4b-it", "port": 8000,
 "serve": ["python", "serve.py"], "dependencies": [], "env": {"OMP_NUM_THREADS": "2"}}

A manifest without `serve` may name a profile instead, one of the bundled serving stack's or a TOML file beside the
manifest, with `overrides` by dotted key. The stack says which keys there are; the bounds here it keeps when it writes.
"""

import json
import math
import re
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from storage.errors import Invalid, InvalidPath
from storage.paths import check_path

FILE = "manifest.json"
MAX_BYTES = 65_536
_MOST_PART_BYTES = 255
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_HIDDEN = r"\x7f-\x9f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff"
"""Characters that break a line, reorder text or hide in it; names are shown to people."""
BUNDLED = ("python", "-m", "paddock_stack.cli", "serve", "--submission", ".")
"""Serves what a manifest's profile says; the stack reads the manifest again, and knows the profiles."""
_OURS = frozenset({"MODEL_ID", "SERVED_MODEL_NAME", "HOST", "PORT", "HOME"})
_SECRET = re.compile(r".*(_TOKEN|_KEY|SECRET|PASSWORD)", re.ASCII | re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,7}", re.ASCII)
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_LONGEST, _DEEPEST, _MOST_OVERRIDES, _LARGEST = 4096, 8, 100, 2**63

Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=rf"^[^\x00-\x1f{_HIDDEN}]+$")]
Text = Annotated[str, StringConstraints(max_length=2000, pattern=rf"^[^\x00-\x08\x0b\x0c\x0e-\x1f{_HIDDEN}]*$")]
Argument = Annotated[str, StringConstraints(max_length=_LONGEST, pattern=r"^[^\x00]*$")]
Profile = Annotated[str, StringConstraints(max_length=60, pattern=r"^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$")]


class BadManifest(Invalid):
    """The manifest is missing, isn't strict JSON, or a field is wrong."""

    code = "INVALID_MANIFEST"


class Manifest(BaseModel):
    """How a submission is served; `model_id` is a Hub id, or a path inside the submission."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, protected_namespaces=())

    name: Line
    description: Text = ""
    dependencies: list[Line] = Field(default_factory=list, max_length=200)
    model_id: Line
    served_model_name: Line
    port: int = Field(ge=1024, le=65535)
    serve: list[Argument] = Field(min_length=1, max_length=200)
    env: dict[str, Argument] = Field(default_factory=dict, max_length=200)
    profile: Profile = ""
    overrides: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _bundled(cls, value: Any) -> Any:
        """Serve by the bundled stack what names a profile and no command; beside one a profile is the stack's own."""
        if not isinstance(value, dict):
            return value
        if "serve" in value:
            return {key: held for key, held in value.items() if key not in ("profile", "overrides")}
        return {**value, "serve": list(BUNDLED)} if value.get("profile") else value

    @field_validator("model_id")
    @classmethod
    def _clean_model(cls, value: str) -> str:
        check_parts(check_path(value))
        return value

    @field_validator("serve")
    @classmethod
    def _has_program(cls, value: list[str]) -> list[str]:
        if not value[0].strip():
            raise ValueError("its first part must name a program")
        return value

    @field_validator("dependencies")
    @classmethod
    def _requirements_only(cls, value: list[str]) -> list[str]:
        for line in value:
            if line.startswith("-"):
                raise ValueError(f"{line!r} is an option, not a requirement")
        return value

    @field_validator("env")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            _check_variable(name)
        return value

    @field_validator("overrides")
    @classmethod
    def _within_bounds(cls, value: dict[str, Any]) -> dict[str, Any]:
        if len(value) > _MOST_OVERRIDES:
            raise ValueError(f"there are more than {_MOST_OVERRIDES}")
        for key, held in value.items():
            _check_key(key, key)
            _check_setting(key, held)
        for name in _variables(value):
            _check_variable(name)
            if _SECRET.fullmatch(name):
                raise ValueError(f"{name} is named like a secret, and a manifest is public")
        return value


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r:.120} is no variable name")
    if name in _OURS:
        raise ValueError(f"{name} is set by the runner")


def _variables(overrides: dict[str, Any]) -> list[str]:
    """List the variables that `overrides` set, as `env.NAME` or in a table `env`."""
    table = overrides.get("env")
    dotted = [key.removeprefix("env.") for key in overrides if key.startswith("env.")]
    return [*dotted, *(table if isinstance(table, dict) else ())]


def _check_key(key: str, where: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(f"{where!r:.120} is no key: up to eight short parts of letters, digits, - and _, with dots")


def _check_setting(where: str, value: Any, depth: int = 0) -> None:
    if depth >= _DEEPEST and isinstance(value, dict | list):
        raise ValueError(f"{where!r:.120} is nested more than {_DEEPEST} deep")
    if isinstance(value, dict):
        for key, held in value.items():
            _check_key(key, f"{where}.{key}")
            _check_setting(f"{where}.{key}", held, depth + 1)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            _check_setting(f"{where}[{number}]", held, depth + 1)
    elif fault := _plain_fault(value):
        raise ValueError(f"{where!r:.120} {fault}")


def _plain_fault(value: str | float | None) -> str | None:
    if value is None:
        return "is null, which no profile can say; leave it out"
    if isinstance(value, int) and not (-_LARGEST <= value < _LARGEST):
        return "is a number of more than 64 bits"
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"has more than {_LONGEST} characters"
    if isinstance(value, str) and _NO_TEXT.search(value):
        return "holds a character that is no text"
    return None


def check_parts(path: str) -> None:
    """Refuse a path that no disk can hold.

    Raises:
        InvalidPath: one of its parts is too long.
    """
    if any(len(part.encode()) > _MOST_PART_BYTES for part in path.split("/")):
        raise InvalidPath(f"The path {path!r:.120} has a part of more than {_MOST_PART_BYTES} bytes.")


def parse_manifest(content: bytes) -> Manifest:
    """Read a manifest.

    Raises:
        BadManifest: with the first thing that is wrong.
    """
    if len(content) > MAX_BYTES:
        raise BadManifest(f"{FILE} has more than {MAX_BYTES} bytes.")
    try:
        return Manifest.model_validate(_finite_json(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "its top level"
        raise BadManifest(f"{FILE} is wrong at {where}: {first['msg'].removeprefix('Value error, ')}.") from error
    except InvalidPath as error:
        raise BadManifest(f"{FILE} is wrong at model_id: {error.message}") from error


def _finite_json(content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise BadManifest(f"{FILE} is not JSON with finite numbers: {error}.") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits:.40} is too large")
    return value
