"""What is kept up about queues and jobs as they change equals what a look at all of them would give."""

from __future__ import annotations

import random
import re

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.engine.cycle import Engine, Outcome
from stromboli.model.amounts import Amounts, shift
from stromboli.model.cluster import Cluster
from stromboli.model.queue import lineage
from stromboli.policy.presets import PRESETS
from stromboli.scheduler.queue_metrics import PAUSE
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.testing.policy_text import catalog_with, policy_of
from tests.manifests import queue
from tests.properties.living import LivingWorld
from tests.properties.strategies import contest, examples, nativised
from tests.properties.test_jobs_that_wait import happen

_changed = msgspec.structs.replace
CATALOG = catalog_with((), ())
POLICY = policy_of(CATALOG, "", "", PRESETS["fair-share"])
COUNTED = re.compile(
    r"^(stromboli_queue_|volcano_queue_|volcano_unschedule_|volcano_job_share)\w+{.* .*$", re.M
)
AT_ONCE = re.compile(r"^\w+queue_(pending|oldest|allocated|request|inqueue)_.*$", re.M)
"""Series that a change in another queue does not change."""


def queues_happen(world: LivingWorld, chance: random.Random) -> None:
    """Queues come, go and move below others; jobs move to other queues."""
    names = ["root", "default", "heavy", "small", "late"]
    what = chance.choice(("put", "drop", "move", "nothing"))
    known = world.objects.get((Queue, name := chance.choice(names[1:])))
    if what == "put":
        world.put(queue(name, parent=chance.choice([*names, "", "unknown"])))
    elif what == "drop" and known is not None:
        world.drop(known)
    elif what == "move" and any(isinstance(each, PodGroup) for each in world.objects.values()):
        group = chance.choice([each for each in world.objects.values() if isinstance(each, PodGroup)])
        world.put(_changed(group, spec=_changed(group.spec, queue=name)))


def expected_totals(cluster: Cluster) -> dict[str, Amounts]:
    totals: dict[str, Amounts] = {each.name: {} for each in cluster.queues.values() if each.exists}
    for each in cluster.queues.values():
        for member in lineage(each, cluster.queues) if each.exists else ():
            if member.exists:
                shift(totals[member.name], each.allocated)
    return totals


def expected_series(outcome: Outcome, now: float, pattern: re.Pattern[str]) -> set[str]:
    """The series of a scheduler that looks at everything after this cycle for the first time."""
    metrics = SchedulerMetrics(lambda: now)
    outcome.session.changed.everything = True
    metrics.cycle(outcome)
    return set(series(metrics, pattern))


def series(metrics: SchedulerMetrics, pattern: re.Pattern[str]) -> list[str]:
    """Zeros of resources that were seen once are the same as nothing."""
    lines = (match.group() for match in pattern.finditer(metrics.text().decode()))
    return [line for line in lines if "scalar" not in line]


@given(seed=st.integers(0, 2**32))
@examples(20)
def test_figures_of_queues_follow_what_changes(seed: int) -> None:
    chance = random.Random(seed)
    objects = nativised(contest(chance, 3, 3), chance)
    world = LivingWorld(objects, lambda: Engine(POLICY, CATALOG))
    now = [1000.0]
    metrics = SchedulerMetrics(lambda: now[0])
    for _ in range(8):
        outcome = world.cycle()
        totals = world.engine._queue_totals
        cluster = world.intake.cluster
        now[0] += chance.choice((0.1, PAUSE))
        metrics.cycle(outcome)
        pattern = COUNTED if metrics._queues._updated == now[0] else AT_ONCE
        if not outcome.repeated:
            found = set(series(metrics, pattern))
            assert found == expected_series(outcome, now[0], pattern)
        if not outcome.repeated:
            totals.update(outcome.session)  # what was taken back when the session closed
            named = {each.name: totals.of(each) for each in cluster.queues.values() if each.exists}
            assert named == expected_totals(cluster)
        if chance.random() < 0.7:
            world.come_true(outcome.decisions)
        has_pods = any(isinstance(each, Pod) for each in world.objects.values())
        (happen if has_pods and chance.random() < 0.5 else queues_happen)(world, chance)
