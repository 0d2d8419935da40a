"""How an object of a kind must look: fields that exist, defaults, checks. The one place that asks for schemas."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.errors import Cause
from stromboli.embedded.kinds import Kind
from stromboli.embedded.schemas.schema import ANYTHING, Schema


def schema(kind: Kind) -> Schema:
    return ANYTHING


def pruned(kind: Kind, content: dict[str, Any]) -> list[str]:
    """Drop fields that the kind does not have; their paths."""
    return []


def defaulted(kind: Kind, content: dict[str, Any]) -> None:
    """Set what was left open."""


def problems(kind: Kind, content: dict[str, Any], old: dict[str, Any] | None) -> list[Cause]:
    """What is wrong with an object, in the words of Kubernetes."""
    return []
