"""What is reserved for admitted jobs by queue: kept by job, equal to a count of all jobs (spec 03 6.1)."""

from stromboli.engine.job_needs import JobNeeds
from stromboli.engine.queue_limits import InqueueResources, ceiling
from stromboli.engine.rules import Rules
from stromboli.model.amounts import UNLIMITED
from stromboli.model.cluster import Cluster, Dirty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.testing import World
from tests.manifests import group, job_named, node, pod, task_named


def needs_in(cluster: Cluster) -> JobNeeds:
    return JobNeeds(cluster, Rules([]), reserves_minimum=False)


def pledges_of(cluster: Cluster) -> InqueueResources:
    pledges = InqueueResources()
    pledges.opening(needs_in(cluster), Dirty())
    return pledges


def world(phase: str, *pods: object, minimum: int = 1) -> Cluster:
    owner = group("g", minimum, phase=phase, minResources={"cpu": "3", "memory": "1Gi"})
    return World().add(node("n1"), owner, *pods).cluster


def test_what_an_admitted_job_lacks_of_its_minimum_is_reserved() -> None:
    cluster = world("Inqueue", pod("g-0", "g", on="n1", memory="1Gi"), pod("g-1", "g", memory="1Gi"))
    assert pledges_of(cluster).of(cluster.queues["default"]) == {CPU: 2000, 2: -1}


def test_a_job_that_runs_is_owed_it_only_once_it_has_started() -> None:
    short = world("Running", pod("g-0", "g", on="n1", memory="1Gi"), minimum=2)
    begun = world("Running", pod("g-0", "g", on="n1", memory="1Gi"), minimum=1)
    assert pledges_of(short).of(short.queues["default"]) == {2: -1}
    assert pledges_of(begun).of(begun.queues["default"]) == {CPU: 2000, 2: -1}


def test_what_a_job_has_beyond_its_minimum_is_credited() -> None:
    cluster = world("Running", pod("g-0", "g", on="n1", cpu=4, memory="1Gi"))
    assert pledges_of(cluster).of(cluster.queues["default"]) == {CPU: -1000, 2: -1}


def test_nothing_is_reserved_for_a_job_before_its_admission() -> None:
    cluster = world("Pending", pod("g-0", "g", memory="1Gi"))
    pledges, home = pledges_of(cluster), cluster.queues["default"]
    assert pledges.of(home) == {}
    promised = pledges.admit(job_named(cluster, "g"))
    assert promised == pledges.of(home) == {CPU: 3000, MEMORY: 2**30}


def test_reservations_are_counted_again_when_the_next_session_opens() -> None:
    cluster = world("Pending", pod("g-0", "g", memory="1Gi"))
    pledges, job = pledges_of(cluster), job_named(cluster, "g")
    pledges.admit(job)
    cluster.dirty = Dirty()
    cluster.dirty.everything = False
    cluster.set_phase(job, "Inqueue")
    cluster.move(task_named(cluster, "g-0"), Status.ALLOCATED, cluster.nodes["n1"])
    pledges.opening(needs_in(cluster), cluster.dirty)
    assert pledges.of(job.queue) == pledges_of(cluster).of(job.queue) == {CPU: 2000, 2: -1}


def test_what_gated_pods_ask_for_is_not_held_for_their_job() -> None:
    cluster = world("Inqueue", pod("g-0", "g", memory="1Gi", gates=("wait",)))
    assert pledges_of(cluster).of(cluster.queues["default"]) == {CPU: 2000}


def test_a_job_that_left_its_queue_is_owed_nothing_there() -> None:
    cluster = world("Inqueue")
    pledges, job, home = pledges_of(cluster), job_named(cluster, "g"), cluster.queues["default"]
    cluster.join(job, None)
    pledges.opening(needs_in(cluster), cluster.dirty)
    assert pledges.of(home) == {}


def test_the_ceiling_is_what_is_not_promised_to_others_within_the_own_limit() -> None:
    limited = Queue("q")
    limited.guarantee, limited.capability = {CPU: 1000}, {CPU: 0, MEMORY: 5}
    assert ceiling(limited, {CPU: 3000, MEMORY: 9}) == {CPU: 4000, MEMORY: 5}
    limited.capability = {}
    assert ceiling(limited, {CPU: UNLIMITED}) == {CPU: UNLIMITED}
