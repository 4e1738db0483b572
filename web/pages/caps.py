"""The guard's cap as the runner will apply it. It is read from the reference records, so the answer is kept."""

from functools import lru_cache
from pathlib import Path

from runner.prompt_sets import private_references
from runner.references import guard_cap
from storage.challenge import Guard
from storage.site import Site
from web.pages import figures


def cap_text(site: Site) -> str:
    """Write the cap, or how it will be found where the reference model hasn't been scored yet."""
    guard, path = site.challenge.guard, private_references(site)
    found = _cap(guard, path, path.stat().st_mtime_ns if path.is_file() else 0)
    return f"{guard.factor:g} × reference" if found is None else figures.perplexity(found)


@lru_cache(maxsize=8)
def _cap(guard: Guard, references: Path, _changed_ns: int) -> float | None:
    return guard_cap(guard, references)
