"""The world `eviction-churn.json`: jobs that arrive one after another do not evict each other in turn."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from stromboli.api.manifests.manifest_reader import open_paths
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.policy.policy import Policy, load_policy
from stromboli.simulator.cluster_loading import load
from stromboli.simulator.cycle_plan import make_plan
from stromboli.simulator.expansion.workload_expansion import WorkloadExpansion
from stromboli.testing.world import NOON
from tests.arrivals import CATALOG, GROUP, Arrivals, Eviction
from tests.worlds.planning import WORLDS, policy_named

PATHS = [str(WORLDS / name) for name in ("eviction-churn.json", "eviction-churn-nodes.json")]
PRESETS = ("preset:full", "preset:fair-share", "preset:high-priority")
RATES = (100, 18, 5, 1)
"""Jobs that arrive in a second."""
PROTECTED = 300
"""Seconds for which the presets protect a pod."""


def like_volcano() -> Policy:
    return load_policy((WORLDS / "eviction-churn-policy.yaml").read_text(), CATALOG, "like Volcano")


def arriving(
    policy: Policy, rate: float, seconds: int, seed: int | None = None, jobs: int | None = None
) -> list[Eviction]:
    """Let jobs of the world arrive, in the order of the file or a random one; return all evictions."""
    manifests = open_paths(PATHS)
    objects = [item.object for item in WorkloadExpansion(manifests, NOON).expand(manifests.items(once=True))]
    groups = [obj for obj in objects if isinstance(obj, PodGroup)]
    if seed is not None:
        random.Random(seed).shuffle(groups)
    pods: dict[str, list[Pod]] = defaultdict(list)
    for obj in objects:
        if isinstance(obj, Pod):
            pods[f"{obj.namespace}/{obj.metadata.annotations[GROUP]}"].append(obj)
    cluster = Arrivals(policy, [obj for obj in objects if not isinstance(obj, Pod | PodGroup)])
    for second in range(seconds):
        for group in groups[:jobs][int(second * rate) : int((second + 1) * rate)]:
            cluster.arrive(group, pods[group.key])
        cluster.pass_time()
    return cluster.evictions


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("preset", PRESETS)
def test_young_pods_are_evicted_for_higher_priorities_only(preset: str, rate: int) -> None:
    evictions = arriving(policy_named(preset), rate, 400)
    assert [each for each in evictions if each.age < PROTECTED and each.priority >= each.urgency] == []
    assert [each for each in evictions if each.priority > each.urgency] == []
    assert len({each.pod for each in evictions}) == len(evictions) < 20


@pytest.mark.parametrize("rate", RATES)
def test_evictions_like_volcano_s_die_down_within_ten_cycles_of_the_last_arrival(rate: int) -> None:
    evictions = arriving(like_volcano(), rate, 300)
    last_arrival = NOON + 37 / rate
    assert [each for each in evictions if each.time > last_arrival + 10] == []


@pytest.mark.parametrize("jobs", [28, 30])
def test_evictions_like_volcano_s_die_down_after_slow_arrivals_in_another_order(jobs: int) -> None:
    """`etl-2` reclaims capacity that the victims take back as soon as they return."""
    evictions = arriving(like_volcano(), 0.5, 160, seed=0, jobs=jobs)
    assert evictions
    assert [each for each in evictions if each.time > NOON + 2 * jobs + 10] == []


@pytest.mark.parametrize("preset", ["like Volcano", *PRESETS])
def test_evictions_end_where_all_jobs_exist_from_the_start(preset: str) -> None:
    loaded = load(lambda: open_paths(PATHS), now=NOON)
    policy = like_volcano() if preset == "like Volcano" else policy_named(preset)
    plan = make_plan(loaded, policy, CATALOG, NOON, 20)
    assert [report.evicted for report in plan.cycles[10:]] == [[]] * 10
