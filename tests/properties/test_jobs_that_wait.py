"""Who found no room is not tried again for nothing: the decisions are those of trying everybody in every cycle."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeVar

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import LabelSelector, Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import (
    HyperNode,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
    PodGroup,
    PriorityClass,
    Queue,
)
from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Decision, PodGroupStatus
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.engine.plugin import Invalid, Plugin
from stromboli.engine.waiting.capacity_waits import CapacityWaits
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.presets import PRESETS
from stromboli.testing.policy_text import catalog_with, policy_of, policy_text
from tests.manifests import EPOCH, decoded, node, quota
from tests.properties.living import LivingWorld, deeds, started_at
from tests.properties.strategies import contest, examples, nativised
from tests.properties.topology_worlds import shaped

Kind = TypeVar("Kind", bound=Object)
_changed = msgspec.structs.replace


class Moody(Plugin):
    """A user's plugin that declares nothing: it reads names, what runs elsewhere, and the time."""

    name = "moody"

    def job_valid(self, job: Job) -> Invalid | None:
        running = sum(each.allocated_count for each in self.session.jobs())
        return Invalid("Moody", "an odd number of pods runs") if job.name == "new0" and running % 2 else None

    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        open_now = nodes.all() if int(self.session.now) % 3 else nodes.zeros() > 0
        yield Check(open_now if task.job and task.job.name == "new1" else nodes.all(), "node(s) are moody")


class Late(Plugin):
    """A user's plugin that waits for a moment, and says so."""

    name = "late"

    def job_valid(self, job: Job) -> Invalid | None:
        come = self.session.has_come(job.created + 1030) or job.name != "new0"
        return None if come else Invalid("Late", "it is not time yet")


EVICTING = "enqueue, allocate, preempt, reclaim, backfill"
GANG_EVICTING = "enqueue, allocate, gangpreempt, gangreclaim, backfill"
POLICIES = {
    "stock": PRESETS["default"],
    "capacity": policy_text("enqueue, allocate, backfill", "priority gang | capacity predicates nodeorder"),
    "evicting": policy_text(EVICTING, "priority gang conformance | drf predicates proportion nodeorder pdb"),
    "evicting by capacity": policy_text(EVICTING, "priority gang | capacity predicates"),
    "gangs evicting": policy_text(GANG_EVICTING, "priority gang | proportion predicates resourcequota"),
    "consolidating": policy_text(
        "enqueue, allocate, consolidate, shuffle, backfill", "priority gang sla | predicates binpack cdp"
    ),
    "high priority": PRESETS["high-priority"],
    "fair share": PRESETS["fair-share"],
    "within switches": policy_text(EVICTING, "priority gang | predicates proportion network-topology-aware"),
    "gangs within switches": policy_text(
        GANG_EVICTING, "priority gang | predicates capacity network-topology-aware"
    ),
    "backfill": policy_text("enqueue, allocate, backfill", "priority gang | predicates backfill-reservation"),
    "backfill evicting": policy_text(
        EVICTING, "priority gang | predicates proportion drf backfill-reservation"
    ),
    "conservative backfill": policy_text(
        "enqueue, allocate, backfill", "priority gang | predicates proportion backfill-reservation"
    )
    + "    arguments: {mode: conservative}\n",
    "backfill within switches": policy_text(
        "enqueue, allocate, backfill",
        "priority gang | predicates network-topology-aware backfill-reservation",
    ),
    "strict order": policy_text("allocate", "priority gang | predicates capacity backfill-reservation")
    + "    arguments: {mode: none}\n",
    "own plugin": policy_text(EVICTING, "priority gang moody | predicates proportion"),
    "own moments": policy_text(EVICTING, "priority gang late | predicates proportion"),
}


@cache
def catalog() -> Catalog:
    return catalog_with((Moody, Late), ())


def engine(policy: str, skips: bool) -> Engine:
    return Engine(policy_of(catalog(), "", "", POLICIES[policy]), catalog(), skips=skips)


def happen(world: LivingWorld, chance: random.Random) -> None:
    """Something happens, or nothing; the same for worlds in the same state."""
    what = chance.choice(
        (*["nothing"] * 3, "time", "pod", "node", "queue", "group", "quota", "budget", "switch")
    )
    if what == "time":
        world.now += chance.choice((5, 60, 400))
    elif what == "quota":
        world.put(quota("q", {"cpu": str(chance.randint(1, 9))}, {"cpu": "1"}))
    elif what == "budget":
        _budget_happens(world, chance)
    elif what == "switch":
        _switch_happens(world, chance)
    elif what == "pod":
        _pod_happens(world, chance)
    elif what == "node":
        _node_happens(world, chance)
    elif what == "queue":
        queue = _some(world, Queue, chance)
        capability = chance.choice(({}, {"cpu": "3"}, {"cpu": "9"}))
        world.put(_changed(queue, spec=_changed(queue.spec, capability=capability)))
    elif what == "group":
        _group_happens(world, chance)


def _some(world: LivingWorld, kind: type[Kind], chance: random.Random) -> Kind:
    known = [obj for obj in world.objects.values() if isinstance(obj, kind)]
    return chance.choice(sorted(known, key=lambda obj: obj.key))


def _pod_happens(world: LivingWorld, chance: random.Random) -> None:
    pod = _some(world, Pod, chance)
    if chance.random() < 0.4:
        world.drop(pod)
    elif pod.spec.node_name:
        phase = chance.choice(("Succeeded", "Failed", "Running"))
        world.put(_changed(pod, status=_changed(pod.status, phase=phase)))
    else:
        twin = f"{pod.metadata.name}-{len(world.objects)}"
        world.put(_changed(pod, metadata=_changed(pod.metadata, name=twin, uid=twin)))


def _node_happens(world: LivingWorld, chance: random.Random) -> None:
    some = _some(world, Node, chance)
    what = chance.choice(("cordon", "grow", "shrink", "come"))
    if what == "cordon":
        world.put(_changed(some, spec=_changed(some.spec, unschedulable=not some.spec.unschedulable)))
    elif what == "come":
        world.put(decoded(node(f"late{chance.randint(0, 2)}", cpu=chance.choice((1, 2)), memory="4Gi")))
    else:
        sizes = {**some.status.allocatable, "cpu": "6" if what == "grow" else "1"}
        world.put(_changed(some, status=_changed(some.status, allocatable=sizes)))


def _budget_happens(world: LivingWorld, chance: random.Random) -> None:
    """A budget for the pods of a rack comes, goes, or lets more or fewer of them be evicted."""
    spec = PodDisruptionBudgetSpec(LabelSelector({"rack": chance.choice("12")}))
    status = PodDisruptionBudgetStatus(disruptions_allowed=chance.randint(0, 2))
    budget = PodDisruptionBudget(ObjectMeta("rack", "default"), spec, status)
    known = world.objects.get((PodDisruptionBudget, budget.key))
    if known is not None and chance.random() < 0.3:
        world.drop(known)
    else:
        world.put(budget)


def _switch_happens(world: LivingWorld, chance: random.Random) -> None:
    """Two HyperNodes swap their members, if there are any."""
    switches = [obj for obj in world.objects.values() if isinstance(obj, HyperNode) and obj.spec.tier == 1]
    if len(switches) > 1:
        first, second = chance.sample(sorted(switches, key=lambda obj: obj.key), 2)
        world.put(_changed(first, spec=second.spec))
        world.put(_changed(second, spec=first.spec))


def _group_happens(world: LivingWorld, chance: random.Random) -> None:
    classes = [obj.key for obj in world.objects.values() if isinstance(obj, PriorityClass)]
    groups = [obj for obj in world.objects.values() if isinstance(obj, PodGroup)]
    if not groups:
        return
    group = chance.choice(sorted(groups, key=lambda obj: obj.key))
    changes = {"priority_class_name": chance.choice(sorted(classes)), "min_member": chance.randint(0, 3)}
    field = chance.choice(sorted(changes))
    world.put(_changed(group, spec=_changed(group.spec, **{field: changes[field]})))


def limited(objects: Iterable[Object], chance: random.Random) -> Iterator[Object]:
    """Pods with time limits, most of them."""
    for obj in objects:
        limit = chance.choice(("", "20s", "60s", "7m", "1h"))
        if isinstance(obj, Pod) and limit:
            annotations = {**obj.metadata.annotations, names.TIME_LIMIT: limit}
            yield _changed(obj, metadata=_changed(obj.metadata, annotations=annotations))
        else:
            yield obj


def running_since(objects: Iterable[Object], chance: random.Random) -> Iterator[Object]:
    """The same, with starts of running pods, in the minute before the first cycle."""
    for obj in objects:
        if isinstance(obj, Pod) and obj.status.phase == "Running":
            yield started_at(obj, EPOCH + 1000 - chance.choice((0, 5, 19, 58)))
        else:
            yield obj


def acts(world: LivingWorld, outcome: Outcome) -> object:
    """What a cycle does: decisions, who is held for room, phases, and who waits."""
    jobs = sorted(world.intake.cluster.jobs.values(), key=lambda job: job.id)
    waits = [job.key for job in jobs if outcome.explain(job)]
    return (
        deeds(outcome),
        waits,
        [(job.key, job.phase, job.written) for job in jobs],
    )


def forgotten(world: LivingWorld) -> list[Job]:
    """The jobs with work to do, or to be reported, that the next cycle neither passes over knowingly nor looks at."""
    waits, cluster = world.engine._waits, world.intake.cluster
    if not isinstance(waits, CapacityWaits) or waits._others is None:
        return []  # all are looked at
    looked_at = {**waits._others, **cluster.dirty.jobs}
    jobs = {**cluster.backlog, **cluster.unsettled}
    return [job for job in jobs if job not in waits._of_job and job not in looked_at]


@pytest.mark.parametrize("policy", POLICIES)
@given(seed=st.integers(0, 2**32), started=st.booleans())
@example(seed=1328, started=False)  # preempt holds room for one task of a gang that cannot start with it
@example(seed=370255, started=False)
@example(seed=1104256348, started=False)  # a score reads what was evicted in its session
@example(
    seed=7776538, started=False
)  # a task is held for capacity being freed, behind a job that no node could take
@example(
    seed=2931992880, started=False
)  # the places of a reservation are tried one cycle after they were found
@example(seed=372501218, started=False)  # a promise is all that is new about a gang of which a part runs
@example(seed=10889, started=False)  # room comes for two jobs that run and have more pods than they need
@example(seed=1991666754, started=False)
@example(
    seed=3419571936, started=False
)  # the time of a reservation comes, and the queue of its job may not take more
@example(
    seed=3570422160, started=False
)  # a promised job is held for capacity being freed, and keeps its turn
@example(seed=808182, started=False)  # a parked job starts, and one more of its pods than it needs fits
@example(seed=3481758640, started=False)  # the phase of a job is written later than it was decided
@example(seed=3506011805, started=False)  # a pod that is held would delay a promised start, a second later
@examples(8)
def test_skipping_who_cannot_be_helped_decides_as_trying_everybody_does(
    policy: str, seed: int, started: bool
) -> None:
    """`started`: the start of running pods is known, as it usually is."""
    objects = nativised(contest(random.Random(seed), 3, 3), random.Random(seed + 1))
    if "network-topology-aware" in POLICIES[policy]:
        objects = shaped(objects, random.Random(seed + 2))
    if "backfill-reservation" in POLICIES[policy]:
        objects = list(limited(objects, random.Random(seed + 3)))
    if started:
        objects = list(running_since(objects, random.Random(seed + 4)))
    skipping, trying = (
        LivingWorld(objects, lambda skips=skips: engine(policy, skips), started) for skips in (True, False)
    )
    unwritten: tuple[list[Decision], list[Decision]] = ([], [])
    for number in range(10):
        outcomes = skipping.cycle(), trying.cycle()
        assert acts(skipping, outcomes[0]) == acts(trying, outcomes[1])
        assert not forgotten(skipping)
        assert not forgotten(trying)
        for world, outcome, earlier in zip((skipping, trying), outcomes, unwritten, strict=True):
            if (seed >> number) % 4:
                world.come_true([*earlier, *outcome.decisions])
                earlier.clear()
            else:  # phases are written later: jobs that are not tried are not reported again
                earlier += [each for each in outcome.decisions if isinstance(each, PodGroupStatus)]
            happen(world, random.Random(seed + number))
