"""Read the shape of functions and classes off a library's source without importing it."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

_Node: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Seen:
    """The parameters of a function, what it assigns on `self`, and every identifier and string in its body."""

    parameters: tuple[str, ...]
    sets: frozenset[str]
    words: frozenset[str]


class Source(Protocol):
    """A library whose places can be looked up; `release` names it for people, as `vLLM 0.23.0`."""

    release: str

    def find(self, place: str) -> Seen | None:
        """Return what stands at `place` (`module:Qualified.name`), or None where nothing does."""


class SourceTree:
    """A library lying in a folder: `root` is the one that holds its package."""

    def __init__(self, root: Path, release: str) -> None:
        self._root = root
        self.release = release

    def find(self, place: str) -> Seen | None:
        """Return what the file of that module says; a module or name that is not there is None."""
        module, _, name = place.partition(":")
        path = self._root.joinpath(*module.split(".")).with_suffix(".py")
        node = _walk(_parsed(path), name) if path.is_file() else None
        return None if node is None else _seen(node)


class Recording:
    """A library of which only the needed shapes were kept, in a small JSON file."""

    def __init__(self, path: Path) -> None:
        told = json.loads(path.read_text(encoding="utf-8"))
        self.release: str = told["release"]
        self.places: dict[str, dict[str, list[str]]] = told["places"]

    def find(self, place: str) -> Seen | None:
        """Return what was recorded for `place`."""
        told = self.places.get(place)
        if told is None:
            return None
        return Seen(tuple(told["parameters"]), frozenset(told["sets"]), frozenset(told["words"]))


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _walk(tree: ast.Module, name: str) -> _Node | None:
    node: ast.Module | _Node = tree
    for part in name.split("."):
        found = next((child for child in _definitions(node) if child.name == part), None)
        if found is None:
            return None
        node = found
    return None if isinstance(node, ast.Module) else node


def _definitions(node: ast.AST) -> list[_Node]:
    return [
        child
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _seen(node: _Node) -> Seen:
    parameters: tuple[str, ...] = ()
    if not isinstance(node, ast.ClassDef):
        given = node.args
        parameters = tuple(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
    return Seen(parameters, frozenset(_sets(node)), frozenset(_words(node)))


def _sets(node: ast.AST) -> set[str]:
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
        if isinstance(each.value, ast.Name) and each.value.id == "self"
    }


def _words(node: ast.AST) -> set[str]:
    words: set[str] = set()
    for each in ast.walk(node):
        match each:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str(word)):
                words.add(word)
            case ast.keyword(arg=str(word)):
                words.add(word)
            case _:
                continue
    return words
