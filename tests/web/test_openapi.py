"""What the OpenAPI document says is what the server does: schemathesis asks, within the document and outside it.

Each operation is asked by its owner, by an operator and by nobody, with what the document allows and with what it
forbids, about records that are there and about others. The examples are the same in every run.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as bounds
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from storage.settings import Settings
from storage.site import Site
from tests.web import cast as casting
from tests.web.cast import Cast, unchanging
from tests.web.test_permission_matrix import BODIES, words_of
from web.app import create_app

ENDLESS = "/v1/events"
"""Never ends, so nothing can be said of its answer as a whole; tests/web/api/test_events.py reads it."""
EXAMPLES = 3
"""Of each operation: of what is allowed and of what isn't, about what is there and about anything."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
schemathesis.serializer("application/x-ndjson")(lambda _context, value: {"data": str(value).encode()})
NO_LIMITS = """
[limits]
promotions_per_min = 1000000
raw_posts_per_min = 1000000
raw_posts_per_hour = 1000000
registrations_per_min = 1000000
"""


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path) -> Settings:
    challenge_file.write_text(challenge_file.read_text() + NO_LIMITS)
    prefix = Path(sys.prefix)
    return Settings(data=tmp_path / "data", challenge=challenge_file, server_env=prefix, trusted_submitters="owner")


@pytest.fixture
def cast(site: Site) -> Iterator[Cast]:
    gathered = casting.gather(site, create_app(site))
    yield gathered
    gathered.client.close()


def test_no_call_answers_with_a_fault_of_ours_or_with_what_is_not_documented(cast: Cast) -> None:
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", cast.client.app)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert ENDLESS in {operation.path for operation in operations}
    wrong: list[str] = []
    with unchanging(cast.site) as restore:
        for operation in operations:
            if operation.path != ENDLESS:
                asked = sum(_ask(cast, strategy, wrong) for strategy in _cases(cast, operation))
                assert asked, operation.label
                restore()
    assert wrong == []


@pytest.mark.parametrize("left_out", ["401", "422"])
def test_an_answer_that_is_not_documented_is_found(cast: Cast, left_out: str) -> None:
    document = deepcopy(cast.client.app.openapi())
    del document["paths"]["/v1/messages"]["post"]["responses"][left_out]
    schema = schemathesis.openapi.from_dict(document)
    schema.app = cast.client.app
    wrong: list[str] = []
    for strategy in _cases(cast, schema["/v1/messages"]["POST"]):
        _ask(cast, strategy, wrong)
    assert wrong
    assert all("Undocumented status code" in line for line in wrong)


def _cases(cast: Cast, operation: APIOperation) -> Iterator[st.SearchStrategy[Case]]:
    """What an operation is asked: within the document and outside it; with names that are there, and with any."""
    names = words_of(cast, operation.path)
    known = {item.name: names[item.name] for item in operation.path_parameters if item.name in names}
    for mode in GenerationMode:
        yield operation.as_strategy(mode)
        if known:
            yield operation.as_strategy(mode, path_parameters=known)
    body = BODIES.get(f"{operation.method.upper()} {operation.path}")
    if body is not None:
        yield operation.as_strategy(path_parameters=known, body=body, media_type="application/json")


def _ask(cast: Cast, strategy: st.SearchStrategy[Case], wrong: list[str]) -> int:
    """Send some cases; note what was wrong with the answers; return how many were sent."""
    asked = 0

    @bounds(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy, actor=st.sampled_from(["owner", "owner", "operator", "visitor"]))
    def each(case: Case, actor: str) -> None:
        nonlocal asked
        asked += 1
        headers = _authorization(cast, case.operation.path, actor)
        answer = case.call(headers=headers)
        try:
            case.validate_response(answer, checks=CHECKS)
        except (Failure, FailureGroup) as failure:
            said = getattr(failure, "exceptions", [failure])
            reasons = "; ".join(f"{one.title}: {one.message}" for one in said)
            wrong.append(f"{case.method} {case.path} by {actor}: {answer.status_code} {answer.text[:300]} {reasons}")

    with suppress(Unsatisfiable):  # nothing can be wrong about an operation that takes nothing
        each()
    return asked


def _authorization(cast: Cast, path: str, actor: str) -> dict[str, str]:
    key = cast.key(actor, None)
    token = cast.store_token(key) if path.startswith("/cas/") else key.token
    return {"Authorization": f"Bearer {token}"} if token else {}
