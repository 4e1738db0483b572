import pytest
from sqlmodel import Session

from agents import accounts
from agents.roles import Role
from agents.tokens import authenticate, issue, revoke
from storage.errors import InvalidPath, Unauthorized
from storage.site import Site


def test_adding_a_person_again_keeps_an_organizer(site: Site, session: Session, clock) -> None:
    accounts.add(session, "ada", role=Role.ORGANIZER, now=clock())
    assert accounts.add(session, "ada", now=clock()).role == Role.ORGANIZER


@pytest.mark.parametrize("name", ["system", "Ada", "", "a b", "x" * 35, "verifier"])
def test_names_that_are_no_handles_are_refused(session: Session, clock, name: str) -> None:
    with pytest.raises(accounts.BadUserName) as refusal:
        accounts.add(session, name, now=clock())
    assert refusal.value.code == InvalidPath.code


def test_a_token_works_until_it_is_revoked(site: Site, session: Session, clock) -> None:
    accounts.add(session, "ada", now=clock())
    token = issue(session, "ada", secret=site.secret, now=clock())
    assert authenticate(session, token, secret=site.secret, now=clock()).handle == "human-ada"
    revoke(session, token, secret=site.secret, now=clock())
    with pytest.raises(Unauthorized):
        authenticate(session, token, secret=site.secret, now=clock())
