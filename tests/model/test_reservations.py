"""Reservations weigh on node, job, queue and the queues above while their owner waits, and never otherwise."""

from __future__ import annotations

from stromboli.model.cluster import Cluster
from stromboli.model.dimensions import PODS
from stromboli.model.job import JobId
from stromboli.model.reservations import Reservation, RoleOwner
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import Manifest, group, node, pod, queue, task_named
from tests.properties.rebuild import kept_sums, rebuilt_sums


def held(cluster: Cluster, name: str = "n0") -> int:
    """CPU that is promised on a node."""
    return int(cluster.columns.pipelined[0, cluster.nodes[name].row])


def place(*more: Manifest) -> tuple[World, Cluster]:
    world = World().add(node("n0", cpu=8), node("n1", cpu=8), group("j"), pod("t", "j", cpu=2), *more)
    cluster = world.cluster
    reserve(cluster, "n0", until=100.0)
    return world, cluster


def reserve(cluster: Cluster, node: str, until: float, since: float = 0.0) -> None:
    task = task_named(cluster, "t")
    cluster.reservations.reserve(Reservation(task.uid, task.request, cluster.nodes[node], since, until))


def sound(cluster: Cluster) -> bool:
    cluster.settle()
    return kept_sums(cluster) == rebuilt_sums(cluster)


def test_it_weighs_as_a_promise_while_its_owner_waits_and_not_otherwise() -> None:
    _, cluster = place()
    task = task_named(cluster, "t")
    assert held(cluster) == 2000
    change = cluster.move(task, Status.ALLOCATED, cluster.nodes["n1"])
    assert (held(cluster), held(cluster, "n1")) == (0, 0)
    assert sound(cluster)
    cluster.undo(change)
    assert held(cluster) == 2000
    cluster.move(task, Status.PIPELINED, cluster.nodes["n0"])
    assert held(cluster) == 2000, "a promise and what is held for it are one"
    assert sound(cluster)


def test_a_second_one_takes_the_place_of_the_first() -> None:
    _, cluster = place()
    reserve(cluster, "n1", until=50.0)
    assert (held(cluster), held(cluster, "n1")) == (0, 2000)
    assert sound(cluster)


def test_it_expires() -> None:
    _, cluster = place()
    cluster.reservations.advance(99.9)
    assert held(cluster) == 2000
    cluster.reservations.advance(100.0)
    assert (held(cluster), len(cluster.reservations)) == (0, 0)
    assert sound(cluster)


def test_it_goes_with_its_owner() -> None:
    world, cluster = place()
    world.remove(pod("t", "j"))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_it_goes_with_its_node_and_a_new_node_of_that_name_owes_nothing() -> None:
    world, cluster = place()
    world.remove(node("n0"))
    assert sound(cluster)
    world.add(node("n0", cpu=8))
    assert sound(cluster)
    assert held(cluster) == 0
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_it_outlasts_a_change_of_its_nodes_size() -> None:
    world, cluster = place()
    world.add(node("n0", cpu=1))
    assert held(cluster) == 2000
    assert sound(cluster)
    world.add(node("a-new-one"))
    assert sound(cluster)
    assert held(cluster) == 2000, "rows moved"


def test_it_survives_an_update_of_its_pod_and_weighs_what_the_pod_asks_for_then() -> None:
    world, cluster = place()
    world.add(pod("t", "j", cpu=2, labels={"new": "label"}))
    assert held(cluster) == 2000
    world.add(pod("t", "j", cpu=3))
    assert held(cluster) == 3000
    assert sound(cluster)


def test_it_ends_when_its_pod_was_bound_by_somebody_else() -> None:
    world, cluster = place()
    world.add(pod("t", "j", on="n1", cpu=2))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_a_new_resource_widens_the_columns_under_it() -> None:
    world, cluster = place()
    world.add(node("n2", gpu=4))
    world.add(pod("g", "j", on="n2", gpu=1))
    assert sound(cluster)
    cluster.reservations.advance(100.0)
    assert sound(cluster)


def test_it_begins_when_its_time_has_come() -> None:
    _, cluster = place()
    reserve(cluster, "n0", since=10.0, until=20.0)
    assert held(cluster) == 0
    cluster.reservations.advance(9.0)
    assert held(cluster) == 0
    cluster.reservations.advance(10.0)
    assert held(cluster) == 2000
    cluster.reservations.advance(20.0)
    assert (held(cluster), len(cluster.reservations)) == (0, 0)


# -- the queues above


def in_a_tree() -> tuple[World, Cluster]:
    """A task of queue `a`, which is below `team`, which is below the root; room is reserved for it."""
    world = World().add(
        *(queue("root"), queue("team"), queue("other"), queue("a", parent="team")),
        *(node("n0", cpu=8), node("n1", cpu=8), group("j", queue="a"), pod("t", "j", cpu=2)),
    )
    reserve(world.cluster, "n0", until=100.0)
    return world, world.cluster


def reserved_cpu(cluster: Cluster) -> dict[str, tuple[float, float]]:
    """CPU that is reserved for jobs of each queue, and of the queues below it."""
    amounts = {
        name: (queue.reserved.get(0, 0), queue.reserved_below.get(0, 0))
        for name, queue in cluster.queues.items()
    }
    return {name: both for name, both in amounts.items() if any(both)}


def test_it_weighs_on_the_queue_and_on_every_queue_above() -> None:
    _, cluster = in_a_tree()
    assert reserved_cpu(cluster) == {"a": (2000, 0), "team": (0, 2000), "root": (0, 2000)}
    change = cluster.move(task_named(cluster, "t"), Status.ALLOCATED, cluster.nodes["n0"])
    assert reserved_cpu(cluster) == {}
    cluster.undo(change)
    assert reserved_cpu(cluster) == {"a": (2000, 0), "team": (0, 2000), "root": (0, 2000)}
    assert sound(cluster)


def test_it_moves_with_its_job_to_another_queue() -> None:
    world, cluster = in_a_tree()
    world.add(group("j", queue="other"))
    assert reserved_cpu(cluster) == {"other": (2000, 0), "root": (0, 2000)}
    assert sound(cluster)


def test_it_moves_with_its_queue_to_another_parent() -> None:
    world, cluster = in_a_tree()
    world.add(queue("a", parent="other"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "other": (0, 2000), "root": (0, 2000)}
    assert sound(cluster)


def test_it_weighs_on_no_queue_above_that_is_gone() -> None:
    world, cluster = in_a_tree()
    world.remove(queue("team"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "root": (0, 2000)}
    world.remove(queue("root"))
    assert reserved_cpu(cluster) == {"a": (2000, 0)}
    world.add(queue("team"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "team": (0, 2000)}
    assert sound(cluster)


def test_other_jobs_see_it_and_its_own_job_does_not() -> None:
    _, cluster = in_a_tree()
    job, leaf, above = task_named(cluster, "t").job, cluster.queues["a"], cluster.queues["team"]
    assert leaf.unavailable_to(job) == {}
    assert leaf.unavailable_to(None)[0] == 2000
    assert above.reserved_beside(job, below=True) == {}
    assert above.reserved_beside(None, below=True)[0] == 2000


# -- for pods that do not exist yet


def for_a_role(replicas: int = 1) -> tuple[World, Cluster]:
    world = World().add(
        *(queue("root"), queue("a"), node("n0", cpu=8), node("n1", cpu=8), group("j", queue="a"))
    )
    cluster = world.cluster
    cluster.settle()
    for replica in range(replicas):
        owner = RoleOwner(JobId("PodGroup", "default", "j"), "worker", replica)
        cluster.reservations.reserve(Reservation(owner, {0: 3000}, cluster.nodes["n0"], 0.0, 100.0))
    return world, cluster


def test_a_role_s_reservation_weighs_before_there_is_a_pod() -> None:
    _, cluster = for_a_role()
    assert held(cluster) == 3000
    assert reserved_cpu(cluster) == {"a": (3000, 0), "root": (0, 3000)}
    assert sound(cluster)


def test_the_next_pod_of_the_role_takes_it_over_and_weighs_what_it_asks_for() -> None:
    world, cluster = for_a_role(replicas=2)
    assert held(cluster) == 6000
    world.add(pod("w-0", "j", cpu=2, role="worker"))
    assert held(cluster) == 5000
    assert {held.owner for held in cluster.reservations} == {
        task_named(cluster, "w-0").uid,
        RoleOwner(JobId("PodGroup", "default", "j"), "worker", 1),
    }
    world.add(pod("w-0", "j", cpu=2, role="worker", labels={"new": "label"}))
    assert held(cluster) == 5000, "a pod takes over once"
    assert reserved_cpu(cluster) == {"a": (5000, 0), "root": (0, 5000)}
    assert sound(cluster)


def test_a_pod_takes_over_the_room_that_is_of_its_size_if_there_is_any() -> None:
    world, cluster = for_a_role()
    owner = RoleOwner(JobId("PodGroup", "default", "j"), "worker", 1)
    size = {0: 2000, PODS: 1}
    cluster.reservations.reserve(Reservation(owner, size, cluster.nodes["n1"], 0.0, 100.0))
    world.add(pod("w-0", "j", cpu=2, role="worker"))
    assert {held.owner: held.node.name for held in cluster.reservations} == {
        task_named(cluster, "w-0").uid: "n1",
        RoleOwner(JobId("PodGroup", "default", "j"), "worker", 0): "n0",
    }
    assert sound(cluster)


def test_what_is_reserved_for_pods_to_come_is_told_apart_until_they_come() -> None:
    world, cluster = for_a_role()
    assert cluster.queues["a"].expected == {0: 3000}
    world.add(pod("w-0", "j", cpu=2, role="worker"))
    assert cluster.queues["a"].expected == {}
    assert sound(cluster)


def test_pods_of_other_roles_or_on_a_node_already_leave_it_alone() -> None:
    world, cluster = for_a_role()
    world.add(pod("ps-0", "j", cpu=1, role="ps"))
    world.add(pod("w-0", "j", cpu=1, role="worker", on="n1"))
    assert held(cluster) == 3000
    assert sound(cluster)


def test_a_role_s_reservation_expires_or_goes_with_its_job() -> None:
    _, cluster = for_a_role()
    cluster.reservations.advance(100.0)
    assert (held(cluster), reserved_cpu(cluster)) == (0, {})
    world, cluster = for_a_role()
    world.remove(group("j"))
    assert (held(cluster), reserved_cpu(cluster)) == (0, {})
    assert sound(cluster)
    cluster.reservations.advance(1.0)
    assert not cluster.reservations


def test_all_are_listed_again_only_if_one_was_made_or_ended() -> None:
    _, cluster = place()
    reservations = cluster.reservations
    listed = reservations.all()
    assert [each.until for each in listed] == [100.0]
    reservations.release("nobody")
    assert reservations.all() is listed
    reserve(cluster, "n1", until=200.0)
    assert [each.until for each in reservations.all()] == [200.0]
    reservations.release(task_named(cluster, "t").uid)
    assert reservations.all() == ()
