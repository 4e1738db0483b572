"""Find those files of a shard that are recorded already and that its sender could read: nothing of them needs proof.

So a shard that was too much to verify at once goes on where it was left, and what is sent again costs next to nothing.
"""

from collections.abc import Iterable, Iterator, Sequence

from sqlmodel import Session, col, exists, select

from storage.local import upserts
from storage.local.contents import Content
from storage.local.effort import PER_SEARCH, PER_TERM, Effort
from storage.local.reach import Reach
from storage.local.rows import ContentRow, ContentXorbRow, XorbRow
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.shards import FileClaim
from storage.xet.terms import parse_terms

_FILES_AT_ONCE = 256
_TERMS_AT_ONCE = 1 << 13
_ROWS_AT_ONCE = 4  # a row's terms may have 3 MB


def grouped(claims: Iterable[FileClaim]) -> Iterator[list[FileClaim]]:
    """Cut the claims of a shard into groups that are looked up at once, each little to hold."""
    group: list[FileClaim] = []
    terms = 0
    for claim in claims:
        group.append(claim)
        terms += len(claim.terms)
        if len(group) == _FILES_AT_ONCE or terms >= _TERMS_AT_ONCE:
            yield group
            group, terms = [], 0
    if group:
        yield group


def find(reach: Reach, claims: Sequence[FileClaim], effort: Effort) -> dict[Digest, Content]:
    """Return what is recorded of those claimed files that the writer could read and that lack nothing.

    Raises:
        TooMuch: the shard has had its share of work.
    """
    effort.spend(PER_SEARCH)
    within = reach.contents({to_text(claim.digest) for claim in claims})
    found: dict[Digest, Content] = {}
    for some in upserts.slices(sorted(within - _broken(reach.session, within))):
        query = select(ContentRow.digest, ContentRow.size, ContentRow.terms).where(col(ContentRow.digest).in_(some))
        for name, size, raw in reach.session.exec(query.execution_options(yield_per=_ROWS_AT_ONCE)):
            terms = parse_terms(raw)
            effort.spend(PER_TERM * len(terms))
            xorbs = frozenset(to_text(term.xorb) for term in terms)
            found[from_text(name)] = Content(from_text(name), size, raw, xorbs, seen=())
    return found


def _broken(session: Session, names: set[str]) -> set[str]:
    """Return those contents that are built on a xorb which was set aside."""
    is_here = exists().where(col(XorbRow.digest) == col(ContentXorbRow.xorb))
    found: set[str] = set()
    for some in upserts.slices(sorted(names)):
        found.update(
            session.exec(select(ContentXorbRow.content).where(col(ContentXorbRow.content).in_(some), ~is_here))
        )
    return found
