"""Each gate that may hold a job has a diagnosis with what is short and remedies."""

import pytest

from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.cluster import Dirty
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.explain.cluster_explanation import ClusterExplainer
from stromboli.simulator.explain.explanation_document import (
    Explanation,
    JobExplanation,
    as_builtins,
)
from stromboli.simulator.explain.subject_lookup import look_up
from stromboli.testing.policy_text import catalog_with, policy_of, policy_text
from stromboli.testing.world import NOON, World
from tests.manifests import discovered, hyper_node, pod
from tests.simulator.explain.explained_worlds import HOUR, explain_job, holding, remedies

EVICTING = "enqueue, allocate, preempt, reclaim, backfill"
PLUGINS = "priority gang conformance | predicates proportion"


def full_node() -> World:
    """A node of 8 cores, all held by a job of an hour."""
    return World("n1 cpu=8", "a; b").job("old", cpu=8, queue="a", running_on="n1", annotations=HOUR)


def elastic(priority: int) -> World:
    """A node of 4 cores, all held by a job that could do with half of them."""
    return World("n1 cpu=4").job("low", pods=2, minimum=1, cpu=2, running_on="n1 n1", priority=priority)


def test_a_closed_queue_holds_a_job_that_would_start_if_it_were_opened():
    job = explain_job(World("n1 cpu=8", "shut state=Closed").job("late", cpu=1, queue="shut"), "late")
    assert (job.state, holding(job)) == ("waits", "queue")
    assert remedies(job)["open-queue"] == 'queue "shut" is opened'
    assert remedies(job)["queue"] == 'it is in queue "default" instead of "shut"'


def test_a_queue_that_does_not_exist_holds_a_job_that_would_start_in_another():
    job = explain_job(World("n1 cpu=8").job("lost", cpu=1, queue="nowhere"), "lost")
    assert holding(job) == "queue"
    assert 'there is no queue "nowhere"' in job.gates[1].text or "nowhere" in job.summary
    assert remedies(job)["queue"] == 'it is in queue "default" instead of "nowhere"'


def test_a_job_that_requests_more_than_is_free_is_not_admitted():
    world = full_node().job("big", pods=2, cpu=4, queue="b", min_resources={"cpu": 8})
    job = explain_job(world, "big")
    assert holding(job) == "admission"
    assert job.wait is not None
    assert [short.resource for short in job.wait.shortages] == ["cpu"]


def test_a_queue_over_its_share_names_its_limit_and_what_would_raise_it():
    world = World("n1 cpu=16", "small capability=cpu:4")
    world.job("old", cpu=3, queue="small", running_on="n1").job("next", cpu=2, queue="small")
    job = explain_job(world, "next")
    assert holding(job) == "share"
    assert "its capability is cpu 4, cpu 3 is in use" in job.summary
    assert remedies(job)["capability"] == 'the capability of queue "small" is cpu 5 instead of cpu 4'
    assert remedies(job)["requests"] == "its pod requests cpu 1 instead of cpu 2"
    assert remedies(job)["end"] == "default/old ends"


def test_an_incomplete_gang_would_start_with_a_smaller_minimum():
    job = explain_job(World("n1 cpu=8").job("part", pods=2, minimum=5, cpu=1), "part")
    assert holding(job) == "gang"
    assert remedies(job)["minimum"] == "minMember is 2 instead of 5"


def test_the_minimum_that_the_capability_of_a_queue_allows_is_named():
    world = World("n1 cpu=32", "small capability=cpu:4").job("big", pods=8, cpu=1, queue="small")
    job = explain_job(world, "big", "enqueue, allocate", "gang | predicates capacity")
    assert remedies(job)["minimum"] == "minMember is 4 instead of 8"


def test_a_gang_without_capacity_has_shortages_capacity_by_node_and_holders():
    world = World("n1 cpu=8; n2 cpu=8", "a; b")
    world.job("old", pods=2, cpu=6, queue="a", running_on="n1 n2", annotations=HOUR)
    world.job("train", pods=3, cpu=3, queue="b")
    job = explain_job(world, "train")
    assert holding(job) == "room"
    assert job.wait is not None
    (short,) = job.wait.shortages
    assert (short.resource, *short.texts) == ("cpu", "3", "2", "1")
    plain = as_builtins(Explanation(subjects=[job]))["subjects"][0]["wait"]
    assert list(plain) == ["gate", "reason", "message", "hint", "shortages", "node_reasons"]
    assert plain["shortages"] == [{"resource": "cpu", "asked": "3", "available": "2", "missing": "1"}]
    assert plain["hint"] == job.wait.remedy
    (group,) = job.room
    assert (group.nodes, group.usable, group.fits) == (2, 2, 0)
    assert (group.largest_free["cpu"], group.lacks["cpu"]) == ("2", "1")
    (holder,) = job.holders
    assert (holder.job, holder.holds, holder.not_evicted) == (
        "default/old",
        {"cpu": "12"},
        "no evicting action",
    )
    assert remedies(job)["requests"] == "each pod requests cpu 1 instead of cpu 3"
    assert remedies(job)["nodes"].startswith("2 more nodes like n1")
    assert job.forecast is not None
    assert job.forecast.start == "2026-11-01T13:00:00Z"
    assert job.forecast.after == ["default/old"]


def test_a_pod_larger_than_any_node_would_start_if_it_asked_for_less():
    job = explain_job(World("n1 cpu=4; n2 cpu=8").job("huge", cpu=9), "huge")
    assert holding(job) == "room"
    assert remedies(job) == {"requests": "its pod requests cpu 8 instead of cpu 9"}


def test_a_cordoned_node_would_do_if_it_were_uncordoned():
    world = World("n1 cpu=4").job("waits", cpu=1)
    node = world.cluster.nodes["n1"].object
    assert node is not None
    node.spec.unschedulable = True
    world.add(node)
    job = explain_job(world, "waits")
    assert remedies(job) == {"uncordon": "node n1 is uncordoned"}


def test_the_end_of_other_jobs_does_not_let_a_pod_onto_a_cordoned_node():
    world = World("n1 cpu=4").job("old", cpu=1, running_on="n1", annotations=HOUR).job("waits", cpu=1)
    node = world.cluster.nodes["n1"].object
    assert node is not None
    node.spec.unschedulable = True
    forecast = explain_job(world.add(node), "waits").forecast
    assert forecast is not None
    assert forecast.text == "It does not start, even after all running jobs end."


def test_the_start_is_unknown_if_running_jobs_have_no_time_limit():
    world = World("n1 cpu=4; n2 cpu=4").job("old", cpu=2, running_on="n1", annotations=HOUR)
    world.job("endless", cpu=4, running_on="n2").job("waits", pods=2, cpu=4)
    forecast = explain_job(world, "waits").forecast
    assert forecast is not None
    assert forecast.text == "Start time unknown: it waits for jobs without a time limit."


def test_a_job_that_is_larger_than_the_cluster_does_not_start_by_waiting():
    world = World("n1 cpu=4; n2 cpu=4").job("endless", cpu=4, running_on="n2")
    forecast = explain_job(world.job("huge", pods=3, cpu=4), "huge").forecast
    assert forecast is not None
    assert forecast.text == "It does not start by waiting: it requests more than all nodes have."


def test_a_tainted_node_would_do_for_pods_that_tolerate_the_taint():
    job = explain_job(World("n1 cpu=4 +team=ml:NoSchedule").job("waits", cpu=1), "waits")
    assert remedies(job) == {"toleration": "its pods tolerate team=ml:NoSchedule"}


def test_a_node_selector_that_no_node_matches_is_reported():
    job = explain_job(World("n1 cpu=4").job("picky", cpu=1, spec={"nodeSelector": {"disk": "fast"}}), "picky")
    assert job.requests[0].node_selector == {"disk": "fast"}
    assert "node-selector" in remedies(job)


def test_a_job_held_back_by_a_rule_waits_for_one_that_was_promised_a_start():
    world = World("n1 cpu=10").job("old", cpu=6, running_on="n1", annotations=HOUR)
    world.job("large", cpu=10, priority=10, annotations=HOUR)
    world.job("long", cpu=3, annotations={"stromboli.sh/time-limit": "3h"})
    plugins = "priority gang | predicates backfill-reservation"
    job = explain_job(world, "long", "enqueue, allocate, backfill", plugins)
    assert (job.state, holding(job)) == ("waits", "rules")
    limit = "its time limit is 3600s, so that it delays no reserved job (annotation stromboli.sh/time-limit)"
    assert remedies(job)["time-limit"] == limit


def test_scheduling_gates_hold_pods_until_they_are_removed():
    world = World("n1 cpu=4").job("held", cpu=1, spec={"schedulingGates": [{"name": "example.com/review"}]})
    job = explain_job(world.job("old", cpu=1, running_on="n1", annotations=HOUR), "held")
    assert holding(job) == "gang"
    assert job.forecast is not None
    assert "its pods have scheduling gates" in job.forecast.text
    assert remedies(job) == {
        "scheduling-gates": "the scheduling gates of its pods are removed (example.com/review)"
    }


def test_a_job_for_which_capacity_is_being_freed_has_no_remedies():
    world = elastic(priority=1).job("high", cpu=2, priority=100)
    job = explain_job(world, "high", EVICTING, PLUGINS)
    assert (job.state, holding(job)) == ("waits", "room")
    assert job.wait is not None
    assert job.wait.reason == "Pipelined"
    assert job.remedies == []


def test_room_by_hyper_node_shows_the_values_of_labels():
    world = World("n0 cpu=4").add(discovered("hypernode-racks-tier1-5q82h", "rack", "rack-1", nodes=["n0"]))
    world.job("old", cpu=3, running_on="n0")
    world.job("ring", cpu=4, group={"networkTopology": {"mode": "hard", "highestTierAllowed": 1}})
    job = explain_job(world, "ring", "allocate", "gang | predicates network-topology-aware")
    assert [(each.name, each.title) for each in job.hyper_nodes] == [
        ("hypernode-racks-tier1-5q82h", "rack-1")
    ]


def test_a_gang_that_must_stay_below_a_switch_has_capacity_by_hyper_node():
    world = World("; ".join(f"n{number} cpu=4" for number in range(4)))
    for number in range(2):
        world.add(hyper_node(f"s{number}", 1, nodes=[f"n{2 * number}", f"n{2 * number + 1}"]))
    world.job("old", pods=2, cpu=3, running_on="n0 n2")
    topology = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    world.job("ring", pods=2, cpu=4, group=topology)
    job = explain_job(world, "ring", "allocate", "gang | predicates network-topology-aware")
    assert (holding(job), len(job.hyper_nodes)) == ("room", 2)
    assert {(each.fits, each.needed) for each in job.hyper_nodes} == {(1, 2)}
    assert remedies(job)["topology"] == "its topology is soft (networkTopology.mode: soft)"


# -- who is not evicted, and why


def reason_not_evicted(world: World, name: str, actions: str = EVICTING) -> str:
    return explain_job(world, name, actions, PLUGINS).holders[0].not_evicted


def test_pods_whose_priority_is_not_lower_are_not_evicted():
    world = World("n1 cpu=4").job("old", cpu=4, running_on="n1", priority=5).job("new", cpu=4, priority=5)
    assert reason_not_evicted(world, "new") == "its priority 5 is not lower than 5"


def test_pods_that_are_not_preemptable_are_not_evicted():
    world = World("n1 cpu=4")
    world.job("old", cpu=4, running_on="n1", annotations={"volcano.sh/preemptable": "false"})
    assert reason_not_evicted(world.job("new", cpu=4, priority=5), "new") == "its pods are not preemptable"


def test_pods_of_a_queue_that_is_not_reclaimable_are_not_evicted():
    world = World("n1 cpu=4", "a reclaimable=false; b").job("old", cpu=4, queue="a", running_on="n1")
    assert reason_not_evicted(world.job("new", cpu=2, queue="b"), "new") == 'its queue "a" is not reclaimable'


@pytest.mark.parametrize(
    ("arguments", "priority", "why"),
    [
        ("protectFor: 1h", 5, "its pods are protected until 2026-11-01T12:30:00Z"),
        ("respectPriority: true", 5, ""),
        ("respectPriority: true", 4, "its priority 5 is higher than 4"),
        ("minWaitTime: 10000h", 5, "the waiting pod was created only just now"),
    ],
)
def test_a_holder_that_is_protected_by_an_option_is_reported_so(arguments: str, priority: int, why: str):
    world = World("n1 cpu=4", "a; b").job("old", pods=0, minimum=0, priority=5, queue="a")
    world.add(pod("old-0", "old", cpu=4, on="n1", status={"startTime": "2026-11-01T11:30:00Z"}))
    world.job("new", cpu=2, priority=priority, queue="b")
    text = f"{policy_text(EVICTING, PLUGINS)}configurations:\n- name: reclaim\n  arguments: {{{arguments}}}\n"
    answers = explain_job(world, "new", policy=text).holders
    assert [holder.not_evicted for holder in answers] == ([why] if why else [])


def test_a_holder_whose_queue_would_take_its_pod_back_is_reported_so():
    gpu = "nvidia.com/gpu"
    world = World(f"n1 cpu=8,{gpu}=3", f"a deserved=cpu:4,{gpu}:2; b deserved=cpu:4,{gpu}:1")
    world.job("old", minimum=0, cpu=1, gpu=3, queue="a", running_on="n1").job("new", cpu=1, gpu=2, queue="b")
    plugins = PLUGINS.replace("proportion", "capacity")
    text = f"{policy_text(EVICTING, plugins)}configurations:\n- name: reclaim\n  arguments: {{respectShares: true}}\n"
    (holder,) = explain_job(world, "new", policy=text).holders
    assert holder.not_evicted == "that would bring their queues no closer to their shares"


def test_no_pods_are_evicted_without_an_evicting_action():
    world = (
        World("n1 cpu=4", "a; b").job("old", cpu=4, queue="a", running_on="n1").job("new", cpu=2, queue="b")
    )
    why = reason_not_evicted(world, "new", "enqueue, allocate, preempt")
    assert why == "it is in another queue, and the policy has neither reclaim nor gangreclaim"


def test_an_action_that_the_policy_lacks_is_tried_and_names_the_victims():
    world = elastic(priority=1).job("high", cpu=2, priority=100)
    job = explain_job(world, "high", "enqueue, allocate, backfill", PLUGINS)
    (remedy,) = [each for each in job.remedies if each.kind == "actions"]
    assert (remedy.evicts, remedy.cycles) == (["default/low-1"], 2)
    assert remedy.actions == ["enqueue", "allocate", "backfill", "preempt"]


def test_a_higher_priority_is_tried_where_the_policy_preempts():
    world = elastic(priority=5)
    world.job("other", cpu=1, priority=10, queue="nowhere").job("same", cpu=2, priority=5)
    (remedy,) = [
        each for each in explain_job(world, "same", EVICTING, PLUGINS).remedies if each.kind == "priority"
    ]
    assert remedy.text == "its priority is 10 (class priority-10) instead of 5"
    assert remedy.evicts == ["default/low-1"]


# -- plugins that fail


class Broken(Plugin):
    """A user's plugin that cannot be opened."""

    name = "broken"

    def opening(self, session: Session, changed: Dirty) -> None:
        raise RuntimeError("no session for you")


def test_a_plugin_that_fails_is_named_and_nothing_is_tried():
    world = World("n1 cpu=4").job("train", cpu=1)
    catalog = catalog_with((Broken,), ())
    policy = policy_of(catalog, "allocate", "gang broken | predicates", "")
    found, _ = look_up(world.cluster, "train")
    loaded = Loaded(world.rehearsal.intake, 0.0, 0, [], {}, {})
    (job,) = ClusterExplainer(loaded, policy, catalog, NOON).explain([found]).subjects
    assert isinstance(job, JobExplanation)
    assert job.state == "waits"
    assert "plugin 'broken' failed in opening" in job.summary
    assert job.remedies == []


def test_remedies_that_are_too_large_to_be_tried_are_not_reported_as_no_help() -> None:
    job = explain_job(World("n1 cpu=1").job("wide", pods=100, minimum=100, cpu=1), "wide")
    assert job.untried > 0
    assert not any("more nodes" in text for text in job.in_vain)
