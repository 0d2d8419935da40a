"""What holds of every eviction: somebody gains by it, nothing is overfilled, undoing leaves no trace, nobody is harmed
more than the policy allows, and who was evicted does not start it all over again.

CI looks at hundreds of worlds. `STROMBOLI_EXAMPLES=100 pytest -n auto tests/properties/test_eviction.py` is the nightly
profile: every invariant below then sees at least 10,000 worlds, counted over its policies (the count is checked by
`test_the_nightly_profile_sees_ten_thousand_worlds`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import ClassVar

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from stromboli.api import names
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.engine.catalog import Action
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Evict
from stromboli.engine.session import Session
from stromboli.engine.transaction import EvictionReason
from stromboli.extensions import load_catalog
from stromboli.model.amounts import less_equal, plus
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.reservations import Reservation
from stromboli.model.status import ALLOCATED_CLASS, Status
from stromboli.model.task import Task
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.testing import World
from stromboli.testing.policy_text import catalog_with
from tests.properties import naive
from tests.properties.living import LivingWorld, deeds, plain
from tests.properties.rebuild import fingerprint, kept_sums, rebuilt_sums
from tests.properties.strategies import contest, contests, examples, nativised

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")  # two worlds are many words

_changed = msgspec.structs.replace

STOCK = """
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
AWARE = """
configurations:
- name: preempt
  arguments: {enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 100}
"""
HOLDING = """
configurations:
- name: gangpreempt
  arguments: {holdFor: 2s, fewestVictims: true}
- name: gangreclaim
  arguments: {holdFor: 2s}
- name: backfill
  arguments: {enableBackFillNonBestEffortPods: true}
"""
POLICIES: dict[str, str] = {
    "stock": 'actions: "enqueue, allocate, backfill, reclaim, preempt"' + STOCK,
    "aware": 'actions: "enqueue, allocate, preempt, backfill"' + STOCK + AWARE,
    "gang pair": 'actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"' + STOCK + HOLDING,
    "capacity": 'actions: "enqueue, allocate, reclaim, preempt"' + STOCK.replace("proportion", "capacity"),
    **{name: PRESETS[name] for name in ("full", "fair-share", "high-priority")},
}
CATALOG = load_catalog()
GENTLE = ("full", "fair-share", "high-priority")
every_policy = pytest.mark.parametrize("policy", POLICIES)
gentle_policy = pytest.mark.parametrize("policy", GENTLE)


def make(policy: str) -> Callable[[], Engine]:
    return lambda: Engine(load_policy(POLICIES[policy], CATALOG), CATALOG)


class Contest(LivingWorld):
    """A living world in which victims linger for a cycle, if told to, and are submitted again under another uid."""

    def __init__(self, objects: Iterable[Object], policy: str, linger: bool = False, resubmit: bool = False):
        self.linger, self.resubmit = linger, resubmit
        self.leaving: list[Pod] = []
        self.reborn: dict[str, str] = {}
        """Who took the place of an evicted pod, by uid, and whose place it is."""
        super().__init__(objects, make(policy))

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster

    def cycle(self) -> Outcome:
        outcome = super().cycle()
        assert outcome.lost is None
        assert not outcome.session.failures
        assert kept_sums(self.cluster) == rebuilt_sums(self.cluster)
        return outcome

    def step(self) -> Outcome:
        gone, self.leaving = self.leaving, []
        for pod in gone:
            if self.objects.get((Pod, pod.key)) is pod:
                self._go(pod)
        return super().step()

    def _evict(self, decision: Evict) -> None:
        pod = self._pod(decision)
        if not self.linger:
            self._go(pod)
            return
        dying = _changed(
            pod, metadata=_changed(pod.metadata, deletion_timestamp=datetime.fromtimestamp(self.now, UTC))
        )
        self.put(dying)
        self.leaving.append(dying)

    def _go(self, pod: Pod) -> None:
        self.drop(pod)
        if self.resubmit:
            uid = f"{pod.metadata.uid}+"
            meta = _changed(pod.metadata, uid=uid, deletion_timestamp=None)
            spec = _changed(pod.spec, node_name="")
            status = _changed(pod.status, phase="Pending", conditions=(), nominated_node_name="")
            self.reborn[uid] = pod.metadata.uid
            self.put(_changed(pod, metadata=meta, spec=spec, status=status))

    _EFFECTS: ClassVar = {**LivingWorld._EFFECTS, Evict: _evict}


def evictions(outcome: Outcome) -> list[Evict]:
    return [decision for decision in outcome.decisions if isinstance(decision, Evict)]


def job_named(cluster: Cluster, key: str) -> Job:
    return next(job for job in cluster.jobs.values() if job.key == key)


# -- whatever the policy


@every_policy
@given(objects=contests())
@examples(20)
def test_nobody_goes_unless_its_beneficiary_gets_a_place(policy: str, objects: list[Object]) -> None:
    world = Contest(objects, policy)
    for _ in range(3):
        outcome = world.cycle()
        promised = {
            task.job.key
            for task in world.cluster.tasks.values()
            if task.job and task.key in outcome.pipelined
        }
        bound = {decision.job for decision in outcome.decisions if isinstance(decision, Bind)}
        for eviction in evictions(outcome):
            assert eviction.beneficiary in promised | bound
            assert eviction.action in ("preempt", "reclaim", "gangpreempt", "gangreclaim")
            assert eviction.chosen_by
            assert eviction.reason == eviction.action
        world.come_true(outcome.decisions)


@every_policy
@given(objects=contests(), linger=st.booleans())
@examples(20)
def test_no_node_ever_carries_more_than_it_has(policy: str, objects: list[Object], linger: bool) -> None:
    world = Contest(objects, policy, linger, resubmit=True)
    for _ in range(4):
        world.step()
        for node in world.cluster.columns.nodes:
            for dim, size in node.allocatable.items():
                assert naive.used(node, dim) <= size
            assert len([t for t in node.tasks if t.status is not Status.PIPELINED]) <= node.allocatable[2]


@every_policy
@given(objects=contests(), linger=st.booleans())
@examples(20)
def test_a_cycle_of_evictions_that_breaks_at_its_end_leaves_no_trace(
    policy: str, objects: list[Object], linger: bool
) -> None:
    def collapse(session: Session) -> None:
        if broken:
            raise OSError("the roof came down")

    broken = False
    catalog = catalog_with([], [Action("collapse", collapse)])
    first, rest = POLICIES[policy].split('"\n', 1)
    world = Contest(objects, policy, linger, resubmit=True)
    world.engine = Engine(load_policy(f'{first}, collapse"\n{rest}', catalog), catalog)
    for _ in range(2):
        world.cluster.settle()
        world.cluster.reservations.advance(world.now)
        before, broken = fingerprint(world.cluster), True
        outcome = LivingWorld.cycle(world)
        assert outcome.lost is not None
        assert fingerprint(world.cluster) == before
        assert kept_sums(world.cluster) == rebuilt_sums(world.cluster)
        broken = False
        world.step()


@given(objects=contests(), seed=st.integers(0, 2**32))
@examples(100)
def test_evictions_that_are_taken_back_restore_the_state_bit_by_bit(objects: list[Object], seed: int) -> None:
    """Evict, spare, promise and release at random, with room held for some; then leave without committing."""
    world, chance = World().add(*objects), random.Random(seed)
    cluster = world.cluster
    tasks, nodes = list(cluster.tasks.values()), cluster.columns.nodes
    assume(tasks)
    for task in chance.sample(tasks, min(3, len(tasks))):
        cluster.reservations.reserve(
            Reservation(task.uid, task.request, chance.choice(nodes), since=0.0, until=1e12)
        )
    before = fingerprint(cluster)
    session = world.session()
    with session.statement() as trial:
        for _ in range(chance.randrange(1, 10)):
            task = chance.choice(tasks)
            if task.status is Status.RELEASING:
                trial.restore(task)
            elif ALLOCATED_CLASS[task.status]:
                trial.evict(task, EvictionReason("test"))
            elif task.status is Status.PIPELINED:
                trial.release(task)
            elif task.status is Status.PENDING:
                trial.pipeline(task, chance.choice(nodes), evicted=True)
            assert kept_sums(cluster) == rebuilt_sums(cluster)
    assert fingerprint(cluster) == before
    assert not any(session.journal.is_nominated(task) for task in tasks)
    assert all(session.journal.eviction_of(task) == EvictionReason("") for task in tasks)


@every_policy
@given(objects=contests(), seed=st.integers(0, 2**32))
@examples(20)
def test_objects_in_any_order_give_the_same_evictions(policy: str, objects: list[Object], seed: int) -> None:
    straight = Contest(objects, policy, resubmit=True)
    mixed = Contest(random.Random(seed).sample(objects, len(objects)), policy, resubmit=True)
    for _ in range(3):
        first, second = straight.step(), mixed.step()
        assert evictions(first) == evictions(second)
        assert plain(first.decisions) == plain(second.decisions)
        assert first.pipelined == second.pipelined


@every_policy
@given(objects=contests(), later=contests(), linger=st.booleans(), seed=st.integers(0, 2**32))
@examples(20)
def test_an_engine_that_lives_on_evicts_like_one_made_for_the_cycle(
    policy: str, objects: list[Object], later: list[Object], linger: bool, seed: int
) -> None:
    old, new = (Contest(objects, policy, linger, resubmit=True) for _ in range(2))
    for number in range(4):
        new.engine = new.make_engine()
        first, second = old.step(), new.step()
        assert deeds(first) == deeds(second)
        for world in (old, new):
            world.surprise((pod for pod in later if isinstance(pod, Pod)), random.Random(seed + number))


# -- under our presets


class Before:
    """How things stood before a cycle: jobs by what they had, queues by what they held."""

    def __init__(self, cluster: Cluster):
        self.members = {job: _running(job) for job in cluster.jobs.values()}
        self.whole = {job for job in cluster.jobs.values() if _whole(job)}
        self.standing = {task.uid: (task, task.status, task.job) for task in cluster.tasks.values()}


def _running(job: Job) -> set[Task]:
    return {task for task in job.tasks.values() if ALLOCATED_CLASS[task.status]}


def _whole(job: Job) -> bool:
    """Whether a gang has its minimum, and that of each role and of each sub-group policy that it has to keep."""
    ready = _running(job) | set(job.by_status[Status.SUCCEEDED])
    return len(ready) >= job.minimum and job.roles_ready and job.sub_groups_ready


def cycles(policy: str, objects: list[Object], count: int = 3) -> Iterable[tuple[Contest, Before, Outcome]]:
    """Cycle by cycle, with how things stood before each."""
    world = Contest(objects, policy, resubmit=True)
    for _ in range(count):
        world.cluster.settle()
        before = Before(world.cluster)
        outcome = world.cycle()
        yield world, before, outcome
        world.come_true(outcome.decisions)


@gentle_policy
@given(objects=contests())
@examples(34)
def test_victims_are_of_lower_priority_or_of_another_queue_that_gives_back(
    policy: str, objects: list[Object]
) -> None:
    for world, before, outcome in cycles(policy, objects):
        for eviction in evictions(outcome):
            victim, status, job = before.standing[eviction.uid]
            winner = job_named(world.cluster, eviction.beneficiary)
            assert victim.preemptable
            assert victim.namespace != names.SYSTEM_NAMESPACE
            if eviction.action == "reclaim":
                assert status is Status.RUNNING
                assert job.queue is not winner.queue
                assert job.queue.reclaimable
            elif job is winner:
                assert any(victim.priority < task.priority for task in winner.tasks.values())
            else:
                assert status in (Status.RUNNING, Status.BOUND)
                assert job.queue is winner.queue
                assert job.priority < winner.priority


@gentle_policy
@given(objects=contests())
@examples(34)
def test_no_gang_is_left_below_its_minimum_unless_all_of_it_goes(policy: str, objects: list[Object]) -> None:
    for _, before, outcome in cycles(policy, objects):
        lost = {before.standing[eviction.uid][2] for eviction in evictions(outcome)}
        for job in lost:
            assert job not in before.whole or _whole(job) or not _running(job) & before.members[job]


@gentle_policy
@example(objects=nativised(contest(random.Random(4806), 3, 3), random.Random(4807)))
@example(objects=nativised(contest(random.Random(1329), 3, 2), random.Random(1330)))
@given(objects=contests())
@examples(34)
def test_no_queue_is_taken_below_its_guarantee(policy: str, objects: list[Object]) -> None:
    """By others: what a job takes from its own queue stays there."""
    for world, before, outcome in cycles(policy, objects):
        by_others, exchanged = set[Queue](), dict[Queue, dict[int, float]]()
        for eviction in evictions(outcome):
            victim, _, job = before.standing[eviction.uid]
            if job_named(world.cluster, eviction.beneficiary).queue is not job.queue:
                by_others.add(job.queue)
            else:
                exchanged[job.queue] = plus(exchanged.get(job.queue, {}), victim.shape.request)
        for queue in by_others:
            assert less_equal(queue.guarantee, plus(queue.allocated, exchanged.get(queue, {})))


@gentle_policy
@example(objects=contest(random.Random(3019), 3, 3, ("high", "low")))
@given(objects=contests(levels=("high", "low")))
@examples(34)
def test_a_victim_that_comes_back_drives_nobody_out(policy: str, objects: list[Object]) -> None:
    """Where there are two priorities, so that nobody is below a victim of preempt.

    Who lost a place to another queue may still take that of a lesser job in its own, as anybody of its priority may.
    """
    world = Contest(objects, policy, resubmit=True)
    for _ in range(4):
        returned = set(world.reborn)
        before = Before(world.cluster)
        outcome = world.step()
        for eviction in evictions(outcome):
            winner = job_named(world.cluster, eviction.beneficiary)
            if returned & {uid for uid, (_, status, job) in before.standing.items() if job is winner}:
                assert policy == "full"
                assert eviction.action == "preempt"
                assert before.standing[eviction.uid][2].priority < winner.priority


@gentle_policy
@given(objects=contests())
@examples(34)
def test_no_two_jobs_take_turns_in_evicting_each_other(policy: str, objects: list[Object]) -> None:
    world = Contest(objects, policy, resubmit=True)
    gained: set[tuple[str, str]] = set()
    for _ in range(6):
        for eviction in evictions(world.step()):
            if eviction.beneficiary != eviction.job:
                assert (eviction.job, eviction.beneficiary) not in gained
                gained.add((eviction.beneficiary, eviction.job))


def test_the_nightly_profile_sees_ten_thousand_worlds() -> None:
    assert min(20 * len(POLICIES), 100, 34 * len(GENTLE)) * 100 >= 10_000
