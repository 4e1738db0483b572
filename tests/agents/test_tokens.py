"""Tokens: known by their form, kept as a hash, ended at once, never handed on stronger than they are."""

from datetime import timedelta

import pytest
from sqlalchemy import event
from sqlmodel import Session, select

from agents import accounts, minting, sessions, tokens
from agents.minting import Wish
from agents.roles import Role
from agents.rows import TokenRow
from agents.scopes import DEFAULT, Scope, ScopeMissing
from agents.tokens import Caller
from storage.errors import Unauthorized
from storage.site import Site
from tests.conftest import HeldClock


@pytest.fixture
def made(site: Site, session: Session, clock: HeldClock) -> tokens.Issued:
    accounts.add(session, "ada", now=clock())
    return tokens.create(session, "ada", secret=site.secret, now=clock(), label="laptop")


def caller_of(site: Site, session: Session, text: str) -> Caller:
    return tokens.authenticate(session, text, secret=site.secret, now=site.clock())


def test_a_token_with_a_wrong_checksum_is_never_looked_up(site: Site, session: Session, made: tokens.Issued) -> None:
    statements: list[str] = []
    session.flush()
    event.listen(site.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    last = "0" if made.text[-1] != "0" else "1"
    for wrong in (made.text[:-1] + last, made.text[:-1], made.text + "a", made.text.upper(), "", "pdk_", "\0", "pdk_é"):
        with pytest.raises(Unauthorized):
            caller_of(site, session, wrong)
    assert statements == []
    assert caller_of(site, session, made.text).user == "ada"


def test_only_a_keyed_hash_is_kept(site: Site, session: Session, made: tokens.Issued) -> None:
    kept = "\n".join(row.model_dump_json() for row in session.exec(select(TokenRow)))
    assert made.text not in kept
    assert made.text.removeprefix(tokens.PREFIX) not in kept
    assert made.row.digest != tokens.keyed_hash(b"another site's key", tokens.Kind.TOKEN, made.text)


def test_a_rotated_token_is_refused_at_once_and_the_new_one_is_like_it(
    site: Site, session: Session, clock: HeldClock
) -> None:
    accounts.add(session, "ada", now=clock())
    ends = clock() + timedelta(days=3)
    scopes = frozenset({Scope.READ, Scope.RUN})
    old = tokens.create(session, "ada", secret=site.secret, now=clock(), label="laptop", scopes=scopes, expires_at=ends)
    new = minting.rotate(session, caller_of(site, session, old.text), old.row.id, secret=site.secret, now=clock())
    with pytest.raises(Unauthorized):
        caller_of(site, session, old.text)
    assert caller_of(site, session, new.text).scopes == scopes
    assert (new.row.label, new.row.expires_at) == ("laptop", ends)
    with pytest.raises(tokens.TokenNotFound):
        tokens.rotate(session, old.row, secret=site.secret, now=clock())


def test_a_token_expires_at_its_moment(site: Site, session: Session, clock: HeldClock) -> None:
    accounts.add(session, "ada", now=clock())
    ends = clock() + timedelta(hours=1)
    text = tokens.create(session, "ada", secret=site.secret, now=clock(), expires_at=ends).text
    clock.now = ends - timedelta(milliseconds=1)
    assert caller_of(site, session, text).user == "ada"
    clock.now = ends
    with pytest.raises(Unauthorized):
        caller_of(site, session, text)
    with pytest.raises(tokens.BadExpiry):
        tokens.create(session, "ada", secret=site.secret, now=clock(), expires_at=clock())


def test_what_a_token_makes_is_no_stronger_and_lives_no_longer(site: Site, session: Session, clock: HeldClock) -> None:
    accounts.add(session, "chief", role=Role.OPERATOR, now=clock())
    ends = clock() + timedelta(days=1)
    weak = frozenset({Scope.READ, Scope.POST})
    text = tokens.create(session, "chief", secret=site.secret, now=clock(), scopes=weak, expires_at=ends).text
    strong = tokens.create(session, "chief", secret=site.secret, now=clock(), scopes=frozenset(Scope))
    caller = caller_of(site, session, text)
    for wish in (Wish(), Wish(expires_at=ends + timedelta(days=9))):
        row = minting.mint(session, caller, wish, secret=site.secret, now=clock()).row
        assert (frozenset(row.scopes), row.expires_at) == (weak, ends)
    for scope in (Scope.OPERATE, Scope.BUCKET):
        with pytest.raises(ScopeMissing):
            minting.mint(session, caller, Wish(scopes=frozenset({scope})), secret=site.secret, now=clock())
    with pytest.raises(ScopeMissing):
        minting.rotate(session, caller, strong.row.id, secret=site.secret, now=clock())


def test_an_operator_acts_as_one_only_with_a_token_for_it(site: Site, session: Session, clock: HeldClock) -> None:
    accounts.add(session, "chief", role=Role.OPERATOR, now=clock())
    usual = caller_of(site, session, tokens.issue(session, "chief", secret=site.secret, now=clock()))
    assert (usual.scopes, usual.is_operator, usual.is_organizer) == (DEFAULT, False, True)
    meant = tokens.issue(session, "chief", secret=site.secret, now=clock(), scopes=frozenset(Scope))
    assert caller_of(site, session, meant).is_operator
    accounts.set_role(session, "chief", Role.PERSON)
    assert not caller_of(site, session, meant).is_operator


def test_roles_are_in_order() -> None:
    ordered = [Role.VISITOR, Role.PERSON, Role.ORGANIZER, Role.OPERATOR]
    for place, role in enumerate(ordered):
        assert [role.at_least(other) for other in ordered] == [other <= place for other in range(4)]


def test_nobody_has_tokens_without_end(site: Site, session: Session, clock: HeldClock, made: tokens.Issued) -> None:
    caller = caller_of(site, session, made.text)
    for _ in range(minting.MOST - 1):
        minting.mint(session, caller, Wish(), secret=site.secret, now=clock())
    with pytest.raises(minting.TooManyTokens):
        minting.mint(session, caller, Wish(), secret=site.secret, now=clock())


def test_no_scopes_are_none_and_never_the_usual_ones(site: Site, session: Session, clock: HeldClock) -> None:
    accounts.add(session, "opal", role=Role.OPERATOR, now=clock())
    only = tokens.create(session, "opal", secret=site.secret, now=clock(), scopes=frozenset({Scope.OPERATE}))
    made = minting.mint(
        session, caller_of(site, session, only.text), Wish(), secret=site.secret, now=clock()
    )  # the usual scopes, of those that the maker has: none
    assert caller_of(site, session, made.text).scopes == frozenset()
    again = minting.rotate(session, caller_of(site, session, only.text), made.row.id, secret=site.secret, now=clock())
    assert caller_of(site, session, again.text).scopes == frozenset()
    place = sessions.Place()
    started = sessions.start(session, "opal", secret=site.secret, now=clock(), place=place, scopes=frozenset())
    assert sessions.caller_of(session, started.row).scopes == frozenset()
