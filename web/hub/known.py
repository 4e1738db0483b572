"""Spare clients the sending of what they could read anyway."""

from datetime import datetime

from sqlmodel import Session

from storage.database import reading, writing
from storage.local import claims, offers, xorbs
from storage.local.claims import Claimed
from storage.local.effort import Effort
from storage.local.offers import Found
from storage.local.reach import Reach
from storage.site import Site
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.reconstruction import ChunkRange
from web.hub.access import local
from web.hub.granting import kept_bucket, reach_of
from web.hub.signing import Grant


def group_of(site: Site, grant: Grant, chunk: Digest) -> bytes | None:
    """Tell what is stored of the file that a chunk was seen in; None where the grant's holder could read none.

    What is told may be built on as long as the answer lives, whatever becomes of the file meanwhile.
    """
    now = site.clock()
    with reading(site.engine) as session:
        reach = reach_of(local(site, session), grant)
        found = offers.find(reach, chunk)
        told = None if found is None else offers.answer(reach, found, chunk, now=now)
        is_noted = found is None or offers.is_relied_on(reach, found, now=now)
    if found is None or told is None or is_noted:
        return told
    with writing(site.engine) as session:
        return told if _note(session, site, grant, found, chunk, now=now) else None


def is_known(site: Site, grant: Grant, digest: str) -> bool:
    """Tell whether a xorb needn't be sent; if it is new to the bucket, the bucket may build on it from now on."""
    xorb = from_text(digest)
    with reading(site.engine) as session:
        reach = reach_of(local(site, session), grant)
        if not _is_open(reach, xorb):
            return False
    with writing(site.engine) as session:
        kept_bucket(local(site, session), grant)
        reach = reach_of(local(site, session), grant)
        if not (_is_open(reach, xorb) and xorbs.mention(session, [digest], now=site.clock())):
            return False
        claims.add(session, grant.bucket_id, Claimed.XORB, [digest])
    return True


def _note(session: Session, site: Site, grant: Grant, found: Found, chunk: Digest, *, now: datetime) -> bool:
    """Note the offer if it still holds now that nobody else writes."""
    kept_bucket(local(site, session), grant)
    again = offers.find(reach_of(local(site, session), grant), chunk)
    if again is None or again.content != found.content:
        return False
    offers.note(session, grant.bucket_id, found, now=now)
    return True


def _is_open(reach: Reach, xorb: Digest) -> bool:
    """Tell whether every chunk of a xorb is the writer's to read."""
    name = to_text(xorb)
    if reach.xorbs({name}):
        return True
    table = xorbs.find_tables(reach.session, {xorb}).get(xorb)
    if table is None:
        return False
    try:
        return reach.ranges(name, len(table), spend=Effort().spend) == [ChunkRange(0, len(table))]
    except InvalidXet:  # too many files to look through, also while others wait to write: the xorb is sent
        return False
