"""Atom (RFC 4287), written through an XML library alone, so that no text of anybody's can leave its element."""

import re
from dataclasses import dataclass
from datetime import datetime
from xml.etree.ElementTree import Element, SubElement, register_namespace, tostring

from storage.clock import to_iso_ms

_ATOM = "http://www.w3.org/2005/Atom"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""

register_namespace("", _ATOM)


@dataclass(frozen=True)
class Entry:
    """One record. `html` is sanitised by who rendered it, and escaped here."""

    id: str
    title: str
    author: str
    url: str
    published: datetime
    updated: datetime
    html: str


@dataclass(frozen=True)
class Feed:
    """A feed; `url` is its own address and `page` that of what it tells about."""

    id: str
    title: str
    url: str
    page: str
    updated: datetime
    entries: tuple[Entry, ...]


def to_bytes(feed: Feed) -> bytes:
    """Write a feed."""
    root = Element(f"{{{_ATOM}}}feed")
    _add(root, "id", feed.id)
    _add(root, "title", feed.title)
    _add(root, "updated", to_iso_ms(feed.updated))
    _add(root, "link", rel="self", type="application/atom+xml", href=feed.url)
    _add(root, "link", rel="alternate", type="text/html", href=feed.page)
    _add(root, "generator", "Paddock")
    for entry in feed.entries:
        _add_entry(root, entry)
    body: bytes = tostring(root, encoding="utf-8")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + body


def _add_entry(root: Element, entry: Entry) -> None:
    item = _add(root, "entry")
    _add(item, "id", entry.id)
    _add(item, "title", entry.title, type="text")
    _add(_add(item, "author"), "name", entry.author)
    _add(item, "published", to_iso_ms(entry.published))
    _add(item, "updated", to_iso_ms(entry.updated))
    _add(item, "link", rel="alternate", type="text/html", href=entry.url)
    _add(item, "content", entry.html, type="html")


def _add(parent: Element, name: str, text: str = "", **attributes: str) -> Element:
    element = SubElement(parent, f"{{{_ATOM}}}{name}", {key: _written(value) for key, value in attributes.items()})
    element.text = _written(text) or None
    return element


def _written(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
