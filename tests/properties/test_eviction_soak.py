"""Random arrivals for some virtual minutes, victims submitted again: nobody is driven out in circles."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.eviction import eviction_commit
from stromboli.model.status import Status
from stromboli.policy.presets import PRESETS
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.cluster_notation import Manifest, nodes, queues
from stromboli.simulator.job_manifests import Terms, job_manifests
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.policy_text import catalog_with, policy_of
from tests.properties.rebuild import kept_sums, rebuilt_sums

ARRIVALS, PATIENCE = 240, 3000
"""Seconds during which jobs come, and by when all must be done."""


class Soak:
    """A cluster that is always too small, and what became of every pod, by its name."""

    def __init__(self, seed: int, policy: str):
        self.chance = random.Random(seed)
        self.world = Rehearsal(now=1_800_000_000.0)
        for manifest in (
            *nodes("; ".join(f"n{number} cpu={4 + 2 * (number % 2)},pods=12" for number in range(5))),
            *queues("default; research weight=2; urgent; sure guarantee=cpu:3"),
        ):
            self.world.add(manifest)
        catalog = catalog_with((), ())
        self.scheduler = Scheduler(self.world, policy_of(catalog, "", "", policy), catalog)
        self.manifests: dict[str, Manifest] = {}
        self.length: dict[str, float] = {}
        self.ends: dict[str, float] = {}
        self.births: Counter[str] = Counter()
        self.starts = 0
        self.evictions: list[tuple[int, Evict]] = []
        self.jobs = 0

    def arrive(self) -> None:
        """A job, urgent or not, elastic or all of it at once; never larger than what its queue deserves at least.

        A gang that its queue may take only while others ask for little would wait for them, evictions or not.
        """
        chance, name = self.chance, f"job{self.jobs}"
        self.jobs += 1
        pods = chance.choice((1, 1, 2, 3, 4))
        terms: Terms = {
            "pods": pods,
            "minimum": chance.choice((1, pods)),
            "cpu": chance.choice((1, 2)) if pods <= 2 else 1,
            "priority": chance.choice((0, 0, 10, 100)),
            "queue": chance.choice(("default", "default", "research", "urgent", "sure")),
        }
        if chance.random() < 0.5:
            terms["min_resources"] = {"cpu": int(terms["cpu"]) * terms["minimum"]}
        self.world.add_job(name, **terms)
        for manifest in job_manifests(name, **terms)[1:]:
            key = f"default/{manifest['metadata']['name']}"
            self.manifests[key] = manifest
            self.length[key] = chance.choice((4, 12, 30, 60))

    def second(self, number: int) -> None:
        outcome = self.scheduler.cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        self.world.sync()
        for decision in outcome.decisions:
            if isinstance(decision, Bind):
                self.starts += 1
                self.ends[decision.key] = number + self.length[decision.key]
            elif isinstance(decision, Evict):
                self.evictions.append((number, decision))
                self.ends.pop(decision.key)
                self.submit_again(decision.key)
        for key in [key for key, end in self.ends.items() if end <= number]:
            del self.ends[key]
            self.world.finish(self.task(key))
        self.world.sleep(1.0)

    def submit_again(self, key: str) -> None:
        self.births[key] += 1
        manifest = self.manifests[key]
        meta = {**manifest["metadata"], "uid": f"{key}#{self.births[key]}"}
        self.world.add({**manifest, "metadata": meta})

    def task(self, key: str):  # type: ignore[no-untyped-def]
        return next(task for task in self.world.cluster.tasks.values() if task.key == key)

    def unfinished(self) -> list[str]:
        tasks = self.world.cluster.tasks.values()
        return [task.key for task in tasks if task.status is not Status.SUCCEEDED]

    def run(self) -> int:
        """Until everybody is done; gives how long it took."""
        for number in range(PATIENCE):
            if number < ARRIVALS and self.chance.random() < 0.3:
                self.arrive()
            self.second(number)
            if number % 20 == 0:
                assert kept_sums(self.world.cluster) == rebuilt_sums(self.world.cluster)
            if number > ARRIVALS and not self.unfinished():
                return number
        raise AssertionError(f"still there: {self.unfinished()}")

    # -- what must not be

    def circles(self) -> Iterator[str]:
        """Pods that were evicted again for a job that had gained by it before and lost nothing since."""
        gained: dict[tuple[str, str], int] = {}
        lost: dict[str, int] = defaultdict(lambda: -1)
        for number, eviction in self.evictions:
            before = gained.get((eviction.key, eviction.beneficiary))
            if before is not None and before < number and lost[eviction.beneficiary] < before:
                yield f"{eviction.key} left for {eviction.beneficiary} at {before} and at {number}"
            gained[eviction.key, eviction.beneficiary] = number
            lost[eviction.job] = number


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_pod_is_evicted_started_and_evicted_again_for_the_same_job(seed: int) -> None:
    soak = Soak(seed, PRESETS["full"])
    soak.run()
    assert list(soak.circles()) == []
    assert soak.evictions, "a soak without evictions shows nothing"
    assert len(soak.evictions) + len(soak.manifests) == soak.starts
    assert len(soak.evictions) <= len(soak.manifests)


@pytest.mark.slow
def test_without_holding_what_was_cleared_there_are_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that we know that the soak would see them."""
    monkeypatch.setattr(eviction_commit, "FIRST_WAIT", 0.0)
    text = re.sub("(holdFor|protectFor|minWaitTime): .*", r"\1: 0s", PRESETS["full"]).replace(
        "reserveMinimum: true", "reserveMinimum: false"
    )
    soak = Soak(9, text.replace("respectPriority: true", "respectPriority: false"))
    soak.run()
    assert list(soak.circles())
