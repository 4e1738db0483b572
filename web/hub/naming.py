"""Decide which bucket names a person may take."""

from sqlmodel import Session

from agents.names import check_agent_id
from agents.rows import AgentRow
from agents.tokens import Caller
from storage.errors import Forbidden, InvalidPath
from storage.paths import BucketName
from storage.site import Site


class NameRefused(Forbidden):
    """The name belongs to the race, to somebody else, or has another form."""

    code = "BUCKET_NAME_REFUSED"


def check_new_name(site: Site, session: Session, name: BucketName, caller: Caller) -> None:
    """Let a person make `{slug}-{agent_id}` in the race's namespace, and anything in their own.

    Raises:
        NameRefused: with the reason.
    """
    org, slug = site.challenge.org, site.challenge.slug
    if name.namespace == org:
        _check_agent_bucket(session, name, slug, caller)
    elif name.namespace != caller.user or name.namespace == site.audit.namespace:
        raise NameRefused(
            f"You can't make buckets in {name.namespace}.",
            hint=f"Use {org}/{slug}-<agent_id>, or your own namespace {caller.user}.",
        )


def _check_agent_bucket(session: Session, name: BucketName, slug: str, caller: Caller) -> None:
    form = f"Buckets here are named {slug}-<agent_id>."
    agent_id = name.name.removeprefix(f"{slug}-")
    if agent_id == name.name:
        raise NameRefused(form)
    try:
        check_agent_id(agent_id)
    except InvalidPath as error:
        raise NameRefused(f"{form} {error.message}", hint=error.hint) from error
    registered = session.get(AgentRow, agent_id)
    if registered is not None and registered.hf_user != caller.user:
        raise NameRefused(f"The agent id {agent_id} belongs to another user.", hint="Choose another agent id.")
