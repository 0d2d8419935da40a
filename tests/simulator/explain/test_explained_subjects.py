"""Explanations of running jobs, pods, queues and nodes; names are looked up, ambiguous ones are reported."""

import pytest

from stromboli.engine.explanation.event_history import History, HistoryEntry, history_of
from stromboli.simulator.explain.subject_lookup import NotFound, UnknownType, look_up
from stromboli.testing.world import World
from tests.simulator.explain.explained_worlds import HOUR, explain_job, explain_node, explain_queue


def two_queues() -> World:
    """Queue `a` borrows from `b`, in which a job waits."""
    world = World("n1 cpu=8; n2 cpu=4", "a; b")
    world.job("old", pods=2, cpu=4, queue="a", running_on="n1 n1", annotations=HOUR)
    return world.job("new", pods=2, cpu=4, queue="b")


def test_a_job_that_starts_with_the_next_cycle_has_its_nodes():
    job = explain_job(World("n1 cpu=8").job("soon", pods=2, cpu=2), "soon")
    assert (job.state, job.wait, job.remedies) == ("starts", None, [])
    assert job.summary == "PodGroup default/soon starts in the next cycle on n1 (2)"


def test_a_running_job_has_its_nodes_and_start():
    world = World("n1 cpu=8").job("soon", pods=2, cpu=2, annotations=HOUR)
    world.run()
    world.task("soon-0")
    job = explain_job(world, "soon")
    assert job.state == "runs"
    assert [(place.node, place.pods) for place in job.places] == [("n1", 2)]
    assert (job.since, job.until) == ("2026-11-01T12:00:00Z", "2026-11-01T13:00:00Z")
    assert ("started", "2 of its 2 pods were started") in {
        (each.kind, each.text) for each in job.history.entries
    }


def test_a_pod_is_explained_with_its_job():
    job = explain_job(two_queues(), "pod/new-1")
    assert (job.pod, job.pod_group) == ("new-1", "new")
    assert job.pod_text.startswith("Pod new-1 waits: ")


def test_a_queue_has_its_shares_waiting_jobs_and_borrowers():
    queue = explain_queue(two_queues(), "b")
    (cpu,) = [share for share in queue.shares if share.resource == "cpu"]
    assert (cpu.used, cpu.waiting) == ("0", "8")
    assert [(each.job, each.pods) for each in queue.waiting] == [("default/new", 2)]
    assert queue.waiting[0].reason
    assert queue.borrowers == ["a uses cpu 2 above its deserved share"]
    assert queue.summary == "Queue b is open: 0 jobs hold resources, 1 waits"
    borrowing = explain_queue(two_queues(), "a")
    assert [(share.borrowed, share.used) for share in borrowing.shares if share.resource == "cpu"] == [
        ("2", "8")
    ]


def test_a_node_has_its_resources_and_the_jobs_that_fit():
    node = explain_node(two_queues(), "n2")
    (cpu,) = [share for share in node.shares if share.resource == "cpu"]
    assert (cpu.allocatable, cpu.used, cpu.free) == ("4", "0", "4")
    assert [each.job for each in node.could_fit] == ["default/new"]
    full = explain_node(two_queues(), "n1")
    assert [(each.job, each.pods) for each in full.running] == [("default/old", 2)]
    assert full.could_fit == []


def test_a_node_has_reasons_why_it_gets_no_new_pods():
    world = World("n1 cpu=4 +team=ml:NoSchedule")
    assert explain_node(world, "n1").takes_nobody == ["it accepts only pods that tolerate team=ml:NoSchedule"]


# -- names


def test_a_plain_name_is_a_job_before_it_is_a_queue_and_both_are_reported():
    world = World("n1 cpu=4", "twin").job("twin", cpu=1)
    found, others = look_up(world.cluster, "twin")
    assert (found.kind, others) == ("PodGroup", ["queue/twin"])
    assert look_up(world.cluster, "queue/twin")[0].queue is world.cluster.queues["twin"]


def test_a_name_in_several_namespaces_asks_for_one_of_them():
    world = World("n1 cpu=4").job("same", cpu=1, namespace="x").job("same", cpu=1, namespace="y")
    with pytest.raises(NotFound, match="exists in several namespaces \\(x, y\\)"):
        look_up(world.cluster, "same")
    assert look_up(world.cluster, "same", "y")[0].job.namespace == "y"


def test_a_name_in_another_namespace_is_reported_with_that_namespace():
    world = World("n1 cpu=4").job("there", cpu=1, namespace="x")
    with pytest.raises(NotFound, match="found in namespace x"):
        look_up(world.cluster, "there", "default")


def test_an_unknown_type_is_wrong_usage():
    with pytest.raises(UnknownType, match="unknown type 'secret'"):
        look_up(World("n1 cpu=4").cluster, "secret/x")


# -- history


def test_the_history_of_the_leader_is_merged_with_that_of_objects_by_time():
    objects = history_of([HistoryEntry(time="2026-01-01T00:00:02Z", kind="started", text="later")])
    evicted = HistoryEntry(
        time="2026-01-01T00:00:01Z",
        kind="evicted",
        text="pod a-0 evicted",
        action="preempt",
        beneficiary="default/b",
        chosen_by="tier 1 (priority)",
        source="leader",
    )
    merged = objects.merged(History(entries=[evicted, evicted], leader="s-0"))
    assert [entry.text for entry in merged.entries] == ["pod a-0 evicted", "later"]
    assert merged.leader == "s-0"
