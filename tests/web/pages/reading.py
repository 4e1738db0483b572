"""Reading a page as a browser's parser does, to find what must never be in one."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlsplit

URL_ATTRIBUTES = frozenset({"href", "src", "action", "formaction", "poster", "data", "hx-get", "hx-post", "srcset"})
OURS = ("/static/app.js", "/static/htmx.min.js")


@dataclass
class Page(HTMLParser):
    """What a page holds: its faults, its links, its visible text, the attributes it uses."""

    html: str
    faults: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in ("style", "iframe", "object", "embed", "base", "foreignobject"):
            self.faults.append(f"<{tag}>")
        if tag == "script" and urlsplit(found.get("src", "")).path not in OURS:
            self.faults.append(f"a script that isn't ours: {found}")
        if "id" in found:
            self.ids.append(found["id"])
        for name, value in found.items():
            self._check(tag, name, value)

    def _check(self, tag: str, name: str, value: str) -> None:
        if name.startswith("on") or name == "style" or name.startswith(("hx-on", "data-hx")):
            self.faults.append(f"{tag} {name}={value}")
        if name not in URL_ATTRIBUTES:
            return
        if tag == "a":
            self.links.append(value)
        scheme = urlsplit("".join(value.split())).scheme
        if scheme not in ("", "http", "https", "mailto"):
            self.faults.append(f"{tag} {name}={value}")
