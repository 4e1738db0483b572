"""Whose agent, whose bucket: the two questions every write asks."""

from sqlmodel import Session

from agents.names import check_agent_id, check_form, user_of
from agents.rows import AgentRow
from agents.tokens import Caller
from storage.buckets import Bucket
from storage.errors import Forbidden, NotFound, PreconditionFailed, Unauthorized
from storage.paths import BucketName
from storage.site import Site


class NotRegistered(NotFound):
    """No agent of that id is registered."""

    code = "NOT_REGISTERED"


class BucketMissing(PreconditionFailed):
    """The agent's scratch bucket has not been made yet."""

    code = "BUCKET_MISSING"


class BucketNotOwned(Forbidden):
    """The bucket belongs to somebody else, or the caller did not prove that it is theirs."""

    code = "BUCKET_NOT_OWNED_BY_CALLER"


class IdentityMismatch(Forbidden):
    """The caller isn't the user to whom this agent or handle is bound."""

    code = "IDENTITY_MISMATCH"


def get_agent(session: Session, agent_id: str) -> AgentRow:
    """Return a registered agent.

    Raises:
        InvalidPath: that has not the form of an agent id.
        NotRegistered: nobody registered it.
    """
    row = session.get(AgentRow, check_form(agent_id))
    if row is None:
        raise NotRegistered(
            f"The agent {agent_id} is not registered.", hint="Register it first: POST /v1/agents/register."
        )
    return row


def bucket_missing(name: BucketName) -> BucketMissing:
    """Build the refusal that tells how to make the bucket."""
    return BucketMissing(f"The bucket {name} does not exist.", hint=f"hf buckets create {name}")


def agent_of_bucket(site: Site, name: BucketName) -> str:
    """The agent whose scratch bucket has this name.

    Raises:
        InvalidPath: the part after the slug is no agent id.
        BucketNotOwned: it is no scratch bucket of this race.
    """
    prefix = f"{site.challenge.slug}-"
    if name.namespace != site.challenge.org or not name.name.startswith(prefix) or name in (site.central, site.audit):
        raise BucketNotOwned(
            f"The bucket {name} is no agent's scratch bucket.",
            hint=f"A source lies in your own bucket: hf://buckets/{site.scratch('AGENT')}/…",
        )
    return check_agent_id(name.name.removeprefix(prefix))


def owned_bucket(site: Site, session: Session, caller: Caller | None, agent_id: str) -> Bucket:
    """Return the scratch bucket of a registered agent that belongs to the caller.

    In a tokenless race a caller without a token passes for any public bucket: there its name is the claim.

    Raises:
        Unauthorized: no token came and the race wants one.
        BucketNotOwned: it is somebody else's.
        NotRegistered, BucketMissing: the caller's own, not ready.
    """
    bucket = site.buckets(session).find(site.scratch(agent_id))
    if bucket is not None:
        _check_owner(site, caller, bucket.owner, private=bucket.private, bucket=bucket.name)
    agent = get_agent(session, agent_id)
    if bucket is None:
        _check_owner(site, caller, agent.hf_user, private=False, bucket=site.scratch(agent_id))
        raise bucket_missing(site.scratch(agent_id))
    return bucket


def _check_owner(site: Site, caller: Caller | None, owner: str, *, private: bool, bucket: BucketName) -> None:
    if caller is None and not site.challenge.tokenless:
        raise Unauthorized("This call needs a token.", hint="Send it as 'Authorization: Bearer <token>'.")
    is_allowed = not private if caller is None else owner == caller.user
    if not is_allowed:
        raise BucketNotOwned(f"The bucket {bucket} is not yours.", hint="Name a source in a bucket that you made.")


def check_handle_owner(session: Session, caller: Caller, handle: str) -> None:
    """Make sure that the caller may speak as `handle`.

    Raises:
        InvalidPath: that is no handle.
        NotRegistered: no such agent.
        IdentityMismatch: it is bound to another user.
    """
    owner = user_of(handle) or get_agent(session, handle).hf_user
    if owner != caller.user:
        raise IdentityMismatch(f"{handle} is bound to another user.", hint=f"You are {caller.handle}.")
