import pytest
from sqlmodel import Session, func, select

from board.destinations import CLOSED
from storage.local.rows import XorbRow
from storage.settings import Settings
from tests.web.api.asking import code


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"max_sync_files": 3, "max_sync_bytes": 1000})


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


def sync(api, headers, url: str = "/v1/artifacts:sync", **sent: object):
    return api.client.post(url, json=sent, headers=headers)


def shared(api, headers, source: str, dest_path: str):
    return sync(api, headers, "/v1/shared-resources:sync", source=source, dest_path=dest_path)


def test_a_folder_becomes_artifacts_without_moving_a_byte_and_again_the_same(api, ada) -> None:
    api.upload("blue-heron", "out/a.txt", b"a" * 10)
    api.upload("blue-heron", "out/deep/b.bin", b"b" * 20)
    api.upload("blue-heron", "out/.git", b"x")
    source = f"{api.site.scratch('blue-heron').uri}/out"
    with Session(api.site.engine) as session:
        xorbs = session.exec(select(func.count()).select_from(XorbRow)).one()
    expected = {
        "dest": "artifacts/kernels_blue-heron/",
        "files": [
            {"src_path": "out/a.txt", "dest_path": "artifacts/kernels_blue-heron/a.txt", "bytes": 10},
            {"src_path": "out/deep/b.bin", "dest_path": "artifacts/kernels_blue-heron/deep/b.bin", "bytes": 20},
        ],
        "bytes_copied": 30,
        "skipped": ["out/.git"],
    }
    for url in (source, f"{source}/"):
        answer = sync(api, ada, source=url, dest_slug="kernels")
        assert (answer.status_code, answer.json()) == (200, expected)
    assert api.read("artifacts/kernels_blue-heron/deep/b.bin") == b"b" * 20
    with Session(api.site.engine) as session:
        assert session.exec(select(func.count()).select_from(XorbRow)).one() == xorbs


def test_one_file_goes_into_the_artifacts_folder_and_to_the_very_shared_path(api, ada) -> None:
    source = api.upload("blue-heron", "out/a.txt", b"a")
    assert sync(api, ada, source=source, dest_slug="k").json()["files"] == [
        {"src_path": "out/a.txt", "dest_path": "artifacts/k_blue-heron/a.txt", "bytes": 1}
    ]
    for dest_path, path in (
        ("notes_blue-heron.txt", "shared_resources/notes_blue-heron.txt"),
        ("shared_resources/n_blue-heron.txt", "shared_resources/n_blue-heron.txt"),
        ("data_blue-heron/", "shared_resources/data_blue-heron/a.txt"),
    ):
        answer = shared(api, ada, source, dest_path)
        assert answer.status_code == 200, answer.text
        assert [file["dest_path"] for file in answer.json()["files"]] == [path]
        assert api.read(path) == b"a"
    folder = shared(api, ada, source.removesuffix("/a.txt"), "set_blue-heron/v1").json()
    assert (folder["dest"], folder["files"][0]["dest_path"]) == (
        *("shared_resources/set_blue-heron/v1", "shared_resources/set_blue-heron/v1/a.txt"),
    )


def test_no_client_may_target_a_closed_place(api, ada) -> None:
    source = api.upload("blue-heron", "a.txt", "x")
    before = api.files()
    must = {
        "README.md",
        "LEADERBOARD.md",
        "audit",
        "inbox",
        "taskforces",
        "verdicts",
        "rulings",
        "moderation",
        "claims",
    }
    assert must <= CLOSED
    for place in CLOSED:
        for dest_path in (
            place,
            f"{place}/x_blue-heron",
            f"shared_resources/{place}/_blue-heron",
            f"../{place}/_blue-heron",
        ):
            assert code(shared(api, ada, source, dest_path)) == (400, "INVALID_PATH"), dest_path
    assert api.files() == before


def test_bad_calls_have_their_code_and_copy_nothing(api, ada) -> None:
    eve = api.person("eve")
    api.agent("red-kettle", eve)
    source = api.upload("blue-heron", "a.txt", "x")
    for number in range(4):
        api.upload("blue-heron", f"many/{number}.txt", "x")
    large = api.upload("blue-heron", "large.bin", b"x" * 1001)
    before = api.files()
    for sent, headers, expected in (
        ({"source": source, "dest_slug": "k"}, {}, (401, "UNAUTHORIZED")),
        ({"source": source, "dest_slug": "k"}, eve, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        (
            {"source": "hf://buckets/race/tiny-main-bucket/README.md", "dest_slug": "k"},
            ada,
            (403, "BUCKET_NOT_OWNED_BY_CALLER"),
        ),
        ({"source": source, "dest_slug": "K"}, ada, (400, "INVALID_PATH")),
        ({"source": source, "dest_slug": "../x"}, ada, (400, "INVALID_PATH")),
        ({"source": source, "dest_slug": "a/b"}, ada, (400, "INVALID_PATH")),
        ({"source": source, "dest_slug": "a_red-kettle"}, ada, (400, "INVALID_PATH")),
        ({"source": f"{source}/../b", "dest_slug": "k"}, ada, (400, "INVALID_PATH")),
        ({"source": f"{source}.none", "dest_slug": "k"}, ada, (404, "SOURCE_NOT_FOUND")),
        ({"source": source.replace("a.txt", "many"), "dest_slug": "k"}, ada, (413, "SYNC_TOO_LARGE")),
        ({"source": large, "dest_slug": "k"}, ada, (413, "SYNC_TOO_LARGE")),
        ({"source": source}, ada, (422, "INVALID_REQUEST")),
    ):
        assert code(sync(api, headers, **sent)) == expected, sent
    for dest_path in (
        *("README.md", "x.txt", "x_blue", "x_blue-heron2", "x_blue-heron-2", "X_Blue-Heron", "x_red-kettle"),
        *(
            "x_red-kettle_blue-heron",
            ".x_blue-heron",
            "/x_blue-heron",
            "a//x_blue-heron",
            "x_blue-heron\x00",
            "/",
            "_blue-heron" * 120,
        ),
    ):
        assert code(shared(api, ada, source, dest_path)) == (400, "INVALID_PATH"), dest_path
    assert api.files() == before


def test_a_sync_costs_a_promotion_and_a_refused_one_nothing(api, ada) -> None:
    source = api.upload("blue-heron", "a.txt", "x")
    for _ in range(25):
        assert code(shared(api, ada, source, "x.txt")) == (400, "INVALID_PATH")
    answers = [sync(api, ada, source=source, dest_slug="k") for _ in range(21)]
    assert [answer.status_code for answer in answers] == [200] * 20 + [429]
    assert code(answers[-1]) == (429, "RATE_LIMITED")
    assert int(answers[-1].headers["retry-after"]) > 0


def test_nobody_writes_the_central_or_the_audit_bucket_over_the_hub(api, ada) -> None:
    chief = api.person("chief", is_organizer=True)
    before = api.files()
    line = b'{"type": "deleteFile", "path": "agents/blue-heron.md"}\n'
    for bucket in (api.site.central, api.site.audit):
        for headers in (ada, chief, {}):
            sent = {**headers, "Content-Type": "application/x-ndjson"}
            answer = api.client.post(f"/api/buckets/{bucket}/batch", content=line, headers=sent)
            assert answer.status_code in (401, 403, 404), (bucket, answer.text)
            answer = api.client.get(f"/api/buckets/{bucket}/xet-write-token", headers=headers)
            assert answer.status_code in (401, 403, 404), (bucket, answer.text)
    assert api.files() == before
