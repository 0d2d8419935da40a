"""Buckets and scores against those of naive loops, while tasks are placed and taken back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.engine.placement.node_functions import Nodes
from stromboli.model.cluster import Change
from stromboli.model.status import Status
from stromboli.plugins.task_topology import Requests
from stromboli.testing import World
from tests.manifests import group, node, pod, policy, task_named
from tests.number_of_examples import scaled
from tests.plugins.task_topology.naive_buckets import ROLE, Wishes, naive_buckets, naive_score

ROLES = ("a", "b", "c")
groups = st.lists(st.lists(st.sampled_from(ROLES), min_size=1, max_size=3, unique=True), max_size=2)
wishes = st.builds(Wishes, groups, groups, st.lists(st.sampled_from(ROLES), unique=True))
tasks = st.lists(
    st.tuples(
        st.sampled_from((*ROLES, "d")),
        st.integers(1, 3),
        st.sampled_from([1, 2]),
        st.sampled_from(["", "", "m", "n"]),
    ),
    min_size=4,
    max_size=9,
)
POLICY = policy("enqueue", "gang predicates", ("task-topology", {"task-topology.weight": 3}))


def annotations(wish: Wishes) -> dict[str, str]:
    prefix = "volcano.sh/task-topology-"
    lists = {
        "affinity": ";".join(map(",".join, wish.affinity)),
        "anti-affinity": ";".join(map(",".join, wish.anti_affinity)),
        "task-order": ",".join(wish.order),
    }
    return {prefix + key: text for key, text in lists.items() if text}


def world_of(wish: Wishes, drawn: list[tuple[str, int, int, str]]) -> World:
    world = World(policy=POLICY).add(node("m", cpu=5), node("n", cpu=9), node("o", cpu=4, memory="5Gi"))
    world.add(group("j", 1, annotations=annotations(wish)))
    everyone = [*drawn, *((role, 1, 1, "") for role in ROLES)]  # lists may name roles of the job alone
    for number, (role, cpu, memory, on) in enumerate(everyone):
        uid = {"uid": f"u{(number * 7) % 13:02}"}
        world.add(pod(f"j-{number}", "j", role=role, on=on, cpu=cpu, memory=f"{memory}Gi", metadata=uid))
    return world


def state(world: World, job: Any) -> Any:
    buckets = world.plugin("task-topology")._jobs.get(job)
    if buckets is None:
        return None
    return (
        [(sorted(bucket.unbound), +bucket.bound_on, bucket.size) for bucket in buckets.buckets],
        {node: +roles for node, roles in buckets.placed.items() if +roles},
    )


@settings(max_examples=scaled(60))
@given(wishes, tasks, st.data())
def test_buckets_and_scores_are_those_of_naive_loops(
    wish: Wishes, drawn: list[tuple[str, int, int, str]], data: st.DataObject
) -> None:
    world = world_of(wish, drawn)
    world.step()
    cluster = world.cluster
    job = next(job for job in cluster.jobs.values() if job.group)
    members = list(job.tasks.values())
    naive = naive_buckets(wish, members)
    plugin = world.plugin("task-topology")
    built = plugin._jobs.get(job)
    if built is not None:
        found = [{uid for uid, of in built._bucket_of.items() if of is bucket} for bucket in built.buckets]
        assert found == [{task.uid for task in bucket.members} for bucket in naive]
    before = state(world, job)
    changes: list[Change] = []
    placed: dict[str, Counter[str]] = {name: Counter() for name in cluster.nodes}
    cluster.listeners = [plugin]
    while waiting := [task for task in members if task.status is Status.PENDING]:
        task = data.draw(st.sampled_from(waiting), label="task")
        bucket = next((bucket for bucket in naive if task in bucket.members), None)
        if built is not None and bucket is not None:
            compare_scores(world, wish, naive, bucket, task, placed)
        target = data.draw(st.sampled_from(list(cluster.nodes.values())), label="node")
        change = cluster.move(task, Status.ALLOCATED, target)
        assert isinstance(change, Change)
        changes.append(change)
        placed[target.name][task.annotations[ROLE]] += 1
    for change in reversed(changes):
        cluster.undo(change)
    assert state(world, job) == before


def compare_scores(
    world: World, wish: Wishes, naive: Any, bucket: Any, task: Any, placed: dict[str, Counter[str]]
) -> None:
    cluster, plugin = world.cluster, world.plugin("task-topology")
    (score,) = plugin.node_scores(task)
    scores = score.score(task, Nodes(cluster.columns))
    largest = max(len(each.members) for each in naive)
    for each in cluster.columns.nodes:
        columns = cluster.columns
        available = {
            dim: int(columns.idle[dim, each.row] + columns.releasing[dim, each.row])
            for dim in range(len(cluster.dims))
        }
        expected = naive_score(wish, bucket, task, available, each.name, placed[each.name])
        assert scores[each.row] == float(expected * 3) * 100 / largest


def test_a_thousand_tasks_that_shun_each_other_are_divided_at_once() -> None:
    wish = Wishes([], [["a"]], [])
    world = World(policy=POLICY).add(node("n"), group("j", 1, annotations=annotations(wish)))
    for number in range(1000):
        world.add(pod(f"j-{number}", "j", role="a"))
    world.step()
    task = task_named(world.cluster, "j-0")
    buckets = world.plugin("task-topology")._jobs[task.job]
    assert (len(buckets.buckets), buckets.largest) == (1000, 1)


def test_what_the_tasks_of_a_bucket_ask_for_is_read_once_however_many_are_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    real = Requests.__init__

    def counted(requests: Requests, tasks: Any) -> None:
        made.append(len(tasks))
        real(requests, tasks)

    monkeypatch.setattr(Requests, "__init__", counted)
    world = World(policy=POLICY.replace("enqueue", "enqueue, allocate")).add(node("m", cpu=64))
    world.add(group("j", 1, annotations={"volcano.sh/task-topology-affinity": "w"}))
    for number in range(40):
        world.add(pod(f"j-{number}", "j", role="w", cpu=1))
    assert len(world.step().binds) == 40
    assert made == [40]
