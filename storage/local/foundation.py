"""Hold the tables of the xorbs that a shard's files are built on, fetched when a file first names them."""

from collections.abc import Iterable, Iterator, Set

from sqlmodel import col, select

from storage.local import upserts, xorbs
from storage.local.effort import Effort
from storage.local.reach import Reach
from storage.local.rows import ContentXorbRow
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.reconstruction import ChunkRange
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable

MAX_FILE_XORBS = 4096
"""Most xorbs that one file is built on: 256 GiB of them."""
_MAX_CHUNKS = 1 << 19
"""Most chunks of the tables in memory, 40 bytes each."""
_AT_ONCE = 16


class Foundation:
    """Tables of what an uploader may build on; foreign xorbs open only the chunks that it could read."""

    def __init__(self, reach: Reach, effort: Effort) -> None:
        """Start without tables; what loading them takes is noted in `effort`."""
        self.tables: dict[Digest, ChunkTable] = {}
        self.is_foreign = False  # a xorb was named that wasn't sent to the uploader's own buckets
        self.reach = reach
        self._parts: dict[Digest, list[ChunkRange]] = {}
        self._effort = effort
        self._held = 0

    def fetch(self, digests: Set[Digest]) -> None:
        """Load what a file names, and drop what earlier files did when it becomes too much.

        Raises:
            InvalidXet: the file is built on more than is held at once, or the shard has had its share of work.
        """
        if not (len(digests) <= MAX_FILE_XORBS):
            raise InvalidXet(f"A file is built on at most {MAX_FILE_XORBS} xorbs.", hint="Upload it as several files.")
        missing = {to_text(digest) for digest in digests - self.tables.keys()}
        if not missing:
            return
        self._effort.on_tables(len(missing))
        own = self.reach.xorbs(missing)
        self.is_foreign = self.is_foreign or own != missing
        for digest, table in self._found(own):
            self._hold(digest, table, keep=digests)
        for digest, table in self._found(self._built_on(missing - own)):
            if parts := self.reach.ranges(to_text(digest), len(table), spend=self._effort.spend):
                self._parts[digest] = parts
                self._hold(digest, table, keep=digests)

    def may_use(self, term: Term) -> bool:
        """Tell whether a term keeps to chunks that the uploader may build on."""
        if term.xorb not in self._parts:
            return True
        return any(part.start <= term.start < term.end <= part.end for part in self._parts[term.xorb])

    def digests(self, terms: Iterable[Term]) -> Iterator[bytes]:
        """Yield for each term the digests of its chunks, concatenated."""
        for term in terms:
            yield self.tables[term.xorb].raw_digests(term.start, term.end)

    def _found(self, names: Set[str]) -> Iterator[tuple[Digest, ChunkTable]]:
        """Load the tables of xorbs, a few at a time."""
        wanted = [from_text(name) for name in sorted(names)]
        for start in range(0, len(wanted), _AT_ONCE):
            yield from xorbs.find_tables(self.reach.session, wanted[start : start + _AT_ONCE]).items()

    def _hold(self, digest: Digest, table: ChunkTable, *, keep: Set[Digest]) -> None:
        self.tables[digest] = table
        self._held += len(table)
        self._make_room(keep)

    def _make_room(self, keep: Set[Digest]) -> None:
        if self._held <= _MAX_CHUNKS:
            return
        self.tables = {digest: table for digest, table in self.tables.items() if digest in keep}
        self._held = sum(map(len, self.tables.values()))
        if not (self._held <= _MAX_CHUNKS):
            hint = "Upload it as several files."
            raise InvalidXet(f"A file is built on xorbs of at most {_MAX_CHUNKS} chunks together.", hint=hint)

    def _built_on(self, names: Set[str]) -> set[str]:
        """Return those xorbs that some file is built on: nobody but their senders may name the others."""
        found: set[str] = set()
        for some in upserts.slices(sorted(names)):
            query = select(ContentXorbRow.xorb).where(col(ContentXorbRow.xorb).in_(some)).distinct()
            found.update(self.reach.session.exec(query))
        return found
