"""Read state moves by its owner's explicit word alone; paging is exact while posts arrive."""

import pytest
from sqlmodel import Session

from board import listing, read_marks
from board.inbox import inbox_of
from board.listing import ListQuery
from board.records import index_file
from storage.database import reading, writing
from tests.web.api.conftest import Api

People = tuple[dict[str, str], dict[str, str]]


@pytest.fixture
def people(api: Api) -> People:
    ann, bob = api.person("ann"), api.person("bob")
    api.agent("ant", ann)
    api.agent("bee", bob)
    return ann, bob


def say(api: Api, who: dict[str, str], body: str) -> str:
    answer = api.client.post("/v1/messages", headers=who, json={"agent_id": "ant", "body": body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["filename"])


def test_only_its_owner_moves_a_cursor_and_no_reading_does(api: Api, people: People) -> None:
    ann, bob = people
    names = [say(api, ann, f"@bee {number}") for number in range(4)]
    inbox = api.client.get("/v1/inbox/bee", headers=bob).json()
    assert (inbox["unread"], inbox["read_to"], inbox["count"]) == (4, None, 4)
    for _ in range(2):
        assert api.client.get("/v1/inbox/bee?expand&unread=true", headers=bob).json()["matched"] == 4
    moved = api.client.put("/v1/inbox/bee/cursor", headers=bob, json={"read_to": names[2]})
    assert moved.json() == {"handle": "bee", "read_to": names[2], "unread": 1}
    inbox = api.client.get("/v1/inbox/bee?unread=true").json()
    assert (inbox["items"], inbox["matched"], inbox["count"], inbox["unread"]) == ([names[3]], 1, 4, 1)
    assert api.client.get("/v1/inbox/bee").json()["matched"] == 4
    refusals = [
        (api.client.put("/v1/inbox/bee/cursor", headers=ann, json={"read_to": names[3]}), 403),
        (api.client.put("/v1/inbox/bee/cursor", json={"read_to": names[3]}), 401),
        (api.client.put("/v1/inbox/bee/cursor", headers=bob, json={"read_to": "9"}), 404),
        (api.client.put("/v1/inbox/bee/cursor", headers=bob, json={}), 422),
        (api.client.get("/v1/inbox/bee?unread=maybe"), 400),
    ]
    assert [answer.status_code for answer, _ in refusals] == [status for _, status in refusals]
    assert api.client.get("/v1/inbox/bee").json()["unread"] == 1
    api.client.put("/v1/inbox/bee/cursor", headers=bob, json={"read_to": None})
    assert api.client.get("/v1/inbox/bee").json()["unread"] == 4


def test_a_person_has_a_cursor_too(api: Api, people: People) -> None:
    ann, bob = people
    name = say(api, ann, "@human-bob look")
    assert api.client.get("/v1/inbox/human-bob").json()["unread"] == 1
    moved = api.client.put("/v1/inbox/human-bob/cursor", headers=bob, json={"read_to": name})
    assert moved.json()["unread"] == 0
    with reading(api.site.engine) as session:
        assert read_marks.read_to(session, "human-bob") == name


def arrive(session: Session, number: int, stamp: str) -> str:
    """Put one message of its own author on the board; many may share a stamp, as imported ones do."""
    name = f"{stamp}_w{number:02d}.md"
    index_file(session, f"message_board/{name}", f"For @bee, {number}.".encode())
    index_file(session, f"inbox/bee/{name}", f"For @bee, {number}.".encode())
    session.flush()
    return name


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("which", ["messages", "inbox"])
def test_paging_while_posts_arrive_is_exact(api: Api, people: People, which: str, *, descending: bool) -> None:
    with writing(api.site.engine) as session:
        first = [arrive(session, number, "20261128-120000") for number in range(25)]  # 25 with one stamp
        folder = inbox_of(session, "bee") if which == "inbox" else listing.in_folder("message_board")
        seen: list[str] = []
        later: list[str] = []
        cursor = None
        while True:
            side = {"before": cursor} if descending else {"after": cursor}
            query = ListQuery(limit=4, descending=descending, **side)  # type: ignore[arg-type]
            found = listing.page(session, folder, query, expand_limit=100)
            seen += [row.filename for row in found.rows]
            if found.next is None:
                break
            cursor = found.next
            if len(later) < 3:
                later.append(arrive(session, 50 + len(later), f"20261129-12000{len(later)}-000"))
        expected = first if descending else [*first, *later]
        assert sorted(seen) == expected
        assert len(seen) == len(set(seen))
        newer = listing.page(session, folder, ListQuery(limit=0, descending=False, after=first[-1]), expand_limit=9)
        assert [row.filename for row in newer.rows] == later  # forward from the newest one that was there at first
