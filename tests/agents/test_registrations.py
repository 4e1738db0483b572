import pytest
from sqlmodel import Session, select

from agents.limits import RateLimited
from agents.ownership import BucketMissing, BucketNotOwned, IdentityMismatch
from agents.registrations import AgentIdTaken, Application, index_agent, register
from agents.rows import AgentRow
from agents.sources import MAX_BYTES, RecordTooLarge, SourceNotFound
from storage.database import writing
from storage.errors import InvalidFrontmatter, InvalidPath, Unauthorized
from storage.frontmatter import parse_bytes
from storage.site import Site
from tests.people import add_bucket, add_files, add_person

HERON = Application("blue-heron", "m-1", "h-1", ("bash", "python"))


def _files(site: Site, session: Session) -> list[tuple[str, str]]:
    return [(file.path, file.digest) for file in site.buckets(session).list(site.central)]


def test_a_registration_is_a_file_in_the_central_bucket(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    add_files(site, session, "blue-heron", {"bio.md": "---\nhf_user: eve\n---\nI like *speed*."})
    bio = f"{site.scratch('blue-heron').uri}/bio.md"
    done = register(site, session, token, Application("Blue-Heron", "m-1", "h-1", ("bash", "python"), bio))
    assert (done.filename, done.row.agent_bucket, done.row.hf_user) == ("blue-heron.md", "race/tiny-blue-heron", "ada")
    document = parse_bytes(site.buckets(session).read(site.central, "agents/blue-heron.md"))
    assert document.body == "I like *speed*."
    assert document.frontmatter == {
        "agent_name": "blue-heron",
        "agent_model": "m-1",
        "agent_harness": "h-1",
        "agent_tools": ["bash", "python"],
        "hf_user": "ada",
        "agent_bucket": "race/tiny-blue-heron",
        "joined": "2026-11-29 12:00 UTC",
    }


def test_the_row_is_rebuilt_from_the_file_alone(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    live = register(site, session, token, HERON).row.model_dump()
    session.delete(session.get_one(AgentRow, "blue-heron"))
    session.flush()
    data = site.buckets(session).read(site.central, "agents/blue-heron.md")
    rebuilt = index_agent(session, "agents/blue-heron.md", data)
    assert rebuilt is not None
    assert rebuilt.model_dump() == live


@pytest.mark.parametrize(
    ("owner", "handshake"),
    [("ada", "eve"), ("eve", "ada"), ("eve", "eve"), ("ada", ""), ("ada", "x" * 1000)],
    ids=["says another", "made by another", "both another", "says nothing", "says too much"],
)
def test_the_handshake_of_someone_else_registers_nothing(
    site: Site, session: Session, owner: str, handshake: str
) -> None:
    token = add_person(site, session, "ada")
    add_person(site, session, "eve")
    add_bucket(site, session, "blue-heron", owner=owner, handshake=handshake)
    before = _files(site, session)
    with pytest.raises(BucketNotOwned) as refusal:
        register(site, session, token, HERON)
    assert refusal.value.code == "BUCKET_NOT_OWNED_BY_CALLER"
    advice = ".bucket-sync-handshake" if owner == "ada" else "another agent id"  # no file helps in a stranger's bucket
    assert advice in (refusal.value.hint or "")
    assert _files(site, session) == before
    assert session.exec(select(AgentRow)).all() == []


def test_checks_come_in_the_order_of_the_contract(site: Site) -> None:
    def refused(token: str | None, application: Application, expected: type[Exception]) -> None:
        with pytest.raises(expected), writing(site.engine) as opened:
            register(site, opened, token, application)

    refused(None, Application("no_id", "m", "h"), InvalidPath)
    refused("pdk_wrong", HERON, BucketMissing)
    with writing(site.engine) as session:
        ada, eve = add_person(site, session, "ada"), add_person(site, session, "eve")
        add_bucket(site, session, "blue-heron", owner="ada", handshake="nobody")
    refused("pdk_wrong", HERON, Unauthorized)
    refused(None, HERON, Unauthorized)
    refused(ada, HERON, BucketNotOwned)
    with writing(site.engine) as session:
        add_files(site, session, "blue-heron", {".bucket-sync-handshake": "ada"})
        register(site, session, ada, HERON)
    refused(ada, HERON, AgentIdTaken)
    refused(eve, HERON, BucketNotOwned)


def test_an_id_stays_bound_to_its_user_even_when_the_bucket_is_anothers(site: Site, session: Session) -> None:
    eve = add_person(site, session, "eve")
    add_bucket(site, session, "blue-heron", owner="eve")
    session.add(
        AgentRow(agent_id="blue-heron", hf_user="ada", model="", harness="", tools=[], agent_bucket="", joined="",
                 content_digest="")
    )  # fmt: skip
    with pytest.raises(IdentityMismatch):
        register(site, session, eve, Application("blue-heron", "m", "h", force=True))


def test_force_updates_and_keeps_the_day_of_joining_and_the_bio(site: Site, session: Session, clock) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    add_files(site, session, "blue-heron", {"bio.md": "Fast."})
    bio = f"{site.scratch('blue-heron').uri}/bio.md"
    register(site, session, token, Application("blue-heron", "m-1", "h-1", bio_source=bio))
    clock.forward(days=2)
    row = register(site, session, token, Application("blue-heron", "m-2", "h-1", force=True)).row
    assert (row.model, row.joined, row.bio) == ("m-2", "2026-11-29 12:00 UTC", "Fast.")


def test_a_fourth_registration_in_a_minute_waits(site: Site, session: Session, clock) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    for _ in range(3):
        register(site, session, token, Application("blue-heron", "m", "h", force=True))
    with pytest.raises(RateLimited) as refusal:
        register(site, session, token, Application("blue-heron", "m", "h", force=True))
    assert refusal.value.retry_after_s == 60


def test_a_bio_lies_in_the_agents_own_bucket(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    add_bucket(site, session, "red-kettle", owner="ada")
    add_files(site, session, "red-kettle", {"bio.md": "x"})
    for source, expected in (
        (f"{site.scratch('red-kettle').uri}/bio.md", BucketNotOwned),
        (f"{site.scratch('blue-heron').uri}/bio.md", SourceNotFound),
        (f"{site.scratch('blue-heron').uri}/../bio.md", InvalidPath),
    ):
        with pytest.raises(expected):
            register(site, session, token, Application("blue-heron", "m", "h", bio_source=source))
    assert session.get(AgentRow, "blue-heron") is None


def test_what_cannot_be_stored_is_refused(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    with pytest.raises(InvalidFrontmatter):
        register(site, session, token, Application("blue-heron", "m\0", "h"))


def test_a_registration_is_no_larger_than_a_record(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_bucket(site, session, "blue-heron", owner="ada")
    add_files(site, session, "blue-heron", {"bio.md": "x" * MAX_BYTES})
    bio = f"{site.scratch('blue-heron').uri}/bio.md"
    with pytest.raises(RecordTooLarge):
        register(site, session, token, Application("blue-heron", "m", "h", bio_source=bio))
    assert _files(site, session) == []
