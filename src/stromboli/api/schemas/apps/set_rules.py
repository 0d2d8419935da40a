"""Update strategies of StatefulSets and DaemonSets, and what an update of a set or a revision may not change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
    """A strategy with options of another one."""
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete" and strategy.get("rollingUpdate") is not None:
        yield invalid(_ROLLING, strategy["rollingUpdate"], "only allowed for updateStrategy 'RollingUpdate'")


def daemon_set_problems(spec: Content) -> Iterator[Problem]:
    """Pods are replaced before or after the old ones go, so one of both limits is 0 and the other is not."""
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "OnDelete" or not isinstance(rolling, dict):
        return
    surge = rolling.get("maxSurge", 0)
    unavailable, surges = _is_positive(rolling.get("maxUnavailable", 1)), _is_positive(surge)
    if unavailable and surges:
        yield invalid(f"{_ROLLING}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surges:
        yield required(f"{_ROLLING}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _is_positive(value: Any) -> bool:
    return value not in (0, "0%", None)


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
