"""Hostile texts in every place where somebody may write, read back from every page by a real HTML parser."""

import json
import re
from collections.abc import Iterator
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import html5lib
import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from fastapi.testclient import TestClient
from httpx import Response
from sqlmodel import Session

from agents.roles import Role
from agents.rows import AgentRow
from agents.tokens import create
from board.markdown import render
from board.moderation import Action, Entry, index_entry, to_bytes
from board.rows import TaskforceRow
from storage.buckets import Put
from storage.database import writing
from storage.site import Site
from tests.people import add_person
from tests.web.browser import Browser
from tests.web.pages.race import Race
from web.app import create_app

SCRIPTS = [
    "<script>alert(1)</script>",
    "<ScRiPt/x>alert(1)</sCrIpT >",
    "<<script>script>alert(1)<</script>/script>",
    "<img src=x onerror=alert(1)>",
    "<img src=`x` onerror=alert(1)//",
    "<svg/onload=alert(1)>",
    "<svg><animate attributeName=href values=javascript:alert(1) /><a><text>x</text></a></svg>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>",
    "<svg><foreignObject><iframe srcdoc='<script>alert(1)</script>'></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<math><annotation-xml encoding='text/html'><img src=x onerror=alert(1)></annotation-xml></math>",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<template><script>alert(1)</script></template>",
    "<select><template><style><!--</style><a rel='--></style></template></select><img src=x onerror=alert(1)>'>",
    "<iframe src=javascript:alert(1)>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<a id=site name=user href=x>x</a><img name=cookie><form id=document><input name=body>",
    "<div hx-get=/v1/me hx-trigger=load hx-on:click=alert(1) data-hx-get=x sse-connect=x>x</div>",
    "<style>@import '//evil.example';*{background:url(//evil.example)}</style>",
    "</title></textarea></style></script></xmp></noscript><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]> <!--><script>alert(1)</script>--> <?xml x?><script>1</script>",
    "\x00<script\x00>alert(1)</script>",
    "\u2028<script>alert(1)</script>\u2029",
    "＜script＞alert(1)＜/script＞",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62; &#x3c;img src=x onerror=alert(1)&#x3e;",
    "{{7*7}} {% raw %} ${7*7} #{7*7} <%= 7 %>",
]
LINKS = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "&#106;avascript:alert(1)",
    "java&#x0A;script:alert(1)",
    "java&Tab;script:alert(1)",
    "&#x01;javascript:alert(1)",
    "javascript&colon;alert(1)",
    "%6aavascript:alert(1)",
    "vbscript:msgbox(1)",
    "data:text/html;base64,PHNjcmlwdD4=",
    "data:image/svg+xml,<svg onload=alert(1)>",
    "file:///etc/passwd",
    "blob:https://x/1",
    "filesystem:x",
    "about:blank",
    "ms-settings:x",
    "//evil.example/x",
    "\\\\evil.example\\x",
    "hf://buckets/a/../../v1/me",
    "artifacts/../../signout",
    'x" onmouseover="alert(1)',
    "x' onmouseover='alert(1)",
    "x` onmouseover=`alert(1)",
]
TEX = [
    r"\text{</math><img src=x onerror=alert(1)>}",
    r"\href{javascript:alert(1)}{x}",
    r"\class{x}{y}",
    r"\unicode{x3c}",
]
BODY = "\n\n".join(
    [
        *SCRIPTS,
        *(f"[a]({link}) ![b]({link}) [c](<{link}>) <{link}> [d]: {link}" for link in LINKS),
        *(f'[t](x "{script}") ![{script}](x) ![{script}](hf://buckets/a/b/c.png "{script}")' for script in SCRIPTS),
        *(
            f"`{script}`\n\n```{script}\n{script}\n```\n\n    {script}\n\n> {script}\n\n- [ ] {script}"
            for script in SCRIPTS
        ),
        *(f"| {script} |\n|---|\n| {script} |\n\n# {script}" for script in SCRIPTS),
        *(f"${tex}$\n\n$$\n{tex}\n$$" for tex in TEX),
        'x[^"><img src=x onerror=alert(1)>] y[^a]\n\n[^a]: <img src=x onerror=alert(1)>',
    ]
)
VALUE = " ".join(SCRIPTS[:12]) + "\"'`><x onclick=1>"
NAMES = ('"><script>alert(1)<', "javascript:alert(1)", "<img src=x onerror=alert(1)>.png", "a b#?.json")

URLS = frozenset({"href", "src", "action", "formaction", "poster", "data", "srcset", "xlink:href", "ping", "cite"})
OURS = ("/static/app.js", "/static/htmx.min.js", "/static/swagger/swagger-ui-bundle.js", "/static/swagger/start.js")
FORBIDDEN = frozenset(
    ["style", "iframe", "object", "embed", "base", "foreignobject", "frame", "applet", "annotation-xml", "mglyph"]
)
STRICT = ("default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'")


def faults_in(html: str) -> list[str]:
    """What must never be in a page, as the tree that a browser builds has it."""
    tree = html5lib.parse(html, treebuilder="etree", namespaceHTMLElements=False)
    faults = []
    for element in tree.iter():
        if not isinstance(element.tag, str):
            continue
        tag = element.tag.rpartition("}")[2].lower()
        found = {str(name).lower(): value or "" for name, value in element.attrib.items()}
        if tag in FORBIDDEN or (tag == "meta" and "http-equiv" in found):
            faults.append(f"<{tag}>")
        if tag == "script" and (urlsplit(found.get("src", "")).path not in OURS or (element.text or "").strip()):
            faults.append(f"a script that isn't ours: {found} {element.text}")
        faults += [f"{tag} {name}={value}" for name, value in found.items() if _is_fault(tag, name, value)]
    return faults


def _is_fault(tag: str, name: str, value: str) -> bool:
    if name.startswith("on") or name == "style" or name.startswith(("hx-on", "data-hx")) or name == "srcdoc":
        return True
    if name.rpartition("}")[2] not in URLS:
        return False
    parts = urlsplit(re.sub(r"[\x00-\x20]", "", value))
    if parts.scheme not in ("", "http", "https", "mailto"):
        return True
    return tag in ("img", "script", "link") and bool(parts.netloc)


@pytest.mark.parametrize("text", [*SCRIPTS, *BODY.split("\n\n")])
def test_no_text_renders_as_anything_that_runs(text: str) -> None:
    html = render(text)
    assert faults_in(html) == []
    again = html5lib.serialize(html5lib.parseFragment(html), quote_attr_values="always", omit_optional_tags=False)
    assert faults_in(again) == [], "it changes its meaning when it is parsed twice"


def test_no_text_names_an_element_that_a_script_could_take_for_its_own() -> None:
    tree = html5lib.parseFragment(render(BODY), namespaceHTMLElements=False)
    ids = [element.attrib.get("id", "") for element in tree.iter() if isinstance(element.tag, str)]
    assert all(re.fullmatch(r"|fn(ref)?-[0-9a-f]{12}-\d+(:\d+)?", found) for found in ids)
    assert not [element for element in tree.iter() if "name" in element.attrib]


def fill(site: Site, session: Session) -> None:
    """Write hostile texts into everything that takes text."""
    race = Race(site, session)
    store = site.buckets(session)
    store.create(site.scratch("evil"), owner=VALUE)
    words = dict.fromkeys(("hf_user", "model", "harness", "joined"), VALUE)
    bucket = str(site.scratch("evil"))
    session.add(
        AgentRow(agent_id="evil", tools=[VALUE], agent_bucket=bucket, bio=BODY, content_digest="0" * 64, **words)
    )
    root = race.post("evil", BODY, title=VALUE, proof=VALUE, type=VALUE)
    race.post("evil", BODY, refs=root)
    race.result("evil", VALUE, 10.0, 2.0, description=VALUE, reason=VALUE, hardware=VALUE, submission=LINKS[0])
    race.result("evil", LINKS[0], 11.0, 2.0, submission=LINKS[9])
    job = race.job(1, "evil", "failed", code=VALUE, message=VALUE, worker=VALUE, hardware=VALUE)
    job.submission_prefix = f"submissions/evil/{NAMES[0]}"
    files = [Put(f"{folder}/{name}", VALUE.encode()) for folder in ("runs/1", "docs") for name in NAMES]
    store.apply(
        site.scratch("evil"), [*files, Put("docs/README.md", BODY.encode()), Put("job_logs.txt", VALUE.encode())]
    )
    entry = Entry(Action.HIDE, f"message_board/{root}", VALUE, site.clock(), VALUE)
    index_entry(session, "moderation/20261129-120000-000_ada.md", to_bytes(entry))
    session.add(
        TaskforceRow(
            name="evil", creator="evil", created=VALUE, updated=VALUE, touched_at=site.clock(), body=BODY,
            frontmatter={"title": VALUE}, haystack=BODY, content_digest="0" * 64,
        )
    )  # fmt: skip
    create(session, "boss", secret=site.secret, now=site.clock(), label=VALUE[:100])


@pytest.fixture
def browser(site: Site) -> Iterator[Browser]:
    """An operator's browser on a site that is hostile all over; it sees every page there is."""
    with writing(site.engine) as session:
        token = add_person(site, session, "boss", role=Role.OPERATOR)
        fill(site, session)
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=True) as client:
        opened = Browser(client, site)
        opened.sign_in(token)
        yield opened


def addresses(browser: Browser) -> list[str]:
    """Every page: each route that takes GET, and every address of ours that those pages lead to."""
    app = browser.client.app
    assert isinstance(app, FastAPI)
    routes = [(context.path or "", context.methods or set()) for context in iter_route_contexts(app.routes)]
    plain = [path for path, methods in routes if "GET" in methods and "{" not in path and path != "/v1/events"]
    found = dict.fromkeys(
        [*plain, f"/search?q={quote(VALUE)}", "/search?q=alert", "/agents/evil", "/nowhere", "/signin?next="]
    )
    for path in list(found):
        found |= dict.fromkeys(_leads_to(browser.get(path)))
    for path in [path for path in found if path.startswith(("/t/", "/r/", "/buckets/", "/taskforces/", "/jobs/"))][:30]:
        found |= dict.fromkeys(_leads_to(browser.get(path)))
    return [path for path in found if "/resolve/" not in path][:150]


def _leads_to(answer: Response) -> list[str]:
    if not answer.headers.get("content-type", "").startswith("text/html"):
        return []
    links = re.findall(r'<a [^>]*href="(/[^/"][^"]*|/)"', answer.text)
    return [link.replace("&amp;", "&").partition("#")[0] for link in links]


def test_no_page_runs_what_somebody_wrote_and_each_forbids_it(browser: Browser) -> None:
    kinds = set()
    for path in addresses(browser):
        answer = browser.get(path)
        assert answer.status_code < 500, path
        if not answer.headers.get("content-type", "").startswith("text/html"):
            check_not_a_page(answer, path)
            continue
        kinds.add(path.partition("?")[0].split("/")[1])
        assert faults_in(answer.text) == [], path
        check_policy(answer, path)
    wanted = {"", "t", "r", "agents", "leaderboard", "queue", "jobs", "search", "moderation", "quotas", "audit", "docs"}
    assert wanted | {"account", "buckets", "taskforces"} <= kinds


def check_policy(answer: Response, path: str) -> None:
    policy = answer.headers.get("content-security-policy", "")
    assert all(part in policy for part in STRICT), f"{path}: {policy}"
    assert "unsafe" not in policy, f"{path}: {policy}"
    assert "script-src 'self'" in policy, path
    assert answer.headers.get("x-content-type-options") == "nosniff", path


def check_not_a_page(answer: Response, path: str) -> None:
    """JSON, feeds and plain text: nothing that a browser takes for HTML."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    assert kind in (
        "application/json",
        "application/atom+xml",
        "text/plain",
        "text/markdown",
        "application/javascript",
    ), path
    if kind == "application/json":
        json.loads(answer.text)
    if kind == "application/atom+xml":
        check_feed(answer.text)


def check_feed(text: str) -> None:
    """A feed is well-formed, and what a reader unpacks from it is as safe as a page."""
    root = ElementTree.fromstring(text)
    for element in root.iter():
        assert element.tag.startswith("{http://www.w3.org/2005/Atom}")
        assert urlsplit(element.get("href", "")).scheme in ("", "http", "https")
        if element.tag.endswith("content"):
            assert faults_in(element.text or "") == []


@pytest.mark.parametrize("feed", ["board", "results", "verdicts", "agents/evil"])
def test_feeds_carry_no_script(browser: Browser, feed: str) -> None:
    answer = browser.client.get(f"/feeds/{feed}.atom")
    assert answer.status_code == 200
    check_feed(answer.text)


def test_every_refusal_is_as_strict_as_a_page(browser: Browser) -> None:
    for path in (
        "/t/%3Cscript%3E",
        "/agents/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
        "/search?kind=<script>",
        "/p/<b>",
    ):
        answer = browser.get(path)
        assert answer.status_code in (400, 404, 422), path
        assert faults_in(answer.text) == []
        check_policy(answer, path)


def test_a_hostile_file_is_never_a_page_of_ours(browser: Browser, site: Site) -> None:
    with writing(site.engine) as session:
        puts = [Put("x.html", b"<script>alert(1)</script>", "text/html"), Put("x.svg", b"<svg onload='alert(1)'/>")]
        site.buckets(session).apply(site.scratch("evil"), puts)
    for name in ("x.html", "x.svg"):
        answer = browser.client.get(f"/buckets/{site.scratch('evil')}/resolve/{name}")
        assert answer.status_code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        kind, policy = answer.headers["content-type"], answer.headers.get("content-security-policy", "")
        is_saved = answer.headers.get("content-disposition", "").startswith("attachment")
        assert is_saved or "sandbox" in policy or not kind.startswith(("text/html", "image/svg", "application/x")), name
