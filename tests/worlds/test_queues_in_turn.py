"""Queues that are below their share of one resource and above that of another do not evict each other in turn."""

from __future__ import annotations

from typing import Unpack

import pytest

from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import Terms, job_manifests
from tests.arrivals import CATALOG, Arrivals
from tests.manifests import decoded

GPU = "nvidia.com/gpu"
DAY = 24 * 60


def standing(preset: str, cluster_nodes: str, cluster_queues: str) -> Arrivals:
    policy = PRESETS[preset].replace("  - name: proportion\n", "  - name: capacity\n")
    manifests = [*nodes(cluster_nodes), *queues(cluster_queues)]
    return Arrivals(load_policy(policy, CATALOG), map(decoded, manifests))


def arrive(cluster: Arrivals, name: str, **terms: Unpack[Terms]) -> None:
    group, *pods = map(decoded, job_manifests(name, **terms))
    assert isinstance(group, PodGroup)
    cluster.arrive(group, [pod for pod in pods if isinstance(pod, Pod)])
    cluster.pass_time()


def pass_minutes(cluster: Arrivals, minutes: int) -> None:
    for _ in range(minutes):
        cluster.pass_time(60)


def running(cluster: Arrivals) -> set[str]:
    return {job.name for job in cluster.jobs() if job.ready_count}


@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_a_queue_below_its_share_of_cpus_takes_no_gpus_beyond_its_share_of_those_in_turn(preset: str) -> None:
    """Five GPUs; both queues deserve two, and many more CPUs than they use."""
    cluster = standing(
        preset,
        f"n1 cpu=20,{GPU}=5,pods=20",
        f"left deserved=cpu:10,{GPU}:2; right deserved=cpu:10,{GPU}:2",
    )
    arrive(cluster, "left-1", queue="left", cpu=1, gpu=2)
    arrive(cluster, "left-2", queue="left", cpu=1, gpu=2)
    arrive(cluster, "right-1", queue="right", cpu=1, gpu=1)
    arrive(cluster, "right-2", queue="right", cpu=1, gpu=2)
    pass_minutes(cluster, DAY)
    assert [(each.job, each.beneficiary) for each in cluster.evictions] == [
        ("default/left-2", "default/right-2")
    ]
    assert running(cluster) == {"left-1", "right-1", "right-2"}


@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_queues_that_are_short_of_different_resources_each_get_nearer_to_their_shares(preset: str) -> None:
    """`left` is short of CPUs and above its share of GPUs, `right` the other way round."""
    cluster = standing(
        preset,
        f"n1 cpu=12,{GPU}=8,pods=20",
        f"left deserved=cpu:8,{GPU}:4; right deserved=cpu:4,{GPU}:4",
    )
    for number in range(4):
        arrive(cluster, f"left-{number}", queue="left", cpu=1, gpu=2)
    for number in range(8):
        arrive(cluster, f"right-{number}", queue="right", cpu=1)
    for number in range(2):
        arrive(cluster, f"right-gpu-{number}", queue="right", cpu=1, gpu=2)
    pass_minutes(cluster, DAY)
    left = running(cluster) & {f"left-{number}" for number in range(4)}
    assert {"right-gpu-0", "right-gpu-1"} <= running(cluster)
    assert len(left) == 2
    assert len(cluster.evictions) == 2


@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_two_gangs_larger_than_the_shares_of_their_queues_do_not_replace_each_other(preset: str) -> None:
    cluster = standing(
        preset,
        f"n1 cpu=20,{GPU}=4,pods=20",
        f"left deserved=cpu:10,{GPU}:2; right deserved=cpu:10,{GPU}:2",
    )
    arrive(cluster, "left", queue="left", pods=4, cpu=1, gpu=1)
    arrive(cluster, "right", queue="right", pods=4, cpu=1, gpu=1)
    pass_minutes(cluster, DAY)
    assert cluster.evictions == []
    arrive(cluster, "small", queue="right", pods=2, cpu=1, gpu=1)
    pass_minutes(cluster, 10)
    assert running(cluster) == {"small"}


@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_a_queue_passes_over_another_one_that_would_be_as_short_as_it_was(preset: str) -> None:
    """`near` would lose both of its GPUs, of which it deserves one; `far` has four more than it deserves."""
    cluster = standing(
        preset,
        f"n1 cpu=2,{GPU}=2,pods=20; n2 cpu=9,{GPU}=6,pods=20",
        f"taker deserved=cpu:4,{GPU}:1; near deserved=cpu:2,{GPU}:1; far deserved=cpu:5,{GPU}:2",
    )
    for number in range(3):
        arrive(cluster, f"far-{number}", queue="far", cpu=3, gpu=2)
    arrive(cluster, "near", queue="near", cpu=1, gpu=2)
    arrive(cluster, "taker", queue="taker", cpu=1, gpu=2)
    pass_minutes(cluster, DAY)
    assert [(each.queue, each.beneficiary) for each in cluster.evictions] == [("far", "default/taker")]
