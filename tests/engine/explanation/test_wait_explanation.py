"""Why a job waits: the one reason that matters, with the next step."""

import pytest

from stromboli.engine.explanation.diagnosis import Diagnosis, Holder, Shortage
from stromboli.engine.plugin import Plugin, Promise
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.testing import World


def waiting(world: World, job: str = "default/a", policy: str = "basic") -> Diagnosis:
    return world.run(policy=policy).pending[job]


def leaving(node: str, cpu: int) -> dict[str, object]:
    """A terminating pod."""
    return {
        "kind": "Pod",
        "metadata": {"name": "old", "deletionTimestamp": "2026-11-01T11:00:00Z"},
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": str(cpu)}}}]},
        "status": {"phase": "Running"},
    }


def test_a_pod_larger_than_what_is_free_hears_how_much_that_is() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=8").job("old", pods=2, cpu=3, running_on="n1 n2")
    explanation = world.job("a", cpu=6).run("enqueue, allocate", "gang").pending["default/a"]
    assert explanation.reason == "Insufficient cpu"
    assert explanation.hint == "each pod requests cpu 6; at most cpu 5 is free on one node (n2)"


def test_a_gang_hears_how_much_of_it_would_fit() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=2; n3 cpu=8").job("old", cpu=8, running_on="n3")
    explanation = world.job("a", pods=3, cpu=2.5).run("enqueue, allocate", "gang").pending["default/a"]
    assert explanation.hint == "1 of 3 pods fit: they request cpu 7500m in total; cpu 6 is free"
    world = World(nodes="n1 cpu=4; n2 cpu=4; n3 cpu=8").job("old", cpu=8, running_on="n3")
    explanation = world.job("a", pods=3, cpu=2.5).run("enqueue, allocate", "gang").pending["default/a"]
    assert explanation.hint.endswith("they request cpu 7500m in total; cpu 8 is free but fragmented")


@pytest.mark.parametrize("policy", ["default", "basic", "fair-share", "full", "high-priority"])
def test_failed_attempts_of_evicting_actions_do_not_change_the_diagnosis_of_a_gang(policy: str) -> None:
    world = World(nodes="n1 cpu=8; n2 cpu=8", queues="research weight=3; production")
    world.job("train", queue="research", pods=3, cpu=3, running_on="n1 n1 n2")
    explanation = waiting(world.job("a", queue="production", pods=2, cpu=3.5), policy=policy)
    assert explanation.message == "a-1: 0/2 nodes are unavailable: 2 Insufficient cpu."
    free = "they request cpu 7 in total; cpu 7 is free but fragmented"
    assert explanation.hint == f"1 of 2 pods fit: {free}"


def test_capacity_that_was_taken_since_a_gang_was_tried_does_not_count() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4; n3 cpu=4").job("old", cpu=4, running_on="n3")
    world.job("a", pods=3, cpu=3).job("b", cpu=4)
    explanation = world.run("enqueue, allocate", "gang").pending["default/a"]
    assert explanation.hint == "1 of 3 pods fit: they request cpu 9 in total; cpu 4 is free"


def test_what_a_gang_holds_while_it_waits_does_not_count_as_free() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4").add(leaving("n2", cpu=4))
    world.job("first", pods=2, cpu=3).job("a", cpu=2)
    result = world.run("enqueue, allocate", "gang")
    assert result.pipelined == {"default/first-1": "n2"}
    hint = "each pod requests cpu 2; at most cpu 1 is free on one node (n1)"
    assert result.pending["default/a"].hint == hint


@pytest.mark.parametrize(
    ("nodes", "spec", "hint"),
    [
        ("n1 cpu=4 +gpu=yes:NoSchedule", {}, "tolerate a taint or remove it: gpu=yes:NoSchedule"),
        ("n1 cpu=4", {"nodeSelector": {"disk": "ssd"}}, "label a node with disk=ssd"),
        ("n1 cpu=4,pods=0", {}, "every node is at its pod limit"),
        (
            "n1 cpu=4",
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "create it, or add it to the files",
        ),
    ],
)
def test_refusals_of_nodes_have_a_remedy(nodes: str, spec: dict[str, object], hint: str) -> None:
    explanation = waiting(World(nodes=nodes).job("a", cpu=1, spec=spec))
    assert hint in explanation.hint
    assert explanation.message.startswith("a-0: 0/1 nodes are unavailable: 1 ")


def test_conditions_of_a_cluster_do_not_speak_of_the_files_of_a_plan() -> None:
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    sentence = waiting(World(nodes="n1 cpu=4").job("a", cpu=1, spec=spec)).sentence
    assert sentence.endswith('persistentvolumeclaim "data" not found; create it')


def test_a_job_at_the_gate_hears_which_resource_is_short() -> None:
    world = World(nodes="n1 cpu=4").job("a", cpu=1, min_resources={"cpu": 3})
    explanation = waiting(world.job("old", cpu=2, running_on="n1"))
    assert explanation.reason == "resource in cluster is overused"
    assert explanation.hint == (
        "it requests cpu 3 (spec.minResources), the cluster has cpu 2 free; free capacity may be reserved for "
        "admitted jobs: wait until these and running jobs end, add nodes or request less"
    )


def test_the_remedy_for_a_job_that_can_never_fit_is_not_to_wait() -> None:
    explanation = waiting(World(nodes="n1 cpu=4").job("a", cpu=1, min_resources={"cpu": 100}))
    assert explanation.reason == "Larger than the cluster"
    assert explanation.hint == "it requests cpu 100, all nodes together have cpu 4: add nodes or request less"


def test_the_remedy_for_a_pod_larger_than_any_node_is_not_to_wait() -> None:
    world = World(nodes="n1 cpu=4\nn2 cpu=4").job("a", cpu=6, min_resources={"cpu": 6})
    explanation = waiting(world.job("old", cpu=3, running_on="n1"))
    assert explanation.sentence.endswith(
        "no node is large enough for its cpu request; request less, or add a larger node"
    )


def test_a_job_at_the_gate_of_its_queue_hears_how_that_lets_it_in() -> None:
    world = World(nodes="n1 cpu=4", queues="q capability=cpu:1")
    world.job("a", cpu=1, queue="q", min_resources={"cpu": 2})
    explanation = world.run("enqueue, allocate", "gang proportion").pending["default/a"]
    assert explanation.hint == (
        'it requests cpu 2 (spec.minResources), the cluster has cpu 4 free; raise the capability of queue "q" (cpu 1)'
    )


def test_a_job_at_the_gate_hears_what_keeps_it_out_now_not_what_did_before() -> None:
    world = World(nodes="n1 cpu=4", queues="q capability=cpu:1")
    world.job("a", cpu=1, queue="q", min_resources={"cpu": 2})
    reasons = [world.run("enqueue", "overcommit proportion").pending["default/a"].reason]
    world.job("old", cpu=4, running_on="n1")
    reasons.append(world.step().pending["default/a"].reason)
    reasons.append(world.finish("old-0").step().pending["default/a"].reason)
    assert reasons == [
        "queue resource quota insufficient",
        "resource in cluster is overused",
        "queue resource quota insufficient",
    ]


def test_a_closed_queue_is_to_be_opened() -> None:
    explanation = waiting(World(nodes="n1 cpu=4", queues="shut state=Closed").job("a", cpu=1, queue="shut"))
    assert (explanation.reason, explanation.queue) == ("Queue Closed", "shut")
    assert explanation.hint == "open it: stromboli queue open shut"


def test_a_queue_that_had_its_share_says_what_it_holds() -> None:
    world = World(nodes="n1 cpu=8", queues="q capability=cpu:2")
    world.job("old", pods=2, cpu=1, queue="q", running_on="n1 n1").job("a", cpu=1, queue="q")
    explanation = waiting(world)
    assert explanation.reason == "Queue overused"
    assert explanation.message.endswith("a pod of this size: its capability is cpu 2, cpu 2 is in use")
    end = "wait for its jobs to end or raise its capability"
    assert explanation.hint == f"it requests cpu 1 and the queue holds cpu 2: {end}"


def test_a_queue_that_had_its_deserved_share_says_how_much_that_is() -> None:
    world = World(nodes="n1 cpu=8", queues="q; r").job("other", pods=8, minimum=1, cpu=1, queue="r")
    world.job("old", pods=4, cpu=1, queue="q", running_on="n1 n1 n1 n1").job("a", cpu=1, queue="q")
    explanation = waiting(world)
    assert explanation.message.endswith("of this size: its deserved share is cpu 4, cpu 4 is in use")
    assert explanation.hint.endswith("raise its weight")


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_a_queue_promised_to_a_gang_counts_as_held(plugin: str) -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=4", queues="q capability=cpu:6").add(leaving("n2", cpu=4))
    world.job("first", pods=2, cpu=3, queue="q").job("a", cpu=1, queue="q")
    result = world.run("enqueue, allocate", f"gang {plugin}")
    assert result.pending["default/first"].reason == "Pipelined"
    assert result.pending["default/a"].message.endswith("its capability is cpu 6, cpu 6 is in use")


def test_a_limit_above_a_queue_is_named_with_its_owner() -> None:
    queues = "eng capability=cpu:2; q parent=eng; p parent=eng guarantee=cpu:1"
    world = World(nodes="n1 cpu=8", queues=queues).job("a", pods=3, cpu=1, queue="q")
    tree = "tiers: [{plugins: [{name: gang}, {name: capacity, enableHierarchy: true}]}]"
    explanation = waiting(world, policy=f'actions: "enqueue, allocate"\n{tree}\n')
    text = 'queue "q" has capacity for 1 of 3 pods: the capability of "eng" is cpu 2, cpu 0 is in use'
    assert (explanation.reason, explanation.message) == ("Queue overused", text)


def test_a_queue_with_an_unnamed_limit_reports_what_it_holds() -> None:
    class Full(Plugin):
        """Every queue has enough."""

        name = "full-up"

        def overused(self, queue: Queue) -> bool:
            return True

    world = World(nodes="n1 cpu=8").job("a", cpu=1)
    explanation = world.run("enqueue, allocate", "full-up", plugin_classes=[Full]).pending["default/a"]
    assert explanation.message == 'queue "default" has used up its share'
    assert "the queue holds nothing: raise its weight, deserved or capability" in explanation.hint


def test_a_pod_larger_than_any_node_is_reported() -> None:
    text = "a-0 requests cpu {}, the largest node (n1) has cpu 8"
    for cpu in (9, 99):
        explanation = waiting(World(nodes="n1 cpu=8; n2 cpu=4").job("a", cpu=cpu))
        assert (explanation.reason, explanation.message) == ("Larger than any node", text.format(cpu))
    tried = World(nodes="n1 cpu=8; n2 cpu=4").job("a", cpu=9).run("allocate", "gang").pending["default/a"]
    assert (tried.reason, tried.hint) == ("Larger than any node", text.format(9))
    assert tried.counts == {"Insufficient cpu": 2}


def test_pods_that_exceed_no_node_by_one_resource_may_exceed_all_by_several() -> None:
    made = World(nodes="n1 cpu=8,memory=1Gi; n2 cpu=2,memory=64Gi").job("a", cpu=8, memory="8Gi")
    explanation = made.run("allocate", "gang").pending["default/a"]
    assert explanation.reason == "Larger than any node"
    assert explanation.hint == "a-0 requests cpu 8, memory 8Gi, and no node has all of these"


def test_a_gang_that_empty_nodes_could_not_hold_is_larger_than_the_cluster() -> None:
    made = World(nodes="n1 cpu=4; n2 cpu=4; n3 cpu=4").job("a", pods=4, cpu=3)
    explanation = made.run("allocate", "gang").pending["default/a"]
    assert explanation.reason == "Larger than the cluster"
    text = "even empty nodes fit fewer of its pods than the 4 that must start together"
    assert text in explanation.sentence


def test_all_resources_of_which_no_node_has_enough_are_reported() -> None:
    explanation = waiting(World(nodes="n1 cpu=8; n2 cpu=4").job("a", cpu=99, gpu=3))
    assert explanation.message == (
        "a-0 requests cpu 99, nvidia.com/gpu 3, the most on one node is cpu 8, nvidia.com/gpu 0"
    )
    assert [short.resource for short in explanation.shortages] == ["cpu", "nvidia.com/gpu"]


def test_room_that_is_being_freed_is_worth_waiting_for() -> None:
    world = World(nodes="n1 cpu=2").add(leaving("n1", cpu=2))
    result = world.job("a", cpu=2).run("enqueue, allocate", "gang")
    assert result.pipelined == {"default/a-0": "n1"}
    assert result.pending["default/a"].message == "capacity is being freed on n1"


def test_a_job_that_does_not_wait_has_no_diagnosis() -> None:
    world = World(nodes="n1 cpu=2").job("a", cpu=1).job("b", cpu=1, running_on="n1")
    assert world.run("enqueue, allocate", "gang").pending == {}


def test_shortages_on_nodes_have_numbers_and_the_queues_that_hold_most() -> None:
    world = World(nodes="n1 cpu=4; n2 cpu=8", queues="q1; q2")
    world.job("old", queue="q1", pods=2, cpu=3, running_on="n1 n2")
    explanation = world.job("a", queue="q2", cpu=6).run("enqueue, allocate", "gang").pending["default/a"]
    assert explanation.gate == "nodes"
    assert explanation.shortages == (Shortage("cpu", asked=6000, available=5000),)
    assert explanation.shortages[0].missing == 1000
    assert explanation.holders == (Holder("q1", "cpu", 6000),)


def test_the_limit_of_a_queue_has_numbers_and_what_the_queue_holds() -> None:
    world = World(nodes="n1 cpu=8", queues="q capability=cpu:2")
    world.job("old", queue="q", cpu=2, running_on="n1").job("a", queue="q", cpu=1)
    explanation = waiting(world)
    assert (explanation.gate, explanation.reason) == ("queue-limits", "Queue overused")
    assert explanation.shortages == (Shortage("cpu", asked=1000, available=0),)
    assert explanation.holders == (Holder("q", "cpu", 2000),)


def test_the_reason_against_admission_has_numbers() -> None:
    world = World(nodes="n1 cpu=4").job("old", cpu=3, running_on="n1")
    explanation = waiting(world.job("a", cpu=3, min_resources={"cpu": 3}))
    assert explanation.gate == "enqueue"
    assert explanation.shortages == (Shortage("cpu", asked=3000, available=1000),)
    assert explanation.holders == (Holder("default", "cpu", 3000),)


def test_a_job_that_does_not_wait_has_no_explanation() -> None:
    world = World(nodes="n1 cpu=4").job("a", cpu=1)
    outcome = world.run().outcome
    (job,) = world.cluster.jobs.values()
    assert outcome.explain(job) is None
    assert outcome.explain_task(world.task("a-0")) == ""


def test_of_two_jobs_that_are_too_large_each_hears_of_its_own_pod() -> None:
    world = World(nodes="n1 cpu=4", queues="small capability=cpu:1")
    result = world.job("a", cpu=6, queue="small").job("b", cpu=6, queue="small").run(policy="basic")
    messages = {name: explanation.message for name, explanation in result.pending.items()}
    assert messages["default/a"].startswith("a-0 requests cpu 6")
    assert messages["default/b"].startswith("b-0 requests cpu 6")


@pytest.mark.parametrize(
    ("promise", "text", "remedy"),
    [
        (
            Promise(0.0, ("n1",), (), overdue=True),
            "capacity on n1 is reserved for it and is not free yet, although the reserved time has come",
            "wait until it is free",
        ),
        (
            Promise(0.0, (), ("default/a",), overdue=True),
            "queue quota is reserved for it until default/a end, which are over their time limits",
            "wait until these jobs end, or end them",
        ),
        (
            Promise(0.0, ("n1",), ("default/a", "default/b"), overdue=True),
            "capacity on n1 is reserved for it until default/a, default/b end, which are over their time limits",
            "wait until these jobs end, or end them",
        ),
    ],
)
def test_an_overdue_promise_names_the_jobs_it_waits_for_only_if_there_are_any(
    promise: Promise, text: str, remedy: str
) -> None:
    class Promising(Plugin):
        name = "promising"

        def promised(self, job: Job) -> Promise:
            return promise

    world = World(nodes="n1 cpu=4").job("train", cpu=9)
    result = world.run("enqueue, allocate", "promising gang", plugin_classes=[Promising])
    explanation = result.pending["default/train"]
    assert (explanation.message, explanation.hint) == (text, remedy)
