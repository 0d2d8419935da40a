"""What Deployments may not say about their rollouts."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.schemas.apps.deployment_rules import deployment_problems
from stromboli.api.schemas.apps.set_rules import stateful_set_problems


def rolling(unavailable: Any, surge: Any = 1) -> Any:
    limits = {"maxUnavailable": unavailable, "maxSurge": surge}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


@pytest.mark.parametrize("value", [0, 5, 2**31 - 1, "0%", "25%", "100%", "007%"])
def test_limits_are_numbers_or_percentages(value: Any) -> None:
    assert not list(deployment_problems(rolling(value)))


@pytest.mark.parametrize(
    "value",
    [-1, 2**31, 10**30, "", "%", "5", "-1%", "+1%", "1.5%", "5%%", "5%\n", "٣%", "101%", "9" * 5000 + "%"],
)
def test_other_limits_are_told(value: Any) -> None:
    (problem,) = deployment_problems(rolling(value))
    assert problem.field == "spec.strategy.rollingUpdate.maxUnavailable"
    assert len(problem.message) < 400


def test_more_pods_than_twice_as_many_may_be_created() -> None:
    assert not list(deployment_problems(rolling(0, "1000%")))
    assert not list(deployment_problems(rolling(0, "9" * 5000 + "%")))


def test_a_rollout_needs_room() -> None:
    (problem,) = deployment_problems(rolling("0%", 0))
    assert "may not be 0" in problem.message


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"strategy": {"type": "Recreate"}}, ""),
        ({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, "spec.strategy.rollingUpdate"),
        ({"strategy": {"type": "Strange"}}, "spec.strategy.type"),
        ({"progressDeadlineSeconds": 11, "minReadySeconds": 10}, ""),
        ({"progressDeadlineSeconds": 10, "minReadySeconds": 10}, "spec.progressDeadlineSeconds"),
    ],
)
def test_strategies_and_deadlines(spec: Any, field: str) -> None:
    assert [problem.field for problem in deployment_problems(spec)] == ([field] if field else [])


@pytest.mark.parametrize(("limit", "count"), [(None, 0), (1, 0), ("50%", 0), (0, 1), ("0%", 1), ("x", 1)])
def test_a_stateful_set_must_be_able_to_update_a_pod(limit: Any, count: int) -> None:
    spec = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}}
    assert len(list(stateful_set_problems(spec))) == count
