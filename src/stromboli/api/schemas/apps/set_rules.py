"""Update strategies of StatefulSets and DaemonSets, and what an update of a set or a revision may not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.apps.rollout_limit_rules import is_zero, limit_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required

Content = dict[str, Any]

_CHANGEABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_ROLLING = "spec.updateStrategy.rollingUpdate"


def stateful_set_problems(spec: Content) -> Iterator[Problem]:
    """A strategy with options of another one, and a limit that allows no update."""
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" and rolling is not None:
        yield invalid(_ROLLING, rolling, "only allowed for updateStrategy 'RollingUpdate'")
    elif isinstance(rolling, dict) and (limit := rolling.get("maxUnavailable")) is not None:
        yield from limit_problems(limit, f"{_ROLLING}.maxUnavailable")
        if is_zero(limit):
            yield invalid(f"{_ROLLING}.maxUnavailable", limit, "cannot be 0")


def daemon_set_problems(spec: Content) -> Iterator[Problem]:
    """Pods are replaced before or after the old ones go, so one of both limits is 0 and the other is not."""
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" or not isinstance(rolling, dict):
        return
    unavailable, surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
    yield from limit_problems(unavailable, f"{_ROLLING}.maxUnavailable")
    yield from limit_problems(surge, f"{_ROLLING}.maxSurge")
    if not is_zero(unavailable) and not is_zero(surge):
        yield invalid(f"{_ROLLING}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif is_zero(unavailable) and is_zero(surge):
        yield required(f"{_ROLLING}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def stateful_set_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """Most of a StatefulSet stays as it was created."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    fields = (before.keys() | after.keys()) - set(_CHANGEABLE)
    if any((before.get(field) or None) != (after.get(field) or None) for field in fields):
        *others, last = (f"'{field}'" for field in _CHANGEABLE)
        allowed = f"{', '.join(others)} and {last}"
        yield forbidden("spec", f"updates to statefulset spec for fields other than {allowed} are forbidden")


def revision_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """The data of a ControllerRevision stay."""
    if old.get("data") != new.get("data"):
        yield invalid("data", new.get("data"), "field is immutable")
