"""How an object of a kind must look: fields that exist, defaults, checks. The one place that asks for schemas."""

from __future__ import annotations

from typing import Any, NamedTuple

from stromboli.embedded.errors import Cause
from stromboli.embedded.kinds import Kind
from stromboli.embedded.schemas.schema import ANYTHING, Schema


class Findings(NamedTuple):
    """Paths of fields that the kind does not have, and what is wrong with the others."""

    unknown: list[str]
    problems: list[Cause]


def schema(kind: Kind) -> Schema:
    return ANYTHING


def shape(kind: Kind, content: dict[str, Any]) -> Findings:
    """Take out, in place, what the kind does not have, set what was left open, and check the rest."""
    return Findings([], [])
