"""What a Deployment may not say: strategies, limits and times that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.apps.rollout_limit_rules import is_zero, limit_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, unsupported

Content = dict[str, Any]

_STRATEGIES = ("Recreate", "RollingUpdate")
_ROLLING = "spec.strategy.rollingUpdate"


def deployment_problems(spec: Content) -> Iterator[Problem]:
    """The strategy, and a deadline that passes before any pod counts as available."""
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    if (type_ := strategy.get("type", "RollingUpdate")) not in _STRATEGIES:
        yield unsupported("spec.strategy.type", type_, _STRATEGIES)
    elif type_ == "Recreate" and "rollingUpdate" in strategy:
        yield forbidden(_ROLLING, "may not be specified when strategy `type` is 'Recreate'")
    elif isinstance(rolling, dict):
        yield from _rolling_problems(rolling)
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _rolling_problems(rolling: Content) -> Iterator[Problem]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    yield from limit_problems(unavailable, f"{_ROLLING}.maxUnavailable")
    yield from limit_problems(surge, f"{_ROLLING}.maxSurge", capped=False)
    if is_zero(unavailable) and is_zero(surge):
        yield invalid(f"{_ROLLING}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
