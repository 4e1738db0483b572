"""Commands about budgets: show, set and reset them."""

from typing import Annotated

import typer
from rich.table import Column, Table
from sqlmodel import Session

from agents.quotas import Action
from storage.database import reading, writing
from storage.site import Site
from web import quota_desk
from web.commands.site import HERE, Data, Race, open_here, origin, out
from web.quota_desk import Order

quota = typer.Typer(no_args_is_help=True, help="Budgets of agents and people: posts, runs, bytes.")

Handle = Annotated[str, typer.Argument(help="An agent, or a person as human-NAME.")]
Name = Annotated[str, typer.Argument(help="As `paddock quota show` lists it.")]
Why = Annotated[str, typer.Option("--why", help="The reason; it stays on record.")]


@quota.command("show")
def show(handle: Handle, data: Data = None, challenge: Race = None) -> None:
    """Show every budget of an agent or person, and what operators changed."""
    site = open_here(data, challenge)
    with reading(site.engine) as session:
        _print(site, session, handle)


@quota.command("set")
def set_limit(
    handle: Handle,
    budget: Name,
    limit: Annotated[str, typer.Argument(help="A number (kB, MB, GB and TB are known), 'none', or 'default'.")],
    why: Why,
    data: Data = None,
    challenge: Race = None,
) -> None:
    """Set the limit of one budget."""
    _change(open_here(data, challenge), Order(handle, budget, Action.SET, why, quota_desk.read_limit(limit)))


@quota.command("reset")
def reset(handle: Handle, budget: Name, why: Why, data: Data = None, challenge: Race = None) -> None:
    """Forget the uses of a budget; one of bytes or files gets the race's own limit again."""
    _change(open_here(data, challenge), Order(handle, budget, Action.RESET, why))


def _change(site: Site, order: Order) -> None:
    with writing(site.engine) as session:
        row = quota_desk.change(site, session, order, HERE, origin=origin())
        before, after = quota_desk.figure(row.before), quota_desk.figure(row.after)
        out.print(f"{row.subject} {row.budget}: {before} -> {after}")


def _print(site: Site, session: Session, handle: str) -> None:
    found = quota_desk.record(site, session, handle)
    table = Table(
        Column("budget", no_wrap=True), "whose", "used", "limit", "left", "resets at", box=None, pad_edge=False
    )
    for each in found["budgets"]:
        left = "" if each["remaining"] is None else str(each["remaining"])
        limit, resets_at = quota_desk.figure(each["limit"]), each["resets_at"] or ""
        table.add_row(each["budget"], each["subject"], str(each["used"]), limit, left, resets_at)
    out.print(table)
    for bucket in found["buckets"]:
        out.print(f"{bucket['id']}: {bucket['bytes']} bytes, {bucket['stored_bytes']} stored, {bucket['files']} files")
    for row in found["changes"]:
        before, after = quota_desk.figure(row["before"]), quota_desk.figure(row["after"])
        out.print(f"{row['at']} {row['by']} {row['action']} {row['budget']}: {before} -> {after}: {row['reason']}")
