"""What a pod of a task asks for, in short."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_lists import amount_text
from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.cluster.object_output import NONE


def requests_text(task: Manifest) -> str:
    """`cpu=1,memory=512Mi`, of all containers of a pod together."""
    totals: dict[str, Fraction] = {}
    for container in _containers(task):
        resources = container.get("resources") or {}
        wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for name, amount in wanted.items():
            try:
                totals[name] = totals.get(name, Fraction(0)) + exact(amount)
            except QuantityError:
                return f"{name}={amount}?"
    return ",".join(f"{name}={amount_text(name, total)}" for name, total in sorted(totals.items())) or NONE


def images_text(task: Manifest) -> str:
    return ",".join(str(container.get("image") or NONE) for container in _containers(task)) or NONE


def _containers(task: Manifest) -> list[dict[str, Any]]:
    spec = (task.get("template") or {}).get("spec") or {}
    return [container for container in spec.get("containers") or () if isinstance(container, dict)]
