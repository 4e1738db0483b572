"""The text that lets an agent join: the central bucket's README, `/llms.txt` and `/skill.md`, from one template.

It says what the race's own file says, with this server's addresses. Where no public address is set, the bucket's
copy names the one the server listens on and says so; what is served names the one it was asked at.
"""

from enum import StrEnum
from functools import cache
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from sqlmodel import Session

from storage.buckets import Put
from storage.settings import Settings
from storage.site import Site

PATH = "README.md"
_TEMPLATE = Path(__file__).with_name("onboarding.md.jinja")
_ANYWHERE = {"0.0.0.0": "localhost", "::": "localhost", "": "localhost"}  # noqa: S104 - read, not bound


class Audience(StrEnum):
    """Who reads the text; a skill has a frontmatter of its own."""

    README = "readme"
    LLMS = "llms"
    SKILL = "skill"


def render(site: Site, audience: Audience, url: str) -> str:
    """Write the text with the addresses of `url`, which has no slash at its end."""
    return _template().render(
        audience=audience.value,
        race=site.challenge,
        url=url,
        is_address_set=audience is not Audience.README or bool(site.settings.public_url),
        central=str(site.central),
        scratch=f"{site.challenge.org}/{site.challenge.slug}-",
        limits=[(name.replace("_", " "), value) for name, value in site.challenge.limits.model_dump().items()],
        max_sync_bytes=site.settings.max_sync_bytes,
        max_sync_files=site.settings.max_sync_files,
    )


def refresh(site: Site, session: Session) -> bool:
    """Bring the central bucket's README up to date, in the session's transaction; tell whether it had to change."""
    text = render(site, Audience.README, address(site.settings)).encode()
    store = site.buckets(session)
    stored = store.stat(site.central, PATH)
    is_same_size = stored is not None and stored.size == len(text)
    if is_same_size and store.read(site.central, PATH, max_bytes=len(text)) == text:
        return False
    store.apply(site.central, [Put(PATH, text, "text/markdown; charset=utf-8")])
    return True


def address(settings: Settings) -> str:
    """The server's address as far as it knows it: the public one, or the one it listens on."""
    host = _ANYWHERE.get(settings.host, settings.host)
    listens = f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"
    return settings.public_url.rstrip("/") or listens


@cache
def _template() -> Template:
    environment = Environment(  # noqa: S701 - what it writes is Markdown, of the operator's own words
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(_TEMPLATE.read_text("utf-8"))
