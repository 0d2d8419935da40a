"""Whatever happens to tasks, the numbers equal those worked out from the tasks alone; undoing leaves no trace."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from stromboli.api.types.node import Node
from stromboli.engine.plugin_failures import CycleLost
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Cluster, ListenerFailed, Refused
from stromboli.model.status import ON_NODE, Status
from stromboli.testing import World
from tests.properties.rebuild import fingerprint, kept_sums, rebuilt_sums
from tests.properties.strategies import examples, worlds


class Mirror:
    """A listener with numbers of its own; refuses or raises when told to, and must end where it began."""

    def __init__(self, chance: random.Random, moody: bool):
        self.chance = chance
        self.moody = moody
        self.where: dict[str, tuple[Status, str]] = {}

    def on_move(self, change: Change) -> str | None:
        uid = change.task.uid
        before = (change.old_status, change.old_node.name if change.old_node else "")
        assert self.where.get(uid, before) == before
        if self.moody and not change.undo:
            mood = self.chance.random()
            if mood < 0.05:
                raise OSError("no mood")
            if mood < 0.15:
                return "not today"
        self.where[uid] = (change.status, change.node.name if change.node else "")
        return None


def moods(cluster: Cluster, chance: random.Random, moody: bool = True) -> None:
    """Listeners on either side of a moody one, so that a refusal finds some told and some not."""
    cluster.listeners = [Mirror(chance, False), Mirror(chance, moody), Mirror(chance, False)]


def random_target(cluster: Cluster, chance: random.Random) -> tuple:
    task = chance.choice(list(cluster.tasks.values()))
    status = chance.choice(list(Status))
    nodes = [None, *cluster.nodes.values()]
    node = chance.choice(nodes) if ON_NODE[status] else None
    return task, status, node


def watch(cluster: Cluster) -> None:
    """Tallies of the kind that affinity needs."""
    cluster.pod_counts.get("web", lambda task: task.label_set.labels.get("app") == "web")
    cluster.pod_counts.get("dying", lambda task: task.terminating)
    cluster.pod_counts.get("all", lambda task: True)


def check_moves(objects: list, seed: int) -> None:
    cluster = World().add(*objects).cluster
    watch(cluster)
    if not cluster.tasks:
        return
    chance = random.Random(seed)
    start = fingerprint(cluster)
    moods(cluster, chance)
    changes: list[Change] = []
    for _ in range(chance.randrange(12)):
        before = fingerprint(cluster)
        try:
            change = cluster.move(*random_target(cluster, chance))
        except ListenerFailed:
            assert fingerprint(cluster) == before
            continue
        if isinstance(change, Refused):
            assert fingerprint(cluster) == before
        else:
            changes.append(change)
        assert kept_sums(cluster) == rebuilt_sums(cluster)
    while changes:
        cluster.undo(changes.pop())
        assert kept_sums(cluster) == rebuilt_sums(cluster)
    assert fingerprint(cluster) == start


@given(worlds(), st.integers(0, 2**32))
@examples(60)
def test_moves_keep_the_numbers_and_undo_restores_them(objects: list, seed: int) -> None:
    check_moves(objects, seed)


def change_nodes(world: World, nodes: list[Node], chance: random.Random) -> None:
    """Let a node shrink or grow, remove it, or bring it back."""
    node = chance.choice(nodes)
    if chance.random() < 0.3:
        world.remove(node)
    else:
        sizes = {
            resource: chance.choice(("0", "1", size)) for resource, size in node.status.allocatable.items()
        }
        world.add(structs.replace(node, status=structs.replace(node.status, allocatable=sizes)))
    world.cluster.settle()


def check_nodes_that_change(objects: list, seed: int) -> None:
    world = World().add(*objects)
    nodes = [each for each in objects if isinstance(each, Node)]
    if not nodes or not world.cluster.tasks:
        return
    chance = random.Random(seed)
    for _ in range(chance.randrange(1, 6)):
        changes: list[Change] = []
        for _ in range(chance.randrange(6)):
            change = world.cluster.move(*random_target(world.cluster, chance))
            assert isinstance(change, Change)
            changes.append(change)
            assert kept_sums(world.cluster) == rebuilt_sums(world.cluster)
        while changes and chance.random() < 0.8:
            world.cluster.undo(changes.pop())
        change_nodes(world, nodes, chance)
        assert kept_sums(world.cluster) == rebuilt_sums(world.cluster)


@given(worlds(), st.integers(0, 2**32))
@examples(60)
def test_the_numbers_stay_right_while_nodes_shrink_and_come_and_go(objects: list, seed: int) -> None:
    check_nodes_that_change(objects, seed)


# -- statements


class Story:
    """Random statements inside statements, with moves, recorded undos and every kind of ending."""

    def __init__(self, session: Session, chance: random.Random):
        self.cluster = session.cluster
        self.chance = chance
        self.session = session
        self.notes: list[int] = []

    def step(self, depth: int) -> None:
        what = self.chance.random()
        if what < 0.25 and depth < 3:
            self.statement(depth + 1)
        elif what < 0.4:
            self.notes.append(len(self.notes))
            self.session.journal.record(self.notes.pop)
        else:
            self.move()

    def move(self) -> None:
        """What an action may do: give room, promise room, evict, release; never to what has already left."""
        free = [task for task in self.cluster.tasks.values() if task not in self.session.journal._settled]
        nodes = list(self.cluster.nodes.values())
        if free and nodes:
            task, status = (
                self.chance.choice(free),
                self.chance.choice((Status.ALLOCATED, Status.PIPELINED, Status.PENDING, Status.RELEASING)),
            )
            node = {Status.PENDING: None, Status.RELEASING: task.node}.get(status, self.chance.choice(nodes))
            job = task.job
            if status is Status.ALLOCATED and (job is None or node is None):
                return
            self.session.journal.move(task, status, node)

    def statement(self, depth: int) -> None:
        """Undo must restore exactly; keep and commit must leave the numbers right."""
        before, notes = fingerprint(self.cluster), list(self.notes)
        ending = self.chance.choice(("undo", "keep", "commit" if depth == 1 else "keep", "raise"))
        try:
            with self.session.statement() as trial:
                for _ in range(self.chance.randrange(5)):
                    self.step(depth)
                if ending == "raise":
                    raise LookupError("a plugin made a mistake")
                if ending != "undo":
                    getattr(trial, ending)()
        except LookupError:
            pass
        if ending in ("undo", "raise"):
            assert fingerprint(self.cluster) == before
            assert self.notes == notes
        assert kept_sums(self.cluster) == rebuilt_sums(self.cluster)


def check_statements(objects: list, seed: int) -> None:
    world = World().add(*objects)
    cluster = world.cluster
    watch(cluster)
    chance = random.Random(seed)
    start = fingerprint(cluster)
    moods(cluster, chance, moody=chance.random() < 0.3)
    story = Story(world.session(), chance)
    try:
        for _ in range(chance.randrange(1, 4)):
            story.statement(1)
            story.move()
    except CycleLost:
        cluster.listeners = []
        story.session.journal.abort()
        assert fingerprint(cluster) == start
        return
    if chance.random() < 0.5:
        story.session.journal.abort()
        assert fingerprint(cluster) == start
        assert not story.notes
        return
    settled = {task.uid for task in story.session.journal._settled}
    story.session.journal.finish()
    assert kept_sums(cluster) == rebuilt_sums(cluster)
    now = fingerprint(cluster)["standing"]
    assert all(now[uid] == start["standing"][uid] for uid in now if uid not in settled)
    assert all(now[uid][0] in ("BINDING", "RELEASING") for uid in settled)


@given(worlds(), st.integers(0, 2**32))
@examples(60)
def test_statements_restore_exactly_what_they_take_back(objects: list, seed: int) -> None:
    check_statements(objects, seed)
