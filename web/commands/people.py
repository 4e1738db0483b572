"""Commands about people: their accounts, their tokens, their signed-in browsers."""

from datetime import timedelta
from typing import Annotated

import typer

from agents import accounts, links, sessions, tokens
from agents.roles import Role
from agents.scopes import ALL, DEFAULT, Scope
from storage.clock import to_iso_ms
from storage.database import reading, writing
from storage.site import Site
from web.commands.site import Data, Race, note, open_here, out

user = typer.Typer(no_args_is_help=True, help="People's accounts.")
token = typer.Typer(no_args_is_help=True, help="Bearer tokens.")
browser_session = typer.Typer(no_args_is_help=True, help="Signed-in browsers.")


@user.command("add")
def add_user(
    name: str,
    data: Data = None,
    challenge: Race = None,
    organizer: Annotated[
        bool, typer.Option("--organizer", help="May broadcast, hide posts and cancel anybody's benchmark.")
    ] = False,
    operator: Annotated[bool, typer.Option("--operator", help="May run the place; includes --organizer.")] = False,
) -> None:
    """Make an account and print its token, which can't be shown again. For an existing account: one more token."""
    site = open_here(data, challenge)
    role = Role.OPERATOR if operator else Role.ORGANIZER if organizer else Role.PERSON
    with writing(site.engine) as session:
        accounts.add(session, name, role=role, now=site.clock())
        scopes = ALL if operator else DEFAULT
        fresh = tokens.issue(session, name, secret=site.secret, now=site.clock(), scopes=scopes)
        note(site, session, "users.add", name)
    _print(fresh)


@user.command("role")
def set_role(name: str, role: Role, data: Data = None, challenge: Race = None) -> None:
    """Give a person another role; as a visitor they can do nothing that needs an account."""
    site = open_here(data, challenge)
    with writing(site.engine) as session:
        accounts.set_role(session, name, role)
        note(site, session, "users.role", f"{name} {role}")
    out.print(f"{name} is now {role}.")


@user.command("list")
def list_users(data: Data = None, challenge: Race = None) -> None:
    """List every account and its role."""
    with reading(open_here(data, challenge).engine) as session:
        for row in accounts.everybody(session):
            out.print(f"{row.name}  {row.role}  since {to_iso_ms(row.created_at)}")


@user.command("link")
def make_link(name: str, data: Data = None, challenge: Race = None) -> None:
    """Print a link that signs a person in, once, within 15 minutes."""
    site = open_here(data, challenge)
    with writing(site.engine) as session:
        path = links.make(session, name, secret=site.secret, now=site.clock())
        note(site, session, "links.make", name)
    _print(f"{_address(site)}{path}")


@token.command("add")
def add_token(
    name: str,
    data: Data = None,
    challenge: Race = None,
    label: Annotated[str, typer.Option(help="Who or what will use it.")] = "",
    scope: Annotated[list[Scope] | None, typer.Option(help="What it may do; once for each.")] = None,
    days: Annotated[int | None, typer.Option(min=1, max=36_500, help="When it expires.")] = None,
) -> None:
    """Make a token for somebody and print it."""
    site = open_here(data, challenge)
    now = site.clock()
    ends = now + timedelta(days=days) if days else None
    scopes = frozenset(scope) if scope else DEFAULT
    with writing(site.engine) as session:
        accounts.get_open(session, name)
        made = tokens.create(session, name, secret=site.secret, now=now, label=label, scopes=scopes, expires_at=ends)
        note(site, session, "tokens.make", made.row.id)
    _print(made.text)


@token.command("list")
def list_tokens(name: str, data: Data = None, challenge: Race = None) -> None:
    """List a person's valid tokens: id, scopes, last use, label."""
    site = open_here(data, challenge)
    with reading(site.engine) as session:
        for row in tokens.tokens_of(session, name, now=site.clock()):
            used = to_iso_ms(row.last_used_at) if row.last_used_at else "never"
            out.print(f"{row.id}  {','.join(sorted(row.scopes))}  last used {used} {row.last_origin}  {row.label}")


@token.command("rotate")
def rotate_token(token: str, data: Data = None, challenge: Race = None) -> None:
    """Print a new token in the place of one, named by itself or by its id; the old one is refused at once."""
    site = open_here(data, challenge)
    with writing(site.engine) as session:
        row = tokens.get_row(session, token, secret=site.secret)
        made = tokens.rotate(session, row, secret=site.secret, now=site.clock())
        note(site, session, "tokens.rotate", row.id)
    _print(made.text)


@token.command("revoke")
def revoke_token(token: str, data: Data = None, challenge: Race = None) -> None:
    """Revoke a token, named by itself or by its id, at once."""
    site = open_here(data, challenge)
    with writing(site.engine) as session:
        row = tokens.revoke(session, token, secret=site.secret, now=site.clock())
        note(site, session, "tokens.revoke", row.id)
        out.print(f"Token {row.id} of {row.user} is revoked.")


@browser_session.command("list")
def list_sessions(name: str, data: Data = None, challenge: Race = None) -> None:
    """List a person's signed-in browsers."""
    site = open_here(data, challenge)
    with reading(site.engine) as session:
        for row in sessions.sessions_of(session, name, now=site.clock()):
            out.print(f"{row.id}  last used {to_iso_ms(row.last_used_at)} from {row.last_origin}  {row.browser}")


@browser_session.command("end")
def end_sessions(name: str, data: Data = None, challenge: Race = None) -> None:
    """Sign a person out everywhere."""
    site = open_here(data, challenge)
    with writing(site.engine) as session:
        ended = sessions.end_all(session, name, now=site.clock())
        note(site, session, "sessions.end_all", name)
    out.print(f"{ended} sessions of {name} have ended.")


def _address(site: Site) -> str:
    settings = site.settings
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.public_url.rstrip("/") or f"http://{host}:{settings.port}"


def _print(text: str) -> None:
    """Print it plain, so that TOKEN=$(paddock user add NAME) works."""
    print(text)  # noqa: T201
