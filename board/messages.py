"""Messages: what is said on the board."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from sqlmodel import Session, col, select

from agents import limits
from agents.directory import agent_ids
from agents.names import user_of
from agents.ownership import check_handle_owner, get_agent
from agents.tokens import Caller
from board.listing import Folder, Record, in_folder
from board.mentions import Recipients, recipients
from board.promotion import Published, load_source, publish, type_of
from board.records import MESSAGES, parse_name, ref_names
from board.rows import PostRow
from storage.errors import Forbidden, NotFound, Unauthorized
from storage.frontmatter import Value
from storage.paths import check_path
from storage.site import Site


class NotOrganizer(Forbidden):
    """Only an organizer may do this."""

    code = "NOT_ORGANIZER"


class MessageNotFound(NotFound):
    """There is no such record on the board."""

    code = "NOT_FOUND"


@dataclass(frozen=True)
class Wish:
    """What a request asks beside the text: it wins over a source's own frontmatter."""

    type: str | None = None
    refs: str | Sequence[str] | None = None
    broadcast: bool = False


@dataclass(frozen=True)
class Posted:
    """A message that is now on the board, and whom it reached."""

    published: Published
    via: str
    recipients: Recipients
    broadcast: bool

    def as_json(self) -> Record:
        """Shape the answer of `POST /v1/messages`."""
        return {
            "filename": self.published.filename,
            "via": self.via,
            "path": self.published.path,
            "mentions_delivered": list(self.recipients.delivered),
            "mentions_dropped": list(self.recipients.dropped),
            "broadcast": self.broadcast,
        }


def post_source(site: Site, session: Session, caller: Caller | None, source: str, wish: Wish) -> Posted:
    """Promote a message from the caller's scratch bucket.

    Raises:
        As `board.promotion.load_source` and `publish`.
        NotOrganizer: the frontmatter or the wish asks for a broadcast that the caller may not send.
    """
    loaded = load_source(site, session, caller, source)
    if "broadcast" in loaded.document.frontmatter:
        raise NotOrganizer(
            "A source can't make itself a broadcast.", hint='Take the key out; organizers send "broadcast": true.'
        )
    _check_broadcast(caller, wish)
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
    _check_speaker(site, session, caller, handle)
    _check_broadcast(caller, wish)
    _spend_raw(site, session, handle)
    head = _with_wish({}, wish, default_type="user" if user else "agent")
    if user:
        head["type"] = "user"
    return _post(site, session, caller, _Said(handle, "dashboard" if user else "raw", head, body, wish.broadcast))


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
    """Shape a full record."""
    return {"filename": row.filename, "frontmatter": row.frontmatter, "body": row.body}


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
    return Posted(published, said.via, reached, said.broadcast)


def _with_wish(frontmatter: Mapping[str, Value], wish: Wish, *, default_type: str) -> dict[str, Value]:
    head = dict(frontmatter)
    head["type"] = type_of(wish.type or head.get("type"), default=default_type)
    if wish.refs:
        head["refs"] = wish.refs if isinstance(wish.refs, str) else list(wish.refs)
    return head


def _authors(session: Session, refs: Sequence[str]) -> list[str]:
    """The authors of the records that `refs` names and the board holds, in the order of `refs`."""
    names = [name for ref in refs if (name := parse_name(ref))]
    held = set(session.exec(select(PostRow.filename).where(col(PostRow.filename).in_([n.filename for n in names]))))
    return [name.handle for name in names if name.filename in held]


def _check_speaker(site: Site, session: Session, caller: Caller | None, handle: str) -> None:
    if caller is not None:
        check_handle_owner(session, caller, handle)
    elif site.challenge.tokenless and user_of(handle) is None:
        get_agent(session, handle)
    else:
        raise Unauthorized("A raw post needs a token.", hint="Send it as 'Authorization: Bearer <token>'.")


def _check_broadcast(caller: Caller | None, wish: Wish) -> None:
    if wish.broadcast and not (caller and caller.is_organizer):
        raise NotOrganizer("Only an organizer can send a broadcast.", hint="Post it without broadcast.")


def _spend_raw(site: Site, session: Session, handle: str) -> None:
    allowed, now = site.challenge.limits, site.clock()
    limits.spend(session, f"raw posts:{handle}:min", allowed.raw_posts_per_min, timedelta(minutes=1), now)
    limits.spend(session, f"raw posts:{handle}:h", allowed.raw_posts_per_hour, timedelta(hours=1), now)
