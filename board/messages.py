"""Messages: what is said on the board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlmodel import Session, col, select

from agents import limits, quotas
from agents.backends import check_organizer
from agents.directory import agent_ids
from agents.names import user_of
from agents.ownership import IdentityMismatch, check_handle_owner, get_agent
from agents.roles import NotOrganizer
from agents.tokens import Caller
from board.attribution import Level, level_of
from board.listing import Folder, Record, in_folder
from board.mentions import Recipients, recipients
from board.promotion import Published, load_source, publish, type_of
from board.records import IMPORTED, MESSAGES, SUPERSEDES, parse_name, ref_names
from board.rows import PostRow
from storage.errors import NotFound, Unauthorized
from storage.frontmatter import Value
from storage.paths import check_path
from storage.site import Site


class MessageNotFound(NotFound):
    """There is no such record on the board."""

    code = "NOT_FOUND"


@dataclass(frozen=True)
class Wish:
    """What a request asks beside the text: it wins over a source's own frontmatter."""

    type: str | None = None
    refs: str | Sequence[str] | None = None
    broadcast: bool = False
    supersedes: str | None = None


@dataclass(frozen=True)
class Posted:
    """A message that is now on the board, and whom it reached."""

    published: Published
    via: str
    recipients: Recipients
    broadcast: bool
    supersedes: str | None = None

    def as_json(self) -> Record:
        """Shape the answer of `POST /v1/messages`."""
        return {
            "filename": self.published.filename,
            "via": self.via,
            "path": self.published.path,
            "mentions_delivered": list(self.recipients.delivered),
            "mentions_dropped": list(self.recipients.dropped),
            "broadcast": self.broadcast,
            **({"supersedes": self.supersedes} if self.supersedes else {}),
        }


def post_source(site: Site, session: Session, caller: Caller | None, source: str, wish: Wish) -> Posted:
    """Promote a message from the caller's scratch bucket.

    Raises:
        As `board.promotion.load_source` and `publish`.
        NotOrganizer: the frontmatter or the wish asks for a broadcast that the caller may not send.
    """
    loaded = load_source(site, session, caller, source)
    refuse_broadcast_key(loaded.document.frontmatter)
    _check_broadcast(session, caller, wish)
    _check_supersedes(session, caller, loaded.agent_id, wish)
    head, body = loaded.document.frontmatter, loaded.document.body
    said = _Said(loaded.agent_id, "bucket", _with_wish(head, wish, default_type="agent"), body, wish.broadcast)
    return _post(site, session, caller, said, dedup=loaded.dedup)


def post_raw(site: Site, session: Session, caller: Caller | None, handle: str, body: str, wish: Wish) -> Posted:
    """Post text as an agent, or as the person who calls.

    Raises:
        InvalidPath, NotRegistered, Unauthorized, IdentityMismatch, NotOrganizer: the caller may not.
        RateLimited: too many in the last minute or hour.
        InvalidFrontmatter, UnstorableText, RecordTooLarge: the text can't be stored.
    """
    user = user_of(handle)
    check_speaker(site, session, caller, handle)
    _check_broadcast(session, caller, wish)
    _check_supersedes(session, caller, handle, wish)
    spend_raw(site, session, handle)
    head = _with_wish({}, wish, default_type="user" if user else "agent")
    if user:
        head["type"] = "user"
    return _post(site, session, caller, _Said(handle, "dashboard" if user else "raw", head, body, wish.broadcast))


def refuse_broadcast_key(frontmatter: Mapping[str, Value]) -> None:
    """Refuse a source that says of itself that it is a broadcast.

    Raises:
        NotOrganizer: it does.
    """
    if "broadcast" in frontmatter:
        raise NotOrganizer(
            "A source can't make itself a broadcast.", hint='Take the key out; organizers send "broadcast": true.'
        )


def get_message(session: Session, filename: str, *, folder: str = MESSAGES) -> PostRow:
    """Return one record of a folder.

    Raises:
        InvalidPath: that can be no file name.
        MessageNotFound: there is none.
    """
    check_path(filename)
    row = session.exec(select(PostRow).where(PostRow.folder == folder, PostRow.filename == filename)).first()
    if row is None:
        raise MessageNotFound(f"There is no record {filename!r:.100} in {folder}/.")
    return row


def to_record(row: PostRow) -> Record:
    """Shape a full record; `proof` is what stands behind its author's name."""
    proof = level_of(row.frontmatter)
    return {"filename": row.filename, "frontmatter": row.frontmatter, "body": row.body, "proof": proof}


def raw_files(session: Session, *, folder: str = MESSAGES) -> list[Record]:
    """List every file of a folder whole, by name."""
    asked = select(PostRow.filename, PostRow.content).where(PostRow.folder == folder).order_by(col(PostRow.filename))
    return [{"filename": filename, "content": content} for filename, content in session.exec(asked)]


def all_messages() -> Folder:
    """The folder of messages, for a listing."""
    return in_folder(MESSAGES)


@dataclass(frozen=True)
class _Said:
    handle: str
    via: str
    frontmatter: Mapping[str, Value]
    body: str
    broadcast: bool


def _post(
    site: Site, session: Session, caller: Caller | None, said: _Said, *, dedup: tuple[str, str] | None = None
) -> Posted:
    reached = recipients(
        said.body,
        author=said.handle,
        ref_authors=_authors(session, ref_names(said.frontmatter.get("refs"))),
        is_known=agent_ids(session).__contains__,
    )
    published = publish(
        site,
        session,
        folder=MESSAGES,
        handle=said.handle,
        frontmatter=said.frontmatter,
        body=said.body,
        via=said.via,
        dedup=dedup,
        inbox=reached.delivered,
        broadcast=said.broadcast,
        proof=None if caller else "none",
    )
    return Posted(published, said.via, reached, said.broadcast, superseded_by(session, published.row))


def _with_wish(frontmatter: Mapping[str, Value], wish: Wish, *, default_type: str) -> dict[str, Value]:
    head = dict(frontmatter)
    head["type"] = type_of(wish.type or head.get("type"), default=default_type)
    if wish.supersedes:
        head[SUPERSEDES] = wish.supersedes
    if wish.refs:
        head["refs"] = wish.refs if isinstance(wish.refs, str) else list(wish.refs)
    return head


def superseded_by(session: Session, row: PostRow) -> str | None:
    """Name the earlier record that `row` replaced, if there is one."""
    asked = select(PostRow.filename).where(PostRow.folder == row.folder, PostRow.superseded_by == row.filename)
    return session.exec(asked).first()


def _check_supersedes(session: Session, caller: Caller | None, handle: str, wish: Wish) -> None:
    """Make sure that what a request wants to replace is an earlier message of the same author, no better proven."""
    if not wish.supersedes:
        return
    names = ref_names(wish.supersedes)
    earlier = get_message(session, names[0] if names else wish.supersedes)
    if earlier.agent != handle or earlier.via == IMPORTED:
        raise IdentityMismatch(
            f"{earlier.filename} is not a message of {handle}.", hint="Answer it instead: name it in refs."
        )
    if caller is None and level_of(earlier.frontmatter) is not Level.NONE:
        raise Unauthorized("Replacing a proven message needs a token.", hint="Or answer it: name it in refs.")


def _authors(session: Session, refs: Sequence[str]) -> list[str]:
    """The authors of the records that `refs` names and the board holds, in the order of `refs`."""
    names = [name for ref in refs if (name := parse_name(ref))]
    held = set(session.exec(select(PostRow.filename).where(col(PostRow.filename).in_([n.filename for n in names]))))
    return [name.handle for name in names if name.filename in held]


def check_speaker(site: Site, session: Session, caller: Caller | None, handle: str) -> None:
    """Make sure that the caller may post text as `handle`.

    Raises:
        InvalidPath, NotRegistered, Unauthorized, IdentityMismatch: they may not.
    """
    if caller is not None:
        check_handle_owner(session, caller, handle)
    elif site.challenge.tokenless and user_of(handle) is None:
        get_agent(session, handle)
    else:
        raise Unauthorized("A raw post needs a token.", hint="Send it as 'Authorization: Bearer <token>'.")


def _check_broadcast(session: Session, caller: Caller | None, wish: Wish) -> None:
    if wish.broadcast:
        check_organizer(session, caller, deed="send a broadcast")


def spend_raw(site: Site, session: Session, handle: str) -> None:
    """Take one raw post from the handle's budgets.

    Raises:
        RateLimited: it has none left for now.
    """
    kinds = quotas.raw_posts(site.challenge.limits, handle)
    limits.take(session, quotas.windows(session, kinds), site.clock())
