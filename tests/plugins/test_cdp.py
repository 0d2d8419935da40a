"""Cool-down protection: a task that was placed a moment ago is spared, for as long as its pod asks."""

from typing import Any

import pytest

from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import Manifest, group, node, pod, policy

KEY = "volcano.sh/cooldown-time"
SCHEDULED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-01T11:00:00Z"}
AN_HOUR = 3600.0  # since then, at NOON


def _placed(
    name: str, conditions: list[dict[str, str]], labels: dict[str, str], annotations: dict[str, str]
) -> Manifest:
    manifest = pod(name, "j", on="n1", annotations=annotations, cpu=0)
    manifest["metadata"]["labels"] = labels
    manifest["status"]["conditions"] = conditions
    return manifest


def _spared(now: float = NOON, phase: str = "Running", **more: Any) -> bool:
    """Whether a pod with these marks, scheduled an hour ago unless it says otherwise, is spared."""
    manifest = _placed(
        "p", more.get("conditions", [SCHEDULED]), more.get("labels", {}), more.get("annotations", {})
    )
    manifest["status"]["phase"] = phase
    world = World(policy=policy("allocate", "cdp")).add(node("n1", cpu="4"), group("j", 1), manifest)
    world.step(now=now)
    plugin, task = world.plugin("cdp"), world.task("p")
    answers = [ask(task, [task]) == [] for ask in (plugin.preemptable, plugin.reclaimable)]
    assert answers[0] == answers[1]
    return answers[0]


def test_a_pod_is_spared_from_its_scheduling_until_its_time_is_over() -> None:
    assert _spared(labels={KEY: "1h1s"})
    assert not _spared(labels={KEY: "1h"})
    assert not _spared(labels={KEY: "1h1s"}, now=NOON + 1)


def test_the_label_counts_before_the_annotation() -> None:
    assert _spared(annotations={KEY: "2h"})
    assert not _spared(labels={KEY: "1s"}, annotations={KEY: "2h"})
    assert not _spared(labels={KEY: "soon"}, annotations={KEY: "2h"})


@pytest.mark.parametrize("text", ["", "soon", "12", "-2h"])
def test_who_asks_for_no_time_or_none_that_can_be_read_is_not_spared(text: str) -> None:
    assert not _spared(labels={KEY: text})


def test_only_a_running_pod_that_is_known_to_be_scheduled_is_spared() -> None:
    asks = {KEY: "2h"}
    unscheduled = {**SCHEDULED, "status": "False"}
    assert not _spared(labels=asks, phase="Pending")
    assert not _spared(labels=asks, conditions=[])
    assert not _spared(labels=asks, conditions=[unscheduled])
    assert not _spared(labels=asks, conditions=[{"type": "PodScheduled", "status": "True"}])
    assert _spared(labels=asks, conditions=[unscheduled, SCHEDULED])


def test_the_first_condition_that_calls_it_scheduled_counts() -> None:
    earlier = {**SCHEDULED, "lastTransitionTime": "2026-11-01T10:00:00Z"}
    assert not _spared(labels={KEY: "90m"}, conditions=[earlier, SCHEDULED])
    assert _spared(labels={KEY: "90m"}, conditions=[SCHEDULED, earlier])
