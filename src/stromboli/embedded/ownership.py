"""Which manager owns which fields of an object, as far as anybody asked: the one place that keeps managedFields.

An object that was never applied on the server has none, which is how Kubernetes treats objects from before server-side
apply: the first apply finds an owner called `before-first-apply`.
"""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds import Kind


def tracked(kind: Kind, content: dict[str, Any], old: dict[str, Any] | None, manager: str, part: str) -> None:
    """Note who changed what, on an object that has such notes."""
