"""Errors of patches, with the status codes and reasons of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Cause = dict[str, str]

_REASONS = {
    400: "BadRequest",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
}
MAX_DEPTH = 200
"""How deep a document may nest; the deepest in practice, schemas of CRDs, nest about 60 deep."""


class PatchError(Exception):
    """A patch that cannot be applied: HTTP status, reason, message and, for conflicts, one cause per field."""

    def __init__(self, code: int, message: str, causes: Sequence[Cause] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS[code]
        self.message = message
        self.causes = list(causes)


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
    raise PatchError(400, f"the {subject} nests deeper than {MAX_DEPTH} levels")
