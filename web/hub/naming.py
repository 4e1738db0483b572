"""Decide which bucket names a person may take."""

from sqlmodel import select

from agents.names import check_agent_id
from agents.rows import AgentRow, UserRow
from agents.tokens import Caller
from storage.errors import Forbidden, InvalidPath
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.site import Site


class NameRefused(Forbidden):
    """The name belongs to the race, to somebody else, or has another form."""

    code = "BUCKET_NAME_REFUSED"


class TooManyBuckets(Forbidden):
    """The person has as many buckets as one person may have."""

    code = "TOO_MANY_BUCKETS"


def check_number(site: Site, store: LocalBuckets, caller: Caller) -> None:
    """Let a person make one more bucket; their row stays locked, so that two calls don't take the last one both.

    Raises:
        TooManyBuckets: they have the most that one person may have.
    """
    most = site.challenge.limits.buckets_per_user
    store.session.exec(select(UserRow.name).where(UserRow.name == caller.user).with_for_update()).first()
    if not (store.count_of(caller.user) < most):
        raise TooManyBuckets(f"You have {most} buckets, the most that one person may have.", hint="Delete one first.")


def check_new_name(site: Site, store: LocalBuckets, name: BucketName, caller: Caller) -> None:
    """Let a person make `{slug}-{agent_id}` in the race's namespace, and anything in their own.

    A name that somebody's private bucket has is refused like that of a registered agent: neither tells which.

    Raises:
        NameRefused: with the reason.
    """
    org, slug = site.challenge.org, site.challenge.slug
    if name.namespace == org:
        _check_agent_bucket(store, name, slug, caller)
    elif name.namespace != caller.user or name.namespace == site.audit.namespace:
        raise NameRefused(
            f"You can't make buckets in {name.namespace}.",
            hint=f"Use {org}/{slug}-<agent_id>, or your own namespace {caller.user}.",
        )


def _check_agent_bucket(store: LocalBuckets, name: BucketName, slug: str, caller: Caller) -> None:
    form = f"Buckets here are named {slug}-<agent_id>."
    agent_id = name.name.removeprefix(f"{slug}-")
    if agent_id == name.name:
        raise NameRefused(form)
    try:
        check_agent_id(agent_id)
    except InvalidPath as error:
        raise NameRefused(f"{form} {error.message}", hint=error.hint) from error
    registered, there = store.session.get(AgentRow, agent_id), store.find(name)
    is_anothers = registered is not None and registered.hf_user != caller.user
    if is_anothers or (there is not None and there.owner != caller.user):
        raise NameRefused(f"The agent id {agent_id} belongs to another user.", hint="Choose another agent id.")
