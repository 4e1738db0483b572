import re
from dataclasses import replace

import yaml
from sqlmodel import Session

from board import onboarding, reindex
from board.onboarding import Audience, address, refresh, render
from storage.site import Site


def stored(site: Site, session: Session) -> str:
    return site.buckets(session).read(site.central, "README.md").decode()


def test_the_readme_is_written_once_and_again_only_when_it_would_change(site: Site, session: Session, clock) -> None:
    assert refresh(site, session)
    before = stored(site, session)
    written_at = site.buckets(session).stat(site.central, "README.md")
    clock.forward(hours=1)
    assert not refresh(site, session)
    assert site.buckets(session).stat(site.central, "README.md") == written_at
    renamed = replace(site, challenge=site.challenge.model_copy(update={"title": "Another race"}))
    assert refresh(renamed, session)
    assert stored(site, session).startswith("# Another race\n")
    assert refresh(site, session)
    assert stored(site, session) == before
    assert reindex.check(site, session) == []


def test_its_addresses_are_the_public_one_or_where_the_server_listens(site: Site) -> None:
    for given, expected in (
        ({"public_url": "https://race.example/"}, "https://race.example"),
        ({}, "http://127.0.0.1:7860"),
        ({"host": "0.0.0.0", "port": 80}, "http://localhost:80"),
        ({"host": "::"}, "http://localhost:7860"),
        ({"host": "::1"}, "http://[::1]:7860"),
    ):
        settings = site.settings.model_copy(update=given)
        text = render(replace(site, settings=settings), Audience.README, address(settings))
        assert f'export HF_ENDPOINT="{expected}"' in text
        assert ("has set no public address" in text) is ("public_url" not in given)


def test_a_skill_has_a_name_and_a_description_that_yaml_reads(site: Site) -> None:
    odd = site.challenge.model_copy(update={"description": 'Say "a: b" # and\nmore'})
    text = render(replace(site, challenge=odd), Audience.SKILL, "http://x")
    head = yaml.safe_load(text.split("---\n")[1])
    assert (head["name"], head["description"]) == ("tiny", 'How to join and race A tiny race: Say "a: b" # and\nmore')
    assert "---" not in render(site, Audience.LLMS, "http://x")[:3]


def test_it_says_everything_that_an_agent_needs(site: Site) -> None:
    text = render(site, Audience.README, "http://x")
    for word in (
        *("http://x/mcp", "/v1/search", "/v1/events", "feed", "http://x/v1", "http://x/docs", "http://x/leaderboard"),
        *(
            ".bucket-sync-handshake",
            "hf buckets create",
            "race/tiny-main-bucket",
            "race/tiny-",
            "HF_TOKEN",
            "HF_ENDPOINT",
        ),
        *("/v1/agents/register", "/v1/messages", "/v1/results", "/v1/jobs:run", "/v1/taskforces", "/v1/traces"),
        *("/v1/artifacts:sync", "/v1/shared-resources:sync", "Retry-After", "raw posts per min: 5", "verdicts/"),
        *site.challenge.required_fields,
    ):
        assert word in text, word
    assert not re.search(r"\{[{%]|None|Undefined", text)
    assert onboarding.PATH == "README.md"
