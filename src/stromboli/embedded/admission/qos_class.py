"""The quality of service that a pod's requests and limits amount to."""

from __future__ import annotations

from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact

_COUNTED = ("cpu", "memory")


def qos_class(spec: dict[str, Any]) -> str:
    """Guaranteed if everything is limited to what it requests, BestEffort if nothing asks, Burstable between."""
    containers = [one for name in ("containers", "initContainers") for one in spec.get(name) or ()]
    asked, guaranteed = False, True
    for container in containers:
        resources = (container.get("resources") or {}) if isinstance(container, dict) else {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        asked = asked or any(_positive(one.get(name)) for one in (limits, requests) for name in _COUNTED)
        guaranteed = guaranteed and all(
            _positive(limits.get(name)) and _same(requests.get(name, limits.get(name)), limits.get(name))
            for name in _COUNTED
        )
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _positive(quantity: Any) -> bool:
    try:
        return quantity is not None and exact(quantity) > 0
    except QuantityError:
        return False


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other or exact(one) == exact(other))
    except QuantityError:
        return False
