"""Bounds on documents: how deep they nest, for functions that recurse, and how many values they have.

Whatever is done with a document costs some microseconds per value, on the event loop that serves everybody. So the
number of values is bounded before a document is decoded, and again in what a patch leaves.
"""

from __future__ import annotations

from typing import Any

from stromboli.embedded.api_status import StatusError

MAX_DEPTH = 200
"""How deep a document may nest; the deepest in practice, schemas of CRDs, nest about 60 deep."""
MAX_VALUES = 50_000
"""Values of a document: texts, numbers, maps, lists. A job of 1,000 tasks has some 30,000, the largest CRDs half."""


def check_document(document: Any, subject: str = "patch") -> int:
    """The number of values; a document with too many, or that nests too deep for recursive functions, is refused."""
    level, count = [document], 1
    for _ in range(MAX_DEPTH):
        children: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                children.extend(node.values())
            elif isinstance(node, list):
                children.extend(node)
            if count + len(children) > MAX_VALUES:
                raise too_many_values(subject)
        count += len(children)
        level = [node for node in children if isinstance(node, dict | list)]
        if not level:
            return count
    raise StatusError(400, f"the {subject} nests deeper than {MAX_DEPTH} levels")


def check_json(data: bytes) -> None:
    """Refuse JSON of too many values without decoding it, which would take long."""
    if len(data) < 2 * MAX_VALUES:  # a value takes two characters at least
        return
    plain = data.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * MAX_VALUES:  # a key and a text for each value
        raise too_many_values("body")
    outside = b"".join(plain.split(b'"')[::2])
    if 1 + outside.count(b",") + outside.count(b"{") + outside.count(b"[") > MAX_VALUES:
        raise too_many_values("body")


def too_many_values(subject: str) -> StatusError:
    return StatusError(
        413,
        f"the {subject} has more than {MAX_VALUES} values (texts, numbers, maps, lists):"
        " divide it among several objects, or put data that is not looked into in one text",
    )
