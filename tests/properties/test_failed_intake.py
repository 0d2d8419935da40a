"""A change that fails half-way, wherever that is, leaves the model as if it had never come."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import stromboli.model
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake, IntakeFailed
from stromboli.model.reservations import Reservation
from tests.properties.grant_worlds import KINDS, GrantWorld, cluster_objects, job_objects
from tests.properties.held_grants import ledger_sums
from tests.properties.living import LivingWorld, engine, plain
from tests.properties.rebuild import facts, kept_sums, rebuilt_sums
from tests.properties.strategies import examples, worlds
from tests.properties.test_bookkeeping import watch

MODEL = str(Path(stromboli.model.__file__).parent)
CHANGING = {"_put", "_drop_pod", "_drop_group", "_drop_lookup_object", "drop_node", "drop_queue"}
"""Functions of the model before which nothing has changed."""


class Injected(Exception):
    """Raised in the middle of the model."""


@contextmanager
def failing_at(line: int) -> Iterator[list[str]]:
    """Raise at this line, counted from the first that may change the model. Where that was is in the list."""
    left, before, raised, counts = line, sys.gettrace(), list[str](), False

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left, counts
        code = frame.f_code
        counts |= code.co_name in CHANGING
        if not counts or not code.co_filename.startswith(MODEL):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(before)
                raised.append(f"{code.co_filename}:{frame.f_lineno}")
                raise Injected
        return trace

    sys.settrace(trace)
    try:
        yield raised
    finally:
        sys.settrace(before)


def described(cluster: Cluster) -> dict[str, Any]:
    cluster.settle()
    watch(cluster)
    return {
        **facts(cluster),
        "ledgers": ledger_sums(cluster),
        "memory": dict(cluster.memory),
        "assumed": {task.uid: (task.assumed, task.grants) for task in cluster.tasks.values()},
        "nodes": {node.name: node.object for node in cluster.nodes.values() if node.object},
        "natives": {
            id: (job.native.queue, job.native.pod_priority, job.native.priority)
            for id, job in cluster.jobs.items()
            if job.native is not None
        },
    }


def reserve_something(cluster: Cluster, chance: random.Random) -> None:
    tasks, nodes = list(cluster.tasks.values()), list(cluster.nodes.values())
    if tasks and nodes:
        task = chance.choice(tasks)
        cluster.reservations.reserve(Reservation(task.uid, task.request, chance.choice(nodes), 0.0, 1e9))


def lived_in(objects: list[Object], chance: random.Random) -> LivingWorld:
    """A model that has seen cycles, of which not all decisions are seen yet."""
    world = LivingWorld(objects, lambda: engine("priority, gang", "predicates"))
    for _ in range(chance.randrange(3)):
        world.come_true([each for each in world.cycle().decisions if chance.random() < 0.5])
    if chance.random() < 0.3:
        reserve_something(world.intake.cluster, chance)
    return world


class Changes:
    """Changes of a living world, each of which fails somewhere, or not at all."""

    def __init__(self, world: LivingWorld, chance: random.Random):
        self.world = world
        self.chance = chance

    def run(self, pick: Callable[[], Object], count: int = 5) -> None:
        for _ in range(count):
            known = list(self.world.objects.values())
            if known and self.chance.random() < 0.3:
                self.drop(self.chance.choice(known))
            else:
                self.put(pick())
            cluster = self.world.intake.cluster
            cluster.settle()
            assert kept_sums(cluster) == rebuilt_sums(cluster)

    def put(self, obj: Object) -> None:
        intake, before = self.world.intake, described(self.world.intake.cluster)
        try:
            with self._failing() as raised:
                intake.put(obj)
        except BadObject:
            assert not raised
        except IntakeFailed as failure:
            assert f"{obj.name}: Injected" in str(failure)
            assert described(intake.cluster) == before, raised
        else:
            assert not raised
            self.world.objects[type(obj), obj.key] = obj

    def drop(self, obj: Object) -> None:
        with suppress(IntakeFailed), self._failing():
            self.world.intake.drop(obj)
        del self.world.objects[type(obj), obj.key]

    def _failing(self) -> AbstractContextManager[list[str]]:
        return failing_at(int(self.chance.expovariate(1 / 60)))

    def expect_a_sound_model(self) -> None:
        """What was kept is what is made of the objects, and the model works."""
        cluster = self.world.intake.cluster
        fresh = Intake()
        for obj in self.world.objects.values():
            with suppress(BadObject):
                fresh.put(obj)
        assert set(cluster.tasks) == set(fresh.cluster.tasks)
        assert set(cluster.nodes) >= set(fresh.cluster.nodes)
        self.world.engine = self.world.make_engine()
        assert self.world.cycle().lost is None
        assert kept_sums(cluster) == rebuilt_sums(cluster)


@given(worlds(), worlds(), st.integers(0, 2**32))
@examples(150)
def test_a_change_that_fails_anywhere_leaves_the_model_as_it_was(
    objects: list[Object], others: list[Object], seed: int
) -> None:
    chance = random.Random(seed)
    world = lived_in(objects, chance)

    def pick() -> Object:
        obj = chance.choice(others)
        known = world.objects.get((type(obj), obj.key))
        if isinstance(obj, Pod) and isinstance(known, Pod) and chance.random() < 0.5:
            return structs.replace(known, status=obj.status)
        return obj

    changes = Changes(world, chance)
    changes.run(pick)
    changes.expect_a_sound_model()


@given(st.integers(0, 2**32))
@examples(60)
def test_it_leaves_ledgers_as_they_were(seed: int) -> None:
    chance = random.Random(seed)
    world = GrantWorld(cluster_objects(chance))
    for number in range(3):
        for manifest in job_objects(f"job{number}", chance, chance.sample(KINDS, 2), "low"):
            world.put(manifest)
        world.come_true([each for each in world.cycle().decisions if chance.random() < 0.7])
    changes = Changes(world, chance)
    changes.run(lambda: chance.choice(list(world.objects.values())))
    before = described(world.intake.cluster)
    world.intake.rebuild()
    assert described(world.intake.cluster) == before


@given(worlds(mostly_pending=True), st.integers(0, 2**32))
@examples(60)
def test_a_model_that_was_rebuilt_decides_as_before(objects: list[Object], seed: int) -> None:
    kept, rebuilt = (lived_in(objects, random.Random(seed)) for _ in range(2))
    rebuilt.intake.rebuild()
    for world in (kept, rebuilt):
        world.engine = world.make_engine()
        world.intake.cluster.mark_all_dirty()
    assert plain(rebuilt.step().decisions) == plain(kept.step().decisions)
    assert plain(rebuilt.step().decisions) == plain(kept.step().decisions)
