"""Whose turn it is: what is popped is first now, and a queue comes back after each turn (spec 02 0.2, 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from hypothesis import given
from hypothesis import strategies as st

from stromboli.engine.order import Heap, JobsByQueue
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import depends
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, node, pod, queue, task_named


def quiet(item: object) -> nullcontext[None]:
    return nullcontext()


def popped(heap: Heap) -> Iterator:
    while heap:
        yield heap.pop()


@given(st.dictionaries(st.text(max_size=3), st.integers()), st.data())
def test_after_rekeying_what_changed_the_first_is_popped(keys: dict[str, int], data: st.DataObject) -> None:
    heap: Heap = Heap(lambda item: (keys[item], item), quiet)
    for item in keys:
        heap.push(item)
    if keys:
        changed = data.draw(st.dictionaries(st.sampled_from(sorted(keys)), st.integers()))
        keys.update(changed)
        heap.rekey(changed)
    assert list(popped(heap)) == sorted(keys, key=lambda item: (keys[item], item))


@given(st.dictionaries(st.text(max_size=3), st.integers(), min_size=1))
def test_all_may_be_rekeyed_at_once(keys: dict[str, int]) -> None:
    heap: Heap = Heap(lambda item: (keys[item], item), quiet)
    for item in keys:
        heap.push(item)
    keys.update({item: -key for item, key in keys.items()})
    heap.rekey_all()
    assert list(popped(heap)) == sorted(keys, key=lambda item: (keys[item], item))


def test_an_item_is_there_once_however_often_it_is_pushed() -> None:
    heap: Heap = Heap(lambda item: (item,), quiet)
    for item in "baab":
        heap.push(item)
    assert "a" in heap
    assert list(popped(heap)) == ["a", "b"]
    assert "a" not in heap


def test_an_item_without_a_key_is_left_out() -> None:
    missed: list[str] = []

    @contextmanager
    def note(item: str) -> Iterator[None]:
        try:
            yield
        except KeyError:
            missed.append(item)

    keys = {"a": 3, "c": 1, "d": 2}
    heap: Heap = Heap(lambda item: (keys[item],), note)
    for item in "abcd":
        heap.push(item)
    del keys["c"]
    heap.rekey(["c"])
    del keys["d"]
    heap.rekey_all()
    assert missed == ["b", "c", "d"]
    assert list(popped(heap)) == ["a"]
    assert not heap


class LeastHeld(Plugin):
    """The queue, and in it the job, that holds least comes first."""

    name = "least-held"

    def queue_order(self, queue: Queue) -> float:
        return queue.allocated.get(0, 0)

    def job_order(self, job: Job) -> float:
        return job.allocated.get(0, 0)


class Fashion(Plugin):
    """All keys depend on something that belongs to no item."""

    name = "fashion"
    backwards = False

    @depends("everything")
    def job_order(self, job: Job) -> str:
        return "".join(chr(255 - ord(letter)) for letter in job.name) if self.backwards else job.name


def test_queues_take_turns_by_what_they_hold_after_each() -> None:
    objects = [queue("a"), queue("b"), node("n0", cpu=64)]
    for name in ("a", "b"):
        for number in range(3):
            objects.append(group(f"{name}{number}", queue=name, created=number))
            objects.append(pod(f"{name}-{number}", f"{name}{number}", cpu=1 if name == "a" else 2))
    session = World().add(*objects).session(LeastHeld)
    order = []
    for _, job in JobsByQueue(session, session.jobs()).turns():
        order.append(job.name)
        (task,) = job.tasks.values()
        session.journal.move(task, Status.ALLOCATED, session.cluster.nodes["n0"])
    assert order == ["a0", "b0", "a1", "a2", "b1", "b2"]


def test_a_job_that_comes_back_waits_behind_those_that_hold_less() -> None:
    objects = [queue(), node("n0", cpu=64), group("x", created=0), group("y", created=1)]
    objects.extend(pod(f"{job}-{number}", job) for job in "xy" for number in range(2))
    session = World().add(*objects).session(LeastHeld)
    jobs_by_queue = JobsByQueue(session, session.jobs())
    order = []
    for _, job in jobs_by_queue.turns():
        order.append(job.name)
        task = task_named(session.cluster, f"{job.name}-{order.count(job.name) - 1}")
        session.journal.move(task, Status.ALLOCATED, session.cluster.nodes["n0"])
        if order.count(job.name) < 2:
            jobs_by_queue.push(job)
    assert order == ["x", "y", "x", "y"]


def test_an_order_that_follows_everything_is_asked_again_after_every_move() -> None:
    objects = [queue(), node("n0"), *(group(name) for name in "abc"), *(pod(name, name) for name in "abc")]
    session = World().add(*objects).session(Fashion)
    order = []
    for _, job in JobsByQueue(session, session.jobs()).turns():
        order.append(job.name)
        session.journal.move(
            task_named(session.cluster, job.name), Status.ALLOCATED, session.cluster.nodes["n0"]
        )
        session.rules.plugins[0].backwards = True
    assert order == ["a", "c", "b"]


def test_a_queue_that_is_skipped_once_is_left_out_for_good() -> None:
    objects = [queue("a"), queue("b"), *(group(f"{name}{n}", queue=name) for name in "ab" for n in range(2))]
    session = World().add(*objects).session(LeastHeld)
    turns = JobsByQueue(session, session.jobs()).turns(skip=lambda queue: queue.name == "a")
    assert [job.name for _, job in turns] == ["b0", "b1"]


def test_draining_takes_queue_after_queue() -> None:
    objects = [queue("b", created=0), queue("a", created=0)]
    objects += [group(f"{name}{n}", queue=name, created=0) for name in "ba" for n in (1, 0)]
    session = World().add(*objects).session(LeastHeld)
    assert [job.name for job in JobsByQueue(session, session.jobs()).drain()] == ["a0", "a1", "b0", "b1"]


def test_a_job_that_moves_in_two_turns_in_a_row_changes_the_order_twice() -> None:
    objects = [node("n0", cpu=64)]
    for name, pods in (("a", 2), ("b", 1), ("c", 1)):
        objects += [group(name), *(pod(f"{name}-{number}", name) for number in range(pods))]
    session = World().add(*objects).session(Fashion)
    (fashion,) = (plugin for plugin in session.rules.plugins if isinstance(plugin, Fashion))
    jobs = JobsByQueue(session, session.jobs())
    order = []
    for _, job in jobs.turns():
        order.append(job.name)
        pending = [task for task in job.tasks.values() if task.status is Status.PENDING]
        session.journal.move(pending[0], Status.ALLOCATED, session.cluster.nodes["n0"])
        if len(pending) > 1:
            jobs.push(job)
        fashion.backwards = len(order) > 1
    assert order == ["a", "a", "c", "b"]
