import pytest

from agents.names import check_agent_id, check_form, fold_agent_id, is_user_name, user_of
from storage.errors import InvalidPath


@pytest.mark.parametrize("name", ["a", "7", "blue-heron", "a--b", "x" * 40, "humane", "system2"])
def test_an_agent_id_is_lower_case_with_inner_hyphens(name: str) -> None:
    assert check_agent_id(name) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "a_b", "a.b", "x" * 41, "a b", "é", "a\n", "../a", "ａ"])
def test_other_forms_are_refused(name: str) -> None:
    with pytest.raises(InvalidPath):
        check_agent_id(name)


@pytest.mark.parametrize("name", ["human", "human-ada", "main-bucket", "audit", "verifier", "runner", "system"])
def test_reserved_words_cannot_be_registered(name: str) -> None:
    with pytest.raises(InvalidPath, match="reserved"):
        fold_agent_id(name.upper())
    assert check_form(name) == name


def test_capitals_are_folded_at_registration_and_hinted_at_elsewhere() -> None:
    assert fold_agent_id("Blue-Heron") == "blue-heron"
    with pytest.raises(InvalidPath) as refusal:
        check_agent_id("Blue-Heron")
    assert "blue-heron" in (refusal.value.hint or "")


@pytest.mark.parametrize(("name", "holds"), [("ada", True), ("x" * 34, True), ("x" * 35, False), ("Ada", False),
                                             ("system", False), ("me", False), ("a_b", False),
                                             ("", False)])  # fmt: skip
def test_user_names_fit_behind_human(name: str, holds: bool) -> None:
    assert is_user_name(name) is holds
    assert user_of(f"human-{name}") == (name if holds else None)
