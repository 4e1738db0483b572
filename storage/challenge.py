"""A race: everything that `challenge.toml` says, checked once at start."""

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from storage.errors import Invalid

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$")]


class BadChallenge(Invalid):
    """The challenge file is missing, isn't TOML, or lacks what a race needs."""

    code = "BAD_CHALLENGE"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Score(_Part):
    """What ranks: a frontmatter field, its unit, and which end is better."""

    field: str = "tps"
    unit: str = "tok/s"
    order: Literal["desc", "asc"] = "desc"


class Guard(_Part):
    """What must not get worse: a field and its cap, inclusive.

    `cap` is absolute; where it is absent the cap is `factor` times the perplexity that the reference
    records themselves carry.
    """

    field: str = "ppl"
    cap: float | None = Field(default=None, gt=0)
    factor: float = Field(default=1.05, gt=0)


class HarnessSettings(_Part):
    """How one draw is measured."""

    num_prompts: int = Field(default=128, ge=1)
    output_tokens: int = Field(default=512, ge=1)
    warmup_requests: int = Field(default=4, ge=0)
    seed: int = 1
    max_prompt_tokens: int = Field(default=3000, ge=1)
    request_timeout_s: float = Field(default=120.0, gt=0)
    startup_timeout_s: float = Field(default=900.0, gt=0)
    run_timeout_s: float = Field(default=3600.0, gt=0)


class PromptSets(_Part):
    """Files of prompts and reference records; paths relative to the challenge file.

    `public_generated` prompts from a published seed follow those of the `public` file.
    The private set is made from a secret seed of the data folder and lies in `DATA/private/`. Each draw takes
    `num_prompts` of its `private_count`, so make that larger: prompts over `max_prompt_tokens` are left out.
    """

    tokenizer: str
    public: Path
    public_generated: int = Field(default=0, ge=0)
    public_references: Path | None = None
    private_count: int = Field(default=256, ge=1)


class Verification(_Part):
    """How a result is verified.

    `draws` is the size of a volley. `claim_band` is the share by which a claim may lie above what was measured (its
    upper 95 % bound) and still hold. Draws of different `rule_version` are never pooled.
    """

    draws: int = Field(default=5, ge=2, le=20)
    claim_band: float = Field(default=0.02, ge=0, lt=1)
    rule_version: int = 1


class Storage(_Part):
    """Where buckets lie: `local`, or `hub` at `endpoint` (empty: the public one).

    The Hub's token comes from the environment variable named here, never from a file.
    """

    backend: Literal["local", "hub"] = "local"
    endpoint: str = ""
    token_variable: str = "PADDOCK_HUB_TOKEN"  # noqa: S105 - a name, no secret

    @property
    def address(self) -> str:
        """The Hub's address, without a slash at the end."""
        return self.endpoint.rstrip("/") or "https://huggingface.co"


class Limits(_Part):
    """Budgets; windows are sliding. `buckets_per_user` caps how many names one person can take.

    A bucket promotes `promotions_burst` records in any `promotions_burst_seconds` and `promotions_per_min` in any
    minute. `bucket_…` are what one person's buckets may hold together; 0 is no limit.
    """

    promotions_burst: int = Field(default=20, ge=0)
    promotions_burst_seconds: int = Field(default=10, ge=1, le=60)
    promotions_per_min: int = 60
    bucket_bytes: int = Field(default=0, ge=0)
    bucket_stored_bytes: int = Field(default=0, ge=0)
    bucket_files: int = Field(default=0, ge=0)
    raw_posts_per_min: int = 5
    raw_posts_per_hour: int = 30
    registrations_per_min: int = 3
    runs_per_agent_per_day: int = 5
    runs_per_user_per_day: int = 20
    verifications_per_user_per_day: int = 20
    buckets_per_user: int = 20


class Challenge(_Part):
    """One race.

    `tokenless` takes raw posts without a token and marks them unproven. `auto_benchmark` runs submissions that lie
    still in a scratch bucket by itself. `required_fields` must stand in every result's frontmatter.
    """

    org: Slug
    slug: Slug
    title: str
    description: str
    model: str
    hardware: str
    tokenless: bool = False
    auto_benchmark: bool = False
    required_fields: tuple[str, ...] = ("tps", "ppl", "method", "status", "description")
    score: Score = Score()
    guard: Guard = Guard()
    harness: HarnessSettings = HarnessSettings()
    prompts: PromptSets
    verification: Verification = Verification()
    limits: Limits = Limits()
    storage: Storage = Storage()
    root: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="after")
    def _enough_private_prompts(self) -> Self:
        if self.prompts.private_count < self.harness.num_prompts:
            raise ValueError("prompts.private_count is less than harness.num_prompts")
        return self

    def resolve(self, path: Path | str) -> Path:
        """Turn a path of the challenge file into an absolute one."""
        return (self.root / path).resolve()


def load_challenge(path: Path) -> Challenge:
    """Read and check a challenge file.

    Raises:
        BadChallenge: with the first thing that is wrong.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadChallenge(f"The challenge file {path} can't be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadChallenge(f"The challenge file {path} is not TOML: {error}.") from error
    try:
        return Challenge.model_validate({**data, "root": path.resolve().parent})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadChallenge(f"The challenge file {path} is wrong at {where}: {first['msg']}.") from error
