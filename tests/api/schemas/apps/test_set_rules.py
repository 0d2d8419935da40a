"""What StatefulSets, DaemonSets and revisions may not say or change."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.schemas.apps.set_rules import (
    daemon_set_problems,
    revision_update_problems,
    stateful_set_problems,
    stateful_set_update_problems,
)


def strategy(type_: str, **rolling: Any) -> Any:
    return {"updateStrategy": {"type": type_, **({"rollingUpdate": rolling} if rolling else {})}}


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 0),
        (strategy("RollingUpdate"), 0),
        (strategy("OnDelete", maxSurge=1), 0),
        (strategy("RollingUpdate", maxUnavailable="10%", maxSurge=0), 0),
        (strategy("RollingUpdate", maxUnavailable=0, maxSurge="10%"), 0),
        (strategy("RollingUpdate", maxSurge=1), 1),
        (strategy("RollingUpdate", maxUnavailable="0%"), 1),
    ],
)
def test_one_limit_of_a_daemon_set_is_0(spec: Any, count: int) -> None:
    assert len(list(daemon_set_problems(spec))) == count


def test_only_rolling_updates_have_options() -> None:
    assert not list(stateful_set_problems(strategy("OnDelete")))
    assert list(stateful_set_problems(strategy("OnDelete", partition=1)))


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        ({"replicas": 1}, {"replicas": 2, "minReadySeconds": 3}, True),
        ({}, {"serviceName": ""}, True),
        ({"serviceName": "a"}, {"serviceName": "b"}, False),
        ({"selector": {"matchLabels": {"a": "b"}}}, {"selector": {"matchLabels": {}}}, False),
        ({}, {"volumeClaimTemplates": [{}]}, False),
    ],
)
def test_most_of_a_stateful_set_stays(before: Any, after: Any, allowed: bool) -> None:
    problems = list(stateful_set_update_problems({"spec": before}, {"spec": after}))
    assert problems == [] if allowed else len(problems) == 1


def test_the_data_of_a_revision_stay() -> None:
    assert not list(
        revision_update_problems({"data": {"a": 1}, "revision": 1}, {"data": {"a": 1}, "revision": 2})
    )
    assert list(revision_update_problems({"data": {"a": 1}}, {"data": {"a": 2}}))
