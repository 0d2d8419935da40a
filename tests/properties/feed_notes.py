"""Notes of the change feed that can be taken out one by one, to see whether anything notices.

A note is named by the function that makes it and by what it calls, such as `Cluster.join note_queue`, with a number
if the function makes several.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import stromboli.model
from stromboli.model.cluster import Cluster
from stromboli.model.feed import ChangeLog, Feed, Topic

MODEL = Path(stromboli.model.__file__).parent
CALLS: dict[str, tuple[type, ...]] = {
    "note": (Topic, ChangeLog),
    "note_everything": (Topic, ChangeLog, Feed),
    "note_job": (Feed,),
    "note_queue": (Feed,),
    "note_nodes": (Feed,),
    "note_object": (Feed,),
    "mark_dirty": (Cluster,),
}
"""Methods that note a change, and the classes that have them."""


class Note(NamedTuple):
    """A call that notes a change."""

    file: str
    line: int
    name: str


@cache
def notes() -> dict[str, Note]:
    """All calls in the model that note a change, by name."""
    found: dict[str, Note] = {}
    for path in sorted(MODEL.rglob("*.py")):
        if path.name != "feed.py":
            for name, line in _calls(ast.parse(path.read_text()), ""):
                same = sum(each.name == name for each in found.values())
                found[f"{name} {same + 1}" if same else name] = Note(str(path), line, name)
    return found


def _calls(tree: ast.AST, where: str) -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(tree):
        inner = where
        if isinstance(child, ast.ClassDef | ast.FunctionDef):
            inner = f"{where}.{child.name}" if where else child.name
        elif isinstance(child, ast.Call) and isinstance(child.func, ast.Attribute):
            called, owner = child.func.attr, ast.unparse(child.func.value)
            if called in CALLS and "membership" not in owner and inner != "Cluster.mark_dirty":
                yield f"{inner} {called}", child.lineno
        yield from _calls(child, inner)


@contextmanager
def without(note: Note) -> Iterator[list[int]]:
    """Within this context a note is not made; the list has an entry for each time that it would have been."""
    originals = [(kind, note_of(note), vars(kind)[note_of(note)]) for kind in CALLS[note_of(note)]]
    left_out: list[int] = []

    def guarded(original: Any) -> Any:
        def call(*items: Any) -> None:
            frame = sys._getframe(1)
            if frame.f_lineno == note.line and frame.f_code.co_filename == note.file:
                left_out.append(note.line)
            else:
                original(*items)

        return call

    for kind, name, original in originals:
        setattr(kind, name, guarded(original))
    try:
        yield left_out
    finally:
        for kind, name, original in originals:
            setattr(kind, name, original)


def note_of(note: Note) -> str:
    """The method that a note calls."""
    return note.name.split()[1]
