"""Whatever happens to pods, nothing that they hold besides amounts is given twice or lost: volumes, devices, parts of
GPUs, CPUs.

Through trials that are undone, evictions, binds that fail before they are written or half way, decisions that are lost
and schedulers that begin anew. What ledgers count in memory is what one counts that is made of the objects.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.decisions import Bind
from tests.properties.grant_worlds import KINDS, GrantWorld, cluster_objects, job_objects
from tests.properties.held_grants import given_twice, ledger_sums
from tests.properties.rebuild import kept_sums, rebuilt_sums
from tests.properties.strategies import examples

FATES = ("written", "written", "written", "failed", "half written", "lost")
"""What becomes of the binds of a cycle."""


class Story:
    """Some cycles of a random world, checked after each step; the log is what was decided."""

    def __init__(self, seed: int):
        self.chance = random.Random(seed)
        self.world = GrantWorld(cluster_objects(self.chance))
        self.log: list[Any] = []
        self.jobs = 0
        self.palette = self.chance.sample(KINDS, 2)
        """What pods ask for: two kinds, so that they are in each other's way."""

    def run(self, steps: int = 5) -> list[Any]:
        for _ in range(2):
            self.submit()
        for _ in range(steps):
            self.step()
        self.end()
        return self.log

    def submit(self) -> None:
        urgency = "low" if self.jobs < 2 else self.chance.choice(("low", "high"))
        for manifest in job_objects(f"job{self.jobs}", self.chance, self.palette, urgency):
            self.world.put(manifest)
        self.jobs += 1

    def step(self) -> None:
        what = self.chance.random()
        if what < 0.6:
            self.submit()
        elif what < 0.7:
            self.world.restart()
        elif what < 0.9 and (pods := list(self.world.pods())):
            gone = self.chance.choice(pods)
            (self.world.delete if what < 0.8 else self.world.terminate)(gone)
        self.check()
        self.cycle()
        self.check()
        if self.chance.random() < 0.7:
            self.world.bury()

    def cycle(self) -> None:
        outcome = self.world.cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        self.log.append([repr(decision) for decision in outcome.decisions])
        assert given_twice(self.world.intake.cluster) == []
        binds = [decision for decision in outcome.decisions if isinstance(decision, Bind)]
        others = [decision for decision in outcome.decisions if not isinstance(decision, Bind)]
        self.expect_whole_gangs(binds)
        fate = self.chance.choice(FATES)
        self.world.come_true(others)
        if fate == "written":
            self.world.come_true(binds)
        elif fate == "failed":
            self.world.fail(binds)
        else:
            for bind in binds[: len(binds) // 2] if fate == "half written" else ():
                self.world.write_grants(bind)
            self.world.restart()

    def expect_whole_gangs(self, binds: list[Bind]) -> None:
        jobs = {job.key: job for job in self.world.intake.cluster.jobs.values()}
        for key in {bind.job for bind in binds}:
            assert jobs[key].ready_count >= jobs[key].minimum, f"{key} starts in part"

    def check(self) -> None:
        """What is in memory is what another scheduler would make of the objects, and nobody shares what is whole."""
        cluster = self.world.intake.cluster
        objects = list(self.world.objects.values())
        self.chance.shuffle(objects)
        rebuilt = self.world.rebuilt_intake(objects).cluster
        for each in (cluster, rebuilt):
            each.settle()
        assert ledger_sums(cluster) == ledger_sums(rebuilt)
        assert given_twice(cluster) == []
        assert kept_sums(cluster) == rebuilt_sums(cluster)

    def end(self) -> None:
        """Once all pods are gone, all is free, but for volumes, which their claims keep."""
        for pod in list(self.world.pods()):
            self.world.delete(pod)
        for _ in range(3):  # claims that were allocated for a lost bind are released by the next cycles
            self.world.come_true(self.world.cycle().decisions)
        self.check()
        sums = ledger_sums(self.world.intake.cluster)
        assert not sums["DeviceLedger"]["devices"]
        assert not sums["VolumeLedger"]["promises"]
        assert not any(
            any(now["sharers"]) for models in sums["CardLedger"].values() for now, _ in models.values()
        )
        free = self.world.intake.cluster.cpus.nodes
        assert sums["CpuLedger"] == {node: cpus.allocatable for node, cpus in free.items()}


@given(st.integers(0, 2**32))
@examples(25)
def test_nothing_is_given_twice_or_lost(seed: int) -> None:
    Story(seed).run()


@given(st.integers(0, 2**32))
@examples(4)
def test_the_same_story_is_told_twice(seed: int) -> None:
    assert Story(seed).run() == Story(seed).run()
