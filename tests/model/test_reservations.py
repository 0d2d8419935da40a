"""Reservations weigh on node, job, queue and the queues above while their owner waits, and never otherwise."""

from __future__ import annotations

from stromboli.api.types.meta import Object
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.job import JobId
from stromboli.model.reservations import Reservation, RoleOwner
from stromboli.model.status import Status
from tests.building import group, intake_of, node, pod, queue, running, task_of
from tests.properties.rebuild import kept_sums, rebuilt_sums


def held(cluster: Cluster, name: str = "n0") -> int:
    """CPU that is promised on a node."""
    return int(cluster.columns.pipelined[0, cluster.nodes[name].row])


def place(*more: Object) -> tuple[Intake, Cluster]:
    intake = intake_of(queue(), node("n0", cpu=8), node("n1", cpu=8), group("j"), pod("t", "j", cpu=2), *more)
    intake.cluster.settle()
    cluster = intake.cluster
    reserve(cluster, "n0", until=100.0)
    return intake, cluster


def reserve(cluster: Cluster, node: str, until: float, since: float = 0.0) -> None:
    task = task_of(cluster, "t")
    cluster.reservations.reserve(Reservation(task.uid, task.request, cluster.nodes[node], since, until))


def sound(cluster: Cluster) -> bool:
    cluster.settle()
    return kept_sums(cluster) == rebuilt_sums(cluster)


def test_it_weighs_as_a_promise_while_its_owner_waits_and_not_otherwise() -> None:
    _, cluster = place()
    task = task_of(cluster, "t")
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
    intake, cluster = place()
    intake.drop(pod("t", "j"))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_it_goes_with_its_node_and_a_new_node_of_that_name_owes_nothing() -> None:
    intake, cluster = place()
    intake.drop(node("n0"))
    assert sound(cluster)
    intake.put(node("n0", cpu=8))
    assert sound(cluster)
    assert held(cluster) == 0
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_it_outlasts_a_change_of_its_nodes_size() -> None:
    intake, cluster = place()
    intake.put(node("n0", cpu=1))
    assert held(cluster) == 2000
    assert sound(cluster)
    intake.put(node("a-new-one"))
    assert sound(cluster)
    assert held(cluster) == 2000, "rows moved"


def test_it_survives_an_update_of_its_pod_and_weighs_what_the_pod_asks_for_then() -> None:
    intake, cluster = place()
    intake.put(pod("t", "j", cpu=2, labels={"new": "label"}))
    assert held(cluster) == 2000
    intake.put(pod("t", "j", cpu=3))
    assert held(cluster) == 3000
    assert sound(cluster)


def test_it_ends_when_its_pod_was_bound_by_somebody_else() -> None:
    intake, cluster = place()
    intake.put(running("t", "n1", "j", cpu=2))
    assert held(cluster) == 0
    assert sound(cluster)
    cluster.reservations.advance(0.0)
    assert not cluster.reservations


def test_a_new_resource_widens_the_columns_under_it() -> None:
    intake, cluster = place()
    intake.put(node("n2", gpu=4))
    intake.put(running("g", "n2", "j", gpu=1))
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


def in_a_tree() -> tuple[Intake, Cluster]:
    """A task of queue `a`, which is below `team`, which is below the root; room is reserved for it."""
    intake = intake_of(
        *(queue("root"), queue("team"), queue("other"), queue("a", parent="team")),
        *(node("n0", cpu=8), node("n1", cpu=8), group("j", queue="a"), pod("t", "j", cpu=2)),
    )
    intake.cluster.settle()
    reserve(intake.cluster, "n0", until=100.0)
    return intake, intake.cluster


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
    change = cluster.move(task_of(cluster, "t"), Status.ALLOCATED, cluster.nodes["n0"])
    assert reserved_cpu(cluster) == {}
    cluster.undo(change)
    assert reserved_cpu(cluster) == {"a": (2000, 0), "team": (0, 2000), "root": (0, 2000)}
    assert sound(cluster)


def test_it_moves_with_its_job_to_another_queue() -> None:
    intake, cluster = in_a_tree()
    intake.put(group("j", queue="other"))
    assert reserved_cpu(cluster) == {"other": (2000, 0), "root": (0, 2000)}
    assert sound(cluster)


def test_it_moves_with_its_queue_to_another_parent() -> None:
    intake, cluster = in_a_tree()
    intake.put(queue("a", parent="other"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "other": (0, 2000), "root": (0, 2000)}
    assert sound(cluster)


def test_it_weighs_on_no_queue_above_that_is_gone() -> None:
    intake, cluster = in_a_tree()
    intake.drop(queue("team"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "root": (0, 2000)}
    intake.drop(queue("root"))
    assert reserved_cpu(cluster) == {"a": (2000, 0)}
    intake.put(queue("team"))
    assert reserved_cpu(cluster) == {"a": (2000, 0), "team": (0, 2000)}
    assert sound(cluster)


def test_other_jobs_see_it_and_its_own_job_does_not() -> None:
    _, cluster = in_a_tree()
    job, leaf, above = task_of(cluster, "t").job, cluster.queues["a"], cluster.queues["team"]
    assert leaf.unavailable_to(job) == {}
    assert leaf.unavailable_to(None)[0] == 2000
    assert above.reserved_beside(job, below=True) == {}
    assert above.reserved_beside(None, below=True)[0] == 2000


# -- for pods that do not exist yet


def for_a_role(replicas: int = 1) -> tuple[Intake, Cluster]:
    intake = intake_of(
        *(queue("root"), queue("a"), node("n0", cpu=8), node("n1", cpu=8), group("j", queue="a"))
    )
    cluster = intake.cluster
    cluster.settle()
    for replica in range(replicas):
        owner = RoleOwner(JobId("PodGroup", "default", "j"), "worker", replica)
        cluster.reservations.reserve(Reservation(owner, {0: 3000}, cluster.nodes["n0"], 0.0, 100.0))
    return intake, cluster


def test_a_role_s_reservation_weighs_before_there_is_a_pod() -> None:
    _, cluster = for_a_role()
    assert held(cluster) == 3000
    assert reserved_cpu(cluster) == {"a": (3000, 0), "root": (0, 3000)}
    assert sound(cluster)


def test_the_next_pod_of_the_role_takes_it_over_and_weighs_what_it_asks_for() -> None:
    intake, cluster = for_a_role(replicas=2)
    assert held(cluster) == 6000
    intake.put(pod("w-0", "j", cpu=2, role="worker"))
    assert held(cluster) == 5000
    assert {held.owner for held in cluster.reservations} == {
        task_of(cluster, "w-0").uid,
        RoleOwner(JobId("PodGroup", "default", "j"), "worker", 1),
    }
    intake.put(pod("w-0", "j", cpu=2, role="worker", labels={"new": "label"}))
    assert held(cluster) == 5000, "a pod takes over once"
    assert reserved_cpu(cluster) == {"a": (5000, 0), "root": (0, 5000)}
    assert sound(cluster)


def test_pods_of_other_roles_or_on_a_node_already_leave_it_alone() -> None:
    intake, cluster = for_a_role()
    intake.put(pod("ps-0", "j", cpu=1, role="ps"))
    intake.put(pod("w-0", "j", cpu=1, role="worker", node="n1", phase="Running"))
    assert held(cluster) == 3000
    assert sound(cluster)


def test_a_role_s_reservation_expires_or_goes_with_its_job() -> None:
    _, cluster = for_a_role()
    cluster.reservations.advance(100.0)
    assert (held(cluster), reserved_cpu(cluster)) == (0, {})
    intake, cluster = for_a_role()
    intake.drop(group("j"))
    assert (held(cluster), reserved_cpu(cluster)) == (0, {})
    assert sound(cluster)
    cluster.reservations.advance(1.0)
    assert not cluster.reservations
