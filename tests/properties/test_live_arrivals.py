"""Random jobs that arrive in random order over time: what the presets promise of their evictions."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple, Unpack

import pytest

from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.simulator.cluster_notation import nodes, queues
from stromboli.simulator.job_manifests import Terms, job_manifests, priority_class
from tests.arrivals import CATALOG, Arrivals
from tests.manifests import decoded

PROTECTED = 300
ARRIVALS, PATIENCE = 60, 3600
"""Seconds in which jobs arrive, and by when all must have run."""
PRIORITIES = (0, 10, 100)
GPU = "nvidia.com/gpu"
JOBS = 30
LIMIT = "stromboli.sh/time-limit"
SOON = 30
"""Seconds within which a job starts for which pods were evicted; these have left after two."""


def standing(chance: random.Random, preset: str) -> Arrivals:
    """A cluster of a few nodes and of queues with random weights."""
    weights = [chance.choice((1, 1, 2, 3)) for _ in range(3)]
    manifests = [
        *nodes("; ".join(f"n{number} cpu={chance.choice((4, 8))},pods=20" for number in range(5))),
        *queues("; ".join(f"q{number} weight={weight}" for number, weight in enumerate(weights))),
        *(priority_class(priority) for priority in PRIORITIES),
    ]
    return Arrivals(
        load_policy(PRESETS[preset], CATALOG),
        [decoded(manifest) for manifest in manifests],
    )


def random_job(
    chance: random.Random,
    name: str,
    priorities: tuple[int, ...] = PRIORITIES,
    queues: tuple[str, ...] = ("q0", "q1", "q2"),
    gpus: tuple[int, ...] = (),
    limits: tuple[int, ...] = (),
) -> tuple[PodGroup, list[Pod]]:
    pods = chance.choice((1, 1, 2, 4))
    terms: Terms = {
        "pods": pods,
        "minimum": chance.choice((1, pods)),
        "cpu": chance.choice((1, 2)) if pods < 4 else 1,
        "priority": chance.choice(priorities),
        "queue": chance.choice(queues),
    }
    if gpus:
        terms["gpu"] = chance.choice(gpus)
    if limits and (limit := chance.choice(limits)):
        terms["annotations"] = {LIMIT: f"{limit}s"}
    terms["min_resources"] = {"cpu": int(terms["cpu"]) * terms["minimum"]}
    group, *rest = [decoded(manifest) for manifest in job_manifests(name, **terms)]
    assert isinstance(group, PodGroup)
    return group, [pod for pod in rest if isinstance(pod, Pod)]


def lived(seed: int, preset: str, runs_forever: bool) -> Arrivals:
    """Let jobs arrive, and wait until nothing more can happen."""
    chance = random.Random(seed)
    cluster = standing(chance, preset)
    arrivals = defaultdict(list)
    for number in range(JOBS):
        arrivals[chance.randrange(ARRIVALS)].append(random_job(chance, f"job{number}"))
    for second in range(ARRIVALS):
        for group, pods in arrivals[second]:
            cluster.arrive(group, pods)
            if not runs_forever:
                cluster.length[group.key] = chance.choice((20, 200, 700))
        cluster.pass_time()
    begin = cluster.world.now()
    while cluster.world.now() < begin + PATIENCE and cluster.unfinished():
        cluster.pass_time(10)
    return cluster


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("preset", ["full", "fair-share", "high-priority"])
@pytest.mark.parametrize("runs_forever", [True, False])
def test_evictions_respect_youth_and_priority_and_do_not_alternate(
    seed: int, preset: str, runs_forever: bool
) -> None:
    cluster = lived(seed, preset, runs_forever)
    took: dict[tuple[str, str], float] = {}
    for each in cluster.evictions:
        assert each.urgency > each.priority or each.age >= PROTECTED, each
        assert each.urgency >= each.priority, each
        if each.queue != each.taker:
            last = took.get((each.taker, each.queue), 0.0)
            assert each.urgency > each.priority or each.time >= last + PROTECTED, each
            took[each.queue, each.taker] = each.time
    if runs_forever:
        end = cluster.world.now() - PATIENCE / 2
        assert [each for each in cluster.evictions if each.time > end] == []
    else:
        assert cluster.unfinished() == []


def with_capacity(chance: random.Random, preset: str) -> Arrivals:
    """A cluster with GPUs, and queues that deserve random amounts, of some resources more than there is."""

    def deserved() -> str:
        return f"cpu:{chance.choice((6, 12, 20))},{GPU}:{chance.choice((2, 5, 9))}"

    manifests = [
        *nodes("; ".join(f"n{number} cpu=8,{GPU}={chance.choice((2, 4))},pods=20" for number in range(5))),
        *queues("; ".join(f"q{number} deserved={deserved()}" for number in range(3))),
        *map(priority_class, PRIORITIES),
    ]
    policy = PRESETS[preset].replace("  - name: proportion\n", "  - name: capacity\n")
    return Arrivals(load_policy(policy, CATALOG), map(decoded, manifests))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_queues_with_shares_of_several_resources_come_to_rest(seed: int, preset: str) -> None:
    """Some are below their share of one resource and above that of another."""
    chance = random.Random(seed)
    cluster = with_capacity(chance, preset)
    for number in range(JOBS):
        cluster.arrive(*random_job(chance, f"job{number}", PRIORITIES[:2], gpus=(0, 1, 2)))
        cluster.pass_time(2)
    begin = cluster.world.now()
    while cluster.world.now() < begin + 6 * PATIENCE:
        cluster.pass_time(60)
    assert [each for each in cluster.evictions if each.time > begin + PATIENCE] == []


class Cleared(NamedTuple):
    """Evictions for a job: when they were, and how many pods of it ran then."""

    time: float
    allocated: int


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("preset", ["full", "fair-share"])
@pytest.mark.parametrize("shares", [standing, with_capacity])
def test_a_job_starts_soon_after_pods_were_evicted_for_it_beside_promised_starts(
    seed: int, preset: str, shares: Callable[[random.Random, str], Arrivals]
) -> None:
    chance = random.Random(seed)
    cluster, arrivals = shares(chance, preset), defaultdict(list)
    for number in range(JOBS):
        arrived = random_job(chance, f"job{number}", limits=(0, 600, 1800, 7200))
        limit = int(arrived[0].metadata.annotations.get(LIMIT, "3600s").removesuffix("s"))
        cluster.length[arrived[0].key] = chance.choice((0.5, 0.95)) * limit
        arrivals[chance.randrange(ARRIVALS)].append(arrived)
    waiting: dict[str, Cleared] = {}
    for second in range(PATIENCE // 2):
        for group, pods in arrivals[second]:
            cluster.arrive(group, pods)
        before = len(cluster.evictions)
        cluster.pass_time(1 if second < ARRIVALS else 5)
        allocated = {job.key: job.allocated_count for job in cluster.jobs()}
        for each in cluster.evictions[before:]:
            waiting.setdefault(each.beneficiary, Cleared(each.time, allocated[each.beneficiary]))
        for key, cleared in list(waiting.items()):
            if allocated[key] > cleared.allocated:
                del waiting[key]
            assert cluster.world.now() <= cleared.time + SOON or key not in waiting, key
    assert cluster.evictions


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("preset", ["full", "high-priority"])
def test_an_urgent_job_still_gets_the_capacity_of_young_pods_of_its_queue(seed: int, preset: str) -> None:
    chance = random.Random(seed)
    cluster = standing(chance, preset)
    for number in range(JOBS):
        cluster.arrive(*random_job(chance, f"job{number}", PRIORITIES[:2], ("q0",)))
    for _ in range(10):
        cluster.pass_time()
    cluster.arrive(*random_job(chance, "urgent", PRIORITIES[-1:], ("q0",)))
    for _ in range(10):
        cluster.pass_time()
    assert "default/urgent" in [job.key for job in cluster.jobs() if job.allocated_count]


@pytest.mark.parametrize("preset", ["full", "fair-share"])
@pytest.mark.parametrize("priority", PRIORITIES[:2])
def test_a_queue_gets_its_share_where_all_pods_of_the_other_end_before_their_protection(
    preset: str, priority: int
) -> None:
    manifests = [*nodes("n1 cpu=8,pods=20; n2 cpu=8,pods=20"), *queues("busy; new")]
    manifests += map(priority_class, PRIORITIES)
    cluster = Arrivals(load_policy(PRESETS[preset], CATALOG), map(decoded, manifests))

    def arrive(name: str, **terms: Unpack[Terms]) -> None:
        group, *pods = map(decoded, job_manifests(name, **terms))
        assert isinstance(group, PodGroup)
        cluster.arrive(group, [pod for pod in pods if isinstance(pod, Pod)])

    def started() -> list[str]:
        return [job.key for job in cluster.jobs() if job.allocated_count]

    for second in range(300):
        if second % 5 == 0:
            arrive(f"short{second}", cpu=1, queue="busy", priority=priority, min_resources={"cpu": 1})
            cluster.length[f"default/short{second}"] = 100
        if second == 100:
            arrive("gang", pods=2, cpu=4, queue="new", min_resources={"cpu": 8})
        cluster.pass_time()
    assert "default/gang" in started()
    assert cluster.evictions == []


@pytest.mark.parametrize("preset", ["full", "fair-share"])
def test_shares_are_enforced_only_for_pods_that_have_waited(preset: str) -> None:
    """Demand of other queues may still be arriving when a pod is created."""
    manifests = [*nodes("n1 cpu=8,pods=20"), *queues("busy; new"), *map(priority_class, PRIORITIES)]
    cluster = Arrivals(load_policy(PRESETS[preset], CATALOG), map(decoded, manifests))
    for name, count, queue, priority in (("old", 8, "busy", 0), ("urgent", 4, "new", 10)):
        terms: Terms = {"pods": count, "minimum": 1, "cpu": 1, "queue": queue, "priority": priority}
        terms["min_resources"] = {"cpu": 1}
        group, *pods = map(decoded, job_manifests(name, **terms))
        assert isinstance(group, PodGroup)
        cluster.arrive(group, [pod for pod in pods if isinstance(pod, Pod)])
        arrival = cluster.world.now()
        for _ in range(20):
            cluster.pass_time()
    assert cluster.evictions
    assert min(each.time for each in cluster.evictions) >= arrival + 5
