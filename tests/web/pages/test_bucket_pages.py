"""The file browser: who sees what, what is shown, and that nothing of it runs."""

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from agents import accounts, tokens
from agents.scopes import DEFAULT, Scope
from storage.buckets import Put
from storage.database import writing
from storage.paths import BucketName
from storage.site import Site
from tests.people import add_person
from tests.web.browser import Browser
from tests.web.pages.counting import statements
from tests.web.pages.reading import Page
from web.app import create_app
from web.pages.frame import POLICY

OPEN, HIDDEN, ABSENT = (BucketName("race", f"tiny-{name}") for name in ("open", "dark", "none"))
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"
FILES = {
    "README.md": f"---\ntitle: hidden head\n---\n# About\n\nSome **words** and {EVIL} [x](javascript:alert(1)).\n",
    "sub/deep/serve.py": "import os\n\nprint('<b>')\n",
    "page.html": f"<html>{EVIL}</html>",
    "picture.svg": f"<svg onload='alert(1)'>{EVIL}</svg>",
    "bytes.bin": b"\0\1\2",
    "latin.txt": "caf\u00e9".encode("latin-1"),
    "empty.txt": "",
    "long.txt": "a line\n" * 5000,
    "a b#?%.txt": "odd name",
    "\u901f\u3044.md": "CJK",
    f"{'x' * 200}.txt": "long name",
}


@pytest.fixture
def browser(site: Site) -> Iterator[Browser]:
    with writing(site.engine) as session:
        for name in ("ada", "eve"):
            add_person(site, session, name)
        store = site.buckets(session)
        for bucket, private in ((OPEN, False), (HIDDEN, True)):
            store.create(bucket, owner="ada", private=private)
            puts = [Put(path, text.encode() if isinstance(text, str) else text) for path, text in FILES.items()]
            store.apply(bucket, puts)
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as client:
        yield Browser(client, site)


def sign_in(browser: Browser, name: str, scopes: frozenset[Scope] = DEFAULT) -> None:
    with writing(browser.site.engine) as session:
        accounts.add(session, name, now=browser.site.clock())
        made = tokens.create(session, name, secret=browser.site.secret, now=browser.site.clock(), scopes=scopes)
    assert browser.sign_in(made.text).status_code == 303


def tree(path: str = "", bucket: BucketName = OPEN) -> str:
    return f"/buckets/{bucket}" + (f"/tree/{quote(path)}" if path else "")


def test_a_folder_lists_its_folders_and_files_with_sizes(browser: Browser) -> None:
    answer = browser.get(tree())
    page = Page(answer.text)
    assert page.faults == []
    assert answer.headers["content-security-policy"] == POLICY
    assert {tree("sub"), tree("page.html"), tree("a b#?%.txt"), tree("\u901f\u3044.md")} <= set(page.links)
    assert "long.txt 35 kB" in page.text
    assert "sub/" in page.text
    assert f"in {len(FILES)} files" in page.text


def test_every_link_of_the_browser_leads_to_a_file_or_a_folder(browser: Browser) -> None:
    links = {link for path in ("", "sub", "sub/deep") for link in Page(browser.get(tree(path)).text).links}
    ours = sorted(link for link in links if link.startswith("/buckets/"))
    assert len(ours) > len(FILES)
    for link in ours:
        assert browser.get(link).status_code == 200, link


def test_the_readme_is_rendered_without_its_head_and_without_what_runs(browser: Browser) -> None:
    answer = browser.get(tree())
    assert "<strong>words</strong>" in answer.text
    assert "hidden head" not in answer.text
    assert Page(answer.text).faults == []
    assert "<script>alert" not in answer.text
    assert "About" not in browser.get(tree("sub")).text


def test_a_file_is_shown_as_the_text_it_is(browser: Browser) -> None:
    for path in ("page.html", "picture.svg", "README.md"):
        answer = browser.get(tree(path))
        page = Page(answer.text)
        assert page.faults == []
        assert EVIL in page.text
        assert "<img src=x" not in answer.text
        assert "L1" in page.ids


def test_lines_are_numbered_and_keep_their_indentation(browser: Browser) -> None:
    answer = browser.get(tree("sub/deep/serve.py"))
    assert re.findall(r'<li id="(L\d)"><a href="#L\d">\d</a><span>(.*?)</span>', answer.text) == [
        ("L1", "import os"),
        ("L2", ""),
        ("L3", "print(&#39;&lt;b&gt;&#39;)"),
    ]


def test_what_has_no_lines_says_why(browser: Browser) -> None:
    for path in ("bytes.bin", "latin.txt"):
        assert "This is no text" in Page(browser.get(tree(path)).text).text
    assert "The file is empty" in Page(browser.get(tree("empty.txt")).text).text


def test_a_long_file_says_that_it_is_cut_and_where_the_rest_is(browser: Browser) -> None:
    page = Page(browser.get(tree("long.txt")).text)
    assert {"L1", "L4000"} <= set(page.ids)
    assert "L4001" not in page.ids
    assert "Only its beginning is shown" in page.text
    assert f"/buckets/{OPEN}/resolve/long.txt" in page.links


def test_a_large_folder_comes_in_pages_whose_union_is_exact(browser: Browser) -> None:
    names = [f"many/{number:04d}.txt" for number in range(450)] + [f"many/f{number:02d}/x" for number in range(9)]
    with writing(browser.site.engine) as session:
        browser.site.buckets(session).apply(OPEN, [Put(name, b"x") for name in names])
    seen: list[str] = []
    address, pages = tree("many"), 0
    while address:
        text = browser.get(address).text
        seen += re.findall(r'<a class="id" href="([^"]+)"', text)
        more = re.search(r'<a href="([^"]+)" rel="next"', text)
        address, pages = (more[1] if more else ""), pages + 1
    assert pages == 3
    shown = {name.rsplit("/", 1)[0] if "/f" in name else name for name in names}
    assert sorted(seen) == sorted(tree(name) for name in shown)


def test_a_page_costs_as_many_statements_for_many_files_as_for_few(browser: Browser) -> None:
    with writing(browser.site.engine) as session:
        few = [Put(f"few/{number}.txt", b"x") for number in range(2)]
        many = [Put(f"lots/{number}/{other}.txt", b"x") for number in range(10) for other in range(19)]
        browser.site.buckets(session).apply(OPEN, few + many)
    with statements(browser.site.engine) as small:
        assert browser.get(tree("few")).status_code == 200
    with statements(browser.site.engine) as large:
        assert browser.get(tree("lots")).status_code == 200
    assert len(large) <= len(small) + 1
    assert len(small) < 25


def test_a_strangers_page_of_a_hidden_bucket_is_that_of_none(browser: Browser) -> None:
    for who in ("", "eve"):
        if who:
            sign_in(browser, who)
        for path in ("", "sub", "README.md", "none"):
            hidden, absent = browser.get(tree(path, HIDDEN)), browser.get(tree(path, ABSENT))
            assert hidden.status_code == absent.status_code == 404
            assert hidden.text.replace(str(HIDDEN), str(ABSENT)) == absent.text


def test_the_signed_in_owner_reads_and_downloads_a_hidden_bucket(browser: Browser) -> None:
    sign_in(browser, "ada")
    assert "private: only its owner sees it" in browser.get(tree("", HIDDEN)).text
    page = Page(browser.get(tree("sub/deep/serve.py", HIDDEN)).text)
    download = next(link for link in page.links if "/resolve/" in link)
    assert browser.get(download).text == FILES["sub/deep/serve.py"]
    browser.client.cookies.clear()
    assert browser.get(download).status_code == 404


def test_who_signed_in_with_a_token_that_does_not_read_is_told_so(browser: Browser) -> None:
    sign_in(browser, "ada", frozenset({Scope.POST}))
    assert browser.get(tree("", HIDDEN)).status_code == 403
    assert browser.get(f"/buckets/{HIDDEN}/resolve/README.md").status_code == 403


def test_a_wrong_token_is_refused_though_the_bucket_is_public(browser: Browser) -> None:
    answer = browser.client.get(tree(), headers={"Authorization": "Bearer pdk_wrong"})
    assert answer.status_code == 401


def test_a_download_is_saved_and_never_run(browser: Browser) -> None:
    places = [f"/buckets/{OPEN}/resolve/{path}" for path in ("page.html", "picture.svg", "README.md", "bytes.bin")]
    for answer in (*map(browser.get, places), *map(browser.client.head, places)):
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]


def test_head_answers_like_get_without_a_body(site: Site, browser: Browser) -> None:
    for path, status in ((tree(), 200), (tree("sub"), 200), (tree("page.html"), 200), (tree("no"), 404)):
        told, asked = browser.client.head(path), browser.get(path)
        assert told.status_code == asked.status_code == status
        assert told.headers["content-type"] == asked.headers["content-type"]


def test_a_path_or_a_cursor_of_any_kind_is_no_error(browser: Browser) -> None:
    for path in ("%00", "a/../b", "a%2F%2Fb", "x" * 1500, "%E2%80%8B"):
        assert browser.get(f"{tree()}/tree/{path}").status_code in (400, 404), path
    for after in ("%00", "zzz", "../", "x" * 2000, "%F0%9F%98%80"):
        assert browser.get(f"{tree()}?after={after}").status_code in (200, 422), after
