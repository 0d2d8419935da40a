"""A bound on the depth of documents, for functions that recurse into them."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.api_status import StatusError

MAX_DEPTH = 200
"""How deep a document may nest; the deepest in practice, schemas of CRDs, nest about 60 deep."""


def check_depth(document: Any, subject: str = "patch") -> None:
    """Refuse a document that nests too deep for recursive functions."""
    level = [document]
    for _ in range(MAX_DEPTH):
        children: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                children.extend(node.values())
            elif isinstance(node, list):
                children.extend(node)
        level = [node for node in children if isinstance(node, dict | list)]
        if not level:
            return
    raise StatusError(400, f"the {subject} nests deeper than {MAX_DEPTH} levels")
