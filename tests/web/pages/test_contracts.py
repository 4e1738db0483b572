"""Each template has one dataclass; each vendored file is the one that was taken."""

import hashlib
import importlib
import pkgutil
import re
from dataclasses import fields, is_dataclass

import pytest
from jinja2 import meta, nodes

import web.pages
from web.pages.frame import STATIC, TEMPLATES, environment

PARTS = {"base.html", "csrf.html", "parts.html", "post.html", "sprite.html"}


def views() -> dict[str, type]:
    """Map each template to the dataclass that fills it."""
    modules = [importlib.import_module(f"web.pages.{found.name}") for found in pkgutil.iter_modules(web.pages.__path__)]
    classes = {value for module in modules for value in vars(module).values() if is_dataclass(value)}
    named = [(cls.template, cls) for cls in classes if isinstance(cls, type) and hasattr(cls, "template")]
    assert len(dict(named)) == len(named), "a template has two dataclasses"
    return dict(named)


def test_every_template_has_one_dataclass() -> None:
    assert {path.name for path in TEMPLATES.glob("*.html")} - PARTS == set(views())


@pytest.mark.parametrize("template", sorted(views()))
def test_a_template_and_its_dataclass_know_the_same_fields(template: str) -> None:
    source = (TEMPLATES / template).read_text()
    tree = environment().parse(source)
    used = {
        node.attr
        for node in tree.find_all(nodes.Getattr)
        if isinstance(node.node, nodes.Name) and node.node.name == "view"
    }
    assert used == {field.name for field in fields(views()[template])}
    imported = {name for node in tree.find_all(nodes.FromImport) for name in node.names}
    assert meta.find_undeclared_variables(tree) - imported <= {"view", "frame", "counted"}


def test_no_template_switches_escaping_off_or_styles_inline() -> None:
    for path in TEMPLATES.glob("*.html"):
        source = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape|\bstyle=|<style|\son[a-z]+=|<script(?! src)", source), path.name


def test_only_one_place_marks_anything_safe() -> None:
    sources = {path.name: path.read_text() for path in (TEMPLATES.parent / "pages").glob("*.py")}
    assert [name for name, text in sources.items() if "Markup(" in text] == ["posts.py"]


def test_every_vendored_file_is_the_one_that_was_taken() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (STATIC / "VENDORED.md").read_text(), re.M)
    assert "htmx.min.js" in dict(rows)
    for name, digest in rows:
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest, name
    ours = {"app.js", "style.css", "favicon.svg", "VENDORED.md", "swagger/start.js"}
    there = {str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()}
    assert there - ours == set(dict(rows))
