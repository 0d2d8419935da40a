"""Whatever happens while room is reserved, the sums are those of a rebuild, and undoing restores them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.pod import Pod
from stromboli.model.cluster import Cluster
from stromboli.model.job import JobId
from stromboli.model.reservations import Reservation, RoleOwner
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, queue
from tests.properties.rebuild import fingerprint, kept_sums, rebuilt_sums
from tests.properties.strategies import contest, examples, worlds


def sound(cluster: Cluster) -> bool:
    cluster.settle()
    return kept_sums(cluster) == rebuilt_sums(cluster)


def random_reservation(cluster: Cluster, chance: random.Random, now: int) -> Reservation | None:
    """For a waiting task, or for a role of a job that may be there."""
    tasks = [task for task in cluster.tasks.values() if task.status is Status.PENDING]
    if not cluster.columns.nodes:
        return None
    node, until = chance.choice(cluster.columns.nodes), now + chance.randint(1, 5)
    if tasks and chance.random() < 0.7:
        task = chance.choice(tasks)
        return Reservation(task.uid, task.request, node, now, until)
    name = JobId("PodGroup", "default", chance.choice(("g0", "g1", "new0", "nobody")))
    owner = RoleOwner(name, chance.choice(("", "worker")), chance.randrange(2))
    return Reservation(owner, {0: 1000, 1: 2**20}, node, now, until)


def random_queue(chance: random.Random) -> Manifest:
    """One of the queues of these worlds with another parent, which may be missing, or itself, or make a circle."""
    names = ("default", "research", "heavy")
    return queue(chance.choice(names), parent=chance.choice((*names, "", "nowhere")))


@given(objects=worlds(), later=worlds(), seed=st.integers(0, 2**32))
@examples(20)
def test_whatever_happens_the_numbers_are_right(objects: list[Any], later: list[Any], seed: int) -> None:
    """Objects come, change and go, time passes, tasks move, while room is held."""
    chance = random.Random(seed)
    world = World().add(*objects, *contest(chance))
    cluster, pool = world.cluster, [*objects, *later]
    for now in range(8):
        cluster.settle()
        cluster.reservations.advance(float(now))
        for _ in range(2):
            if reservation := random_reservation(cluster, chance, now):
                cluster.reservations.reserve(reservation)
        assert sound(cluster)
        before = fingerprint(cluster)
        if cluster.tasks and cluster.columns.nodes:
            task = chance.choice(list(cluster.tasks.values()))
            change = cluster.move(task, Status.PIPELINED, chance.choice(cluster.columns.nodes))
            assert sound(cluster)
            cluster.undo(change)
        assert fingerprint(cluster) == before
        for changed in chance.sample(pool, min(4, len(pool))):
            task = isinstance(changed, Pod) and cluster.tasks.get(changed.metadata.uid)
            if chance.random() < 0.3:
                world.remove(changed)
            elif not (task and task.node is not None and not changed.spec.node_name):
                world.add(msgspec.structs.replace(changed))
        if chance.random() < 0.5:
            world.add(random_queue(chance))
        assert sound(cluster)
