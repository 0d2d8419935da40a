"""Why a patch was refused, in the words and codes that clients of Kubernetes know."""

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
"""How deep a document may nest; the deepest that anybody writes, the schema of a CRD, nests about 60 deep."""


class PatchError(Exception):
    """A patch that cannot be applied: HTTP status, reason, message and, for conflicts, one cause per field."""

    def __init__(self, code: int, message: str, causes: Sequence[Cause] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.reason = _REASONS[code]
        self.message = message
        self.causes = list(causes)


def check_depth(document: Any, what: str = "patch") -> None:
    """Refuse what nests so deep that walking it, or writing it, would fail half way."""
    level = [document]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        level = [node for node in below if isinstance(node, dict | list)]
        if not level:
            return
    raise PatchError(400, f"the {what} nests deeper than {MAX_DEPTH} levels")
