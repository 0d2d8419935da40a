"""Random worlds with ResourceClaims: no device twice, none lost, gangs whole, memory equal to a rebuild."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.engine.decisions import Bind, Decision
from stromboli.model.devices.device_ledger import DeviceLedger
from stromboli.model.devices.devices_in_use import DevicesInUse
from stromboli.model.status import Status
from stromboli.testing import World
from tests.device_manifests import allocated, claim, device_class, resource_slice, uses
from tests.number_of_examples import scaled

POLICY = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
"""

JOBS = st.tuples(
    st.just("job"),
    st.integers(1, 3),  # pods
    st.sampled_from(["own", "shared", "two"]),
    st.integers(1, 2),  # devices of a claim
    st.sampled_from([1, 10]),  # priority
)
STEPS = st.lists(
    st.one_of(
        JOBS,
        st.tuples(st.just("finish"), st.integers(0, 5)),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("fail"), st.integers(0, 3)),
        st.tuples(st.just("recreate"), st.integers(0, 5)),
        st.tuples(st.just("allocate"), st.integers(0, 5)),
        st.tuples(st.just("publish"), st.sampled_from("abc"), st.integers(0, 3)),
        st.just(("cycle",)),
        st.just(("restart",)),
    ),
    min_size=3,
    max_size=14,
)


def snapshot(ledger: DeviceLedger) -> Any:
    def of(in_use: DevicesInUse) -> Any:
        return {id: dict(use.whole) for id, use in in_use._pools.items()}

    used = {queue.name: dict(usage.amounts) for queue, usage in ledger.held.items() if usage.amounts}
    unused = sorted(use.key for use in ledger.unused)
    return of(ledger.in_use), of(ledger.staying), ledger.leaving, used, unused, sorted(ledger.claims)


def rebuilt(world: World) -> DeviceLedger:
    cluster = world.rehearsal.cluster
    ledger = DeviceLedger(cluster.objects, cluster.nodes)
    for each in cluster.objects.resource_claims.values():
        ledger.changed(each)
    for task in cluster.tasks.values():
        if task.node is not None and ledger.concerns(task.shape.spec):
            ledger.add(task, task.status, task.node)
    return ledger


class Story:
    """A world, and what happens in it."""

    def __init__(self) -> None:
        self.world = World(nodes="a cpu=6; b cpu=4; c cpu=2", policy=POLICY)
        self.world.add(
            device_class(), *(resource_slice(node, count) for node, count in {"a": 1, "b": 3, "c": 2}.items())
        )
        self.jobs = 0
        self.others = 0
        """Claims that somebody else made."""

    def job(self, pods: int, sharing: str, count: int, priority: int) -> None:
        name = f"j{self.jobs}"
        self.jobs += 1
        shared = f"{name}-all"
        if sharing != "own":
            self.world.add(claim(shared, count))
        self.world.job(
            name, pods=pods, cpu=1, priority=priority, spec=uses(shared) if sharing != "own" else {}
        )
        if sharing == "shared":
            return
        for place in range(pods):
            own = f"{name}-{place}"
            self.world.add(claim(own, count))
            named = [shared, own] if sharing == "two" else [own]
            spec = {"schedulerName": "volcano", "priorityClassName": f"priority-{priority}", **uses(*named)}
            containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
            meta = {"name": own, "annotations": {"scheduling.k8s.io/group-name": name}}
            self.world.add(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": meta,
                    "spec": {**spec, "containers": containers},
                }
            )

    def finish(self, which: int) -> None:
        self.world.rehearsal.sync()
        running = [task for task in self.world.cluster.tasks.values() if task.status is Status.RUNNING]
        if running:
            self.world.rehearsal.finish(running[which % len(running)])

    def delete(self, which: int) -> None:
        self.world.rehearsal.sync()
        tasks = list(self.world.cluster.tasks.values())
        if tasks:
            self.world.rehearsal.vanish(tasks[which % len(tasks)])

    def fail(self, which: int) -> None:
        """A cycle whose binds of a gang fail: nothing was written, and their tasks are pending again."""
        rehearsal = self.world.rehearsal
        self.cycle()
        decided: list[Decision] = rehearsal._decided
        binds = [decision for decision in decided if isinstance(decision, Bind)]
        if binds:
            job = binds[which % len(binds)].job
            failed = [bind for bind in binds if bind.job == job]
            rehearsal._decided = [decision for decision in decided if decision not in failed]
            for bind in failed:
                task = rehearsal.cluster.tasks[bind.uid]
                rehearsal.cluster.move(task, Status.PENDING, None)

    def recreate(self, which: int) -> None:
        """Somebody deletes a claim, finalizer and all, and creates another of its name."""
        claims = list(self.world.cluster.objects.resource_claims.values())
        if claims:
            self.others += 1
            old = claims[which % len(claims)]
            self.world.remove(old)
            new = claim(old.name, 1, uid=f"new-{self.others}")
            self.world.add(new)

    def allocate(self, which: int) -> None:
        """Another scheduler gives a device away that may be promised to one of our pods."""
        self.others += 1
        other = claim(f"other-{self.others}", uid=f"other-{self.others}")
        self.world.add(allocated(other, "b", f"g{which % 3}"))

    def publish(self, node: str, count: int) -> None:
        """A driver publishes other devices of a node, or none, whoever uses them."""
        made = resource_slice(node, count)
        (self.world.add if count else self.world.remove)(made)

    def cycle(self) -> None:
        result = self.world.step()
        bound = Counter(decision.job for decision in result.decisions if isinstance(decision, Bind))
        for job in self.world.rehearsal.cluster.jobs.values():
            assert not bound[job.key] or job.ready_count >= job.minimum

    def restart(self) -> None:
        """Another scheduler goes on with what the objects show."""
        self.world.rehearsal.sync()
        self.world._scheduler = None
        self.world.rehearsal.cluster.mark_all_dirty()

    def check(self) -> None:
        cluster = self.world.rehearsal.cluster
        assert snapshot(cluster.devices) == snapshot(rebuilt(self.world))
        held = Counter(
            (device.pool, device.device)
            for use in cluster.devices.claims.values()
            if use.counted is not None and not use.key.startswith("default/other-")
            for device in use.counted.allocation.devices.results
        )
        assert all(count == 1 for count in held.values())


@settings(max_examples=scaled(25), deadline=None)
@given(steps=STEPS)
@example(
    steps=[
        ("job", 2, "shared", 1, 1),
        ("cycle",),
        ("job", 1, "own", 2, 10),
        ("cycle",),
        ("cycle",),
        ("finish", 0),
    ]
)
@example(steps=[("job", 3, "two", 1, 1), ("fail", 0), ("cycle",), ("delete", 1), ("restart",), ("cycle",)])
@example(
    steps=[
        ("job", 2, "shared", 1, 1),
        ("fail", 0),
        ("allocate", 1),
        ("publish", "b", 1),
        ("cycle",),
        ("recreate", 0),
        ("publish", "b", 0),
        ("cycle",),
    ]
)
def test_devices_are_given_once_and_come_back(steps: list[Any]) -> None:
    story = Story()
    for name, *arguments in [*steps, ("cycle",)]:
        getattr(story, name)(*arguments)
        story.check()
    story.world.rehearsal.sync()
    for task in list(story.world.cluster.tasks.values()):
        story.world.rehearsal.vanish(task)
    for left in list(story.world.cluster.objects.resource_claims.values()):
        story.world.remove(left)
    story.check()
    assert story.world.cluster.devices.in_use._pools == {}
    assert story.world.cluster.devices.claims == {}
    assert story.world.cluster.devices.held == {}
