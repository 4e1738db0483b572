"""Every setting of a Paddock server, one row each; `paddock settings` prints them.

The environment variable of a row is `PADDOCK_` and its name in capitals. What belongs to a race rather
than to a machine stands in `challenge.toml` (`storage.challenge`).
"""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from storage.errors import Invalid

_ROOT = Path(__file__).resolve().parent.parent


def _row(unit: str, help_text: str) -> object:
    return Field(description=help_text, json_schema_extra={"unit": unit})


_Positive = Field(gt=0, allow_inf_nan=False)
_Count = Field(ge=1)


class BadSettings(Invalid):
    """A setting has a value that it can't have."""

    code = "BAD_SETTINGS"


class Settings(BaseSettings):
    """One machine's settings, read from `PADDOCK_*`."""

    model_config = SettingsConfigDict(env_prefix="PADDOCK_", extra="ignore", frozen=True)

    data: Annotated[Path, _row("path", "Folder that holds everything the embedded default keeps.")] = Path("data")
    challenge: Annotated[Path, _row("path", "The race: its challenge.toml.")] = _ROOT / "challenge.toml"
    database_url: Annotated[str, _row("URL", "Database; empty means SQLite inside the data folder.")] = ""
    host: Annotated[str, _row("address", "Address the server listens on.")] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535), _row("port", "Port the server listens on.")] = 7860
    public_url: Annotated[
        str, _row("URL", "Address used in texts the server writes; empty means the one the client used.")
    ] = ""
    trusted_proxies: Annotated[
        str, _row("addresses", "Proxies (addresses or CIDR) whose X-Forwarded-* is believed, comma separated.")
    ] = ""
    allowed_hosts: Annotated[
        str,
        _row(
            "hosts",
            "More names the server answers to, comma separated, * for any. It always answers to localhost, the address "
            "it listens on or was reached at, and public_url's host.",
        ),
    ] = ""
    server_env: Annotated[Path, _row("path", "Python environment that submissions are served in (vLLM).")] = (
        _ROOT / ".server-env"
    )
    trusted_submitters: Annotated[
        str, _row("users", "Users whose submissions may run where no sandbox can be had, comma separated.")
    ] = ""
    sandbox_uid: Annotated[int, _Count, _row("uid", "First user id of the range that submissions run under.")] = 64000
    lease: Annotated[float, _Positive, _row("s", "Time after which a silent worker has lost its job.")] = 30.0
    tick: Annotated[float, _Positive, _row("s", "Pause between two rounds of the scheduler and of an idle worker.")] = (
        1.0
    )
    staged_settle: Annotated[
        float,
        Field(ge=0, allow_inf_nan=False),
        _row("s", "Quiet time after the last upload before a staged submission is taken."),
    ] = 10.0
    log_tail: Annotated[int, _Count, _row("bytes", "Largest part of a server's log that is kept with a run.")] = (
        1_000_000
    )
    max_sync_bytes: Annotated[int, _Count, _row("bytes", "Largest submission or sync.")] = 5_000_000_000
    max_sync_files: Annotated[int, _Count, _row("files", "Most files in a submission or sync.")] = 10_000
    store_token_life: Annotated[
        float, _Positive, _row("s", "Life of an access token of the store; clients renew theirs in time.")
    ] = 3600.0
    expand_limit: Annotated[int, _Count, _row("records", "Largest page of a listing with `expand`.")] = 100

    @property
    def sqlalchemy_url(self) -> str:
        """The database's URL with the embedded default filled in."""
        return self.database_url or f"sqlite:///{self.data.resolve() / 'paddock.db'}"

    @property
    def trusted_users(self) -> frozenset[str]:
        """Names in `trusted_submitters`."""
        return frozenset(name.strip() for name in self.trusted_submitters.split(",") if name.strip())

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Addresses in `trusted_proxies`."""
        return _networks(self.trusted_proxies)

    @field_validator("trusted_proxies")
    @classmethod
    def _are_addresses(cls, text: str) -> str:
        _networks(text)
        return text


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip())


def load(**given: object) -> Settings:
    """Read the settings; `given` wins over the environment.

    Raises:
        BadSettings: names the first variable that is wrong, and why.
    """
    try:
        return Settings(**given)  # type: ignore[arg-type]
    except ValidationError as error:
        first = error.errors()[0]
        name = f"PADDOCK_{str(first['loc'][0]).upper()}"
        raise BadSettings(
            f"{name} is {first['input']!r:.80}: {first['msg']}.", hint="See: paddock settings."
        ) from error


def rows() -> list[tuple[str, str, str, str]]:
    """List every setting as (environment variable, unit, default, help)."""
    return [
        (
            f"PADDOCK_{name.upper()}",
            str((field.json_schema_extra or {}).get("unit", "")) if isinstance(field.json_schema_extra, dict) else "",
            str(field.default),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
