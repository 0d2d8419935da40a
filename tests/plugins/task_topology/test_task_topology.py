"""Roles of a job together or apart, by the annotations of its PodGroup."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.testing import World
from tests.manifests import binds, events, group, node, pod, policy

PREFIX = "volcano.sh/task-topology-"


def world_of(
    pods: str, nodes: str = "a=8 b=8 c=8", minimum: int = 1, extra: str = "nodeorder", **lists: str
) -> World:
    """Nodes and pods as `name=cpu`; the role of a pod is its name without the number."""
    world = World(
        policy=policy(
            "enqueue, allocate", "gang | predicates", ("task-topology", {"task-topology.weight": 10}), extra
        )
    )
    for name, cpu in (each.split("=") for each in nodes.split()):
        world.add(node(name, cpu=cpu))
    annotations = {PREFIX + key.replace("_", "-"): text for key, text in lists.items()}
    world.add(group("j", minimum, annotations=annotations))
    for given, cpu in (each.split("=") for each in pods.split()):
        name, _, on = given.partition("@")
        world.add(pod(f"j-{name}", "j", role=name.rpartition("-")[0], cpu=cpu, on=on))
    return world


def placed(world: World) -> dict[str, str]:
    return {name.removeprefix("j-"): node for name, node in binds(world.step()).items()}


def test_roles_that_like_each_other_share_a_node() -> None:
    world = world_of("ps-0=2 worker-0=2 worker-1=2", affinity="ps,worker")
    assert len(set(placed(world).values())) == 1


def test_a_role_that_shuns_itself_is_spread() -> None:
    world = world_of("ps-0=1 ps-1=1 ps-2=1", anti_affinity="ps", extra="binpack")
    assert sorted(placed(world).values()) == ["a", "b", "c"]


def test_pairs_are_made_of_a_role_that_shuns_itself_and_one_that_likes_it() -> None:
    world = world_of("ps-0=2 ps-1=2 worker-0=2 worker-1=2", affinity="ps,worker", anti_affinity="ps")
    where = placed(world)
    assert where["ps-0"] == where["worker-0"] != where["ps-1"] == where["worker-1"]


def test_new_pods_go_where_the_rest_of_their_bucket_runs() -> None:
    world = world_of("ps-0@c=1 worker-0=1 worker-1=1", affinity="ps,worker")
    assert placed(world) == {"worker-0": "c", "worker-1": "c"}


def test_a_bucket_is_put_where_most_of_it_fits() -> None:
    world = world_of("worker-0=3 worker-1=3 worker-2=3", nodes="a=5 b=9 c=5", affinity="worker")
    assert set(placed(world).values()) == {"b"}


def test_the_role_that_is_listed_first_is_placed_first() -> None:
    lists = {"affinity": "ps,worker", "task_order": "worker,ps"}
    world = world_of("ps-0=2 ps-1=2 worker-0=2 worker-1=2", nodes="a=4", **lists)
    assert set(placed(world)) == {"worker-0", "worker-1"}


def test_an_order_alone_orders_nothing() -> None:
    """# quirk: spec 04 8: a role that is in no group is in no bucket, and those have no order."""
    world = world_of("ps-0=2 ps-1=2 worker-0=2 worker-1=2", nodes="a=4", task_order="worker,ps")
    assert set(placed(world)) == {"ps-0", "worker-0"}


def test_the_largest_bucket_goes_first_and_tasks_out_of_buckets_last() -> None:
    world = world_of(
        "other-0=2 ps-0=2 ps-1=2 worker-0=2 worker-1=2",
        nodes="a=6",
        affinity="ps,worker",
        anti_affinity="ps;ps,worker",
    )
    assert "other-0" not in placed(world)


@pytest.mark.parametrize(
    ("lists", "problem"),
    [
        (
            {"affinity": "ps,ghost"},
            'annotation volcano.sh/task-topology-affinity: the job has no task "ghost"',
        ),
        ({"anti_affinity": "ps;ps,ps"}, 'names the task "ps" twice in a group'),
        ({"anti_affinity": "ps", "task_order": "ps, worker"}, 'the job has no task " worker"'),
        ({"affinity": "ps," * 200 + "ps"}, "names more than 128 roles"),
        ({"affinity": "x" * 20_000}, "is longer than 16384 characters"),
        ({"affinity": ";" * 10_000}, "names more than 128 roles"),
    ],
)
def test_an_invalid_list_is_reported_and_the_job_is_placed_without(
    lists: dict[str, Any], problem: str
) -> None:
    world = world_of("ps-0=1 ps-1=1 worker-0=1", extra="binpack", **lists)
    result = world.step()
    assert len(result.binds) == 3
    assert problem in events(result, "FieldIgnored", "Warning")["j"]
    assert "j" not in events(world.step(), "FieldIgnored", "Warning"), "once is enough"


@pytest.mark.parametrize("text", ["", ";", ",", "ps;", ";;ps,"])
def test_empty_names_are_no_mistake(text: str) -> None:
    world = world_of("ps-0=1 ps-1=1", affinity=text)
    result = world.step()
    assert len(result.binds) == 2
    assert events(result, "FieldIgnored", "Warning") == {}


@pytest.mark.parametrize("lists", [{"affinity": "ps,worker;"}, {"affinity": "ps,"}, {"anti_affinity": "ps,"}])
def test_an_empty_name_is_not_the_role_of_pods_without_a_role(lists: dict[str, str]) -> None:
    world = world_of("ps-0=1 worker-0=1", minimum=9, **lists)
    world.add(pod("j-none-0", "j"), pod("j-none-1", "j"))
    world.step()
    assert world.scores("task-topology", "j-ps-0")["a"] > 0
    assert world.scores("task-topology", "j-none-0") == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_a_role_that_only_a_label_gives_is_known_and_has_no_bucket() -> None:
    """# quirk: spec 04 8."""
    world = world_of("worker-0=1", affinity="ps")
    world.add(pod("j-ps-0", "j", labels={"volcano.sh/task-spec": "ps"}))
    result = world.step()
    assert events(result, "FieldIgnored", "Warning") == {}
    assert world.scores("task-topology", "j-ps-0") == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_a_gang_that_is_taken_back_leaves_its_buckets_as_they_were() -> None:
    """In Volcano its pods go on counting as placed."""
    world = world_of("ps-0=4 ps-1=4 ps-2=4", nodes="a=4 b=4", minimum=3, anti_affinity="ps")
    assert placed(world) == {}
    world.add(node("c", cpu=4))
    assert sorted(placed(world).values()) == ["a", "b", "c"]


def test_jobs_without_lists_cost_and_get_nothing() -> None:
    world = world_of("ps-0=1")
    world.step()
    assert list(world.plugin("task-topology").node_scores(world.task("j-ps-0"))) == []
