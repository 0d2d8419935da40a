"""What a cycle says when it closes: phases, messages, conditions, events, queue status (spec 01 4.2, 4.3, 11)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Bind, Decision, Event, PodCondition, PodGroupStatus, QueueStatus
from stromboli.engine.explanation.volcano_messages import group_message
from stromboli.engine.explanation.wait_gates import Diagnoses
from stromboli.engine.outcome import JobMessages, WaitCondition, wait_condition
from stromboli.engine.placement.node_functions import Refusal
from stromboli.engine.placement.verdict import verdict_text
from stromboli.engine.plugin import Invalid, Plugin
from stromboli.model.job import Job, JobId
from stromboli.model.queue import lineage
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.testing import World
from stromboli.testing.policy_text import catalog_with, policy_of, policy_text
from stromboli.testing.world import NOON
from tests.manifests import Manifest, group, job_named, node, pod, queue, task_named

JOB = JobId("PodGroup", "default", "job")


def cycle(*objects: Manifest, tiers: str = "gang", actions: str = "enqueue, allocate, backfill") -> Outcome:
    return World().add(*objects).run(actions, tiers).outcome


def of_kind(outcome: Outcome, kind: type[Decision]) -> list[Any]:
    return [decision for decision in outcome.decisions if isinstance(decision, kind)]


def status_of(*objects: Manifest, **more: Any) -> PodGroupStatus:
    (status,) = of_kind(cycle(queue(), node("n0", cpu=4), *objects, **more), PodGroupStatus)
    return status


# -- phases


def done(name: str, phase: str, **more: Any) -> Manifest:
    return pod(name, "job", phase=phase, on="n0", **more)


@pytest.mark.parametrize(
    ("minimum", "phase", "pods", "expected"),
    [
        (2, "Inqueue", [done("a", "Running"), pod("b", "job", cpu=99)], "Unknown"),
        (1, "Inqueue", [done("a", "Succeeded"), done("b", "Failed")], "Completed"),
        (2, "Inqueue", [done("a", "Failed"), done("b", "Pending")], "Running"),
        (1, "Inqueue", [done("a", "Running", terminating=True)], "Running"),
        (2, "Inqueue", [done("a", "Pending"), done("b", "Pending")], "Running"),
        (2, "Running", [done("a", "Pending"), pod("b", "job", cpu=99)], "Pending"),
        (1, "Pending", [pod("a", "job", cpu=99)], "Inqueue"),
        (0, "Inqueue", [], "Completed"),
        (1, "Completed", [], "Completed"),
        (2, "Completed", [done("a", "Succeeded")], "Completed"),
        (1, "Completed", [pod("a", "job", cpu=99)], "Pending"),
        (1, "Running", [], "Pending"),
    ],
    ids=["running and unschedulable", "all done", "failed pods count as scheduled (quirk)",
         "leaving pods count", "bound pods count", "fallen below its minimum", "let in by enqueue",
         "no minimum and no pods (quirk)", "completed and its pods deleted", "completed and a pod deleted",
         "completed and given a new pod", "running and its pods deleted"],
)  # fmt: skip
def test_the_phase_follows_the_table(minimum: int, phase: str, pods: list[Manifest], expected: str) -> None:
    outcome = cycle(queue(), node("n0", cpu=4), group("job", minimum, phase=phase), *pods)
    assert job_named(outcome.session.cluster, "job").phase == expected


def test_a_job_whose_pods_are_being_bound_stays_in_the_queue() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 1), pod("a", "job"))
    assert job_named(outcome.session.cluster, "job").phase == "Inqueue"


def test_a_phase_let_in_by_enqueue_is_written_with_counts_and_condition() -> None:
    status = status_of(
        group("job", 1, phase="Pending"), done("a", "Succeeded"), done("b", "Running"), actions="enqueue"
    )
    assert (status.phase, status.running, status.succeeded, status.failed) == ("Running", 1, 1, 0)
    (condition,) = status.conditions
    assert (condition.type, condition.reason) == ("Scheduled", "tasks in gang are ready to be scheduled")
    assert condition.transition_id == f"{NOON:.0f}-1"


def test_an_unready_gang_is_told_what_it_waits_for() -> None:
    status = status_of(group("job", 3), *(pod(f"j-w-{number}", "job", cpu=3) for number in range(3)))
    (condition,) = status.conditions
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
    assert condition.message == (
        "PodGroup job waits: nodes are unavailable: Insufficient cpu; all nodes together have less "
        "cpu than its pods that must start together request: add nodes or request less (3/3 tasks "
        "in gang unschedulable: pod group is not ready, 3 Pending, 3 minAvailable)"
    )


def test_a_gang_on_its_way_out_is_not_called_unschedulable() -> None:
    status = status_of(
        group("job", 1, phase="Running"), done("a", "Running", terminating=True), done("b", "Failed")
    )
    assert status.conditions == ()


# -- messages


def test_what_volcano_says_of_a_group_counts_statuses_as_strings() -> None:
    objects = [queue(), node("n0"), group("job", 2)]
    objects += [pod(f"p{number}", "job") for number in range(11)]
    objects += [pod("r0", "job", on="n0"), pod("r1", "job", on="n0")]
    session = World().add(*objects).session()
    text = "pod group is ready, 11 Pending, 2 Running, 2 minAvailable"
    assert group_message(job_named(session.cluster, "job")) == text


def test_a_task_stands_where_its_last_trial_left_it() -> None:
    session = World().add(node("n0"), group("job", 1), pod("a", "job")).session()
    task, n0 = task_named(session.cluster, "a"), session.cluster.nodes["n0"]

    def condition() -> WaitCondition:
        assert task.job is not None
        return wait_condition(session, task, JobMessages(Diagnoses(session), task.job))

    session.explain(task, verdict_text("no room"))
    sentence = "PodGroup job waits: no room; change the nodes, or the requirements of its pods"
    assert condition() == ("Unschedulable", f"{sentence} (pod group is not ready)", "")
    with session.statement() as trial:
        trial.allocate(task, n0)
    text = f"{sentence} (can possibly be assigned to a node, once minAvailable is satisfied)"
    assert condition() == ("Unschedulable", text, "")
    with session.statement() as trial:
        trial.pipeline(task, n0, evicted=True)
    assert condition() == ("Unschedulable", f"{sentence} (pod group is not ready)", "n0")
    with session.statement() as trial:
        trial.pipeline(task, n0)
    assert condition().nominated == ""


# -- events and pod conditions


def test_a_pod_that_waits_is_told_why_with_a_condition_and_an_event() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 1), pod("a", "job", cpu=9))
    (condition,) = of_kind(outcome, PodCondition)
    why = (
        "PodGroup job waits: nodes are unavailable: Insufficient cpu; no node is large enough: "
        "request less cpu per pod or add larger nodes (pod group is not ready)"
    )
    assert (condition.reason, condition.message) == ("Unschedulable", why)
    assert Event("Pod", "default", "a", "Warning", "FailedScheduling", why) in outcome.decisions


def test_a_pod_whose_room_is_being_freed_hears_volcanos_words() -> None:
    leaving = pod("old", on="n0", cpu=4, terminating=True)
    outcome = cycle(queue(), node("n0", cpu=4), leaving, group("job", 1), pod("a", "job", cpu=4))
    (condition,) = of_kind(outcome, PodCondition)
    possible = "can possibly be assigned to a node, once resource is released and minAvailable is satisfied"
    sentence = (
        "PodGroup job waits: capacity is being freed for it; "
        "no action needed: it starts once that capacity is free"
    )
    assert condition.message == f"{sentence} ({possible})"


def test_a_gated_pod_is_not_told_anything() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 1), pod("a", "job", gates=["wait"]))
    assert of_kind(outcome, PodCondition) == []


def test_a_group_gets_an_event_while_it_waits_and_one_when_it_is_ready() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 1), pod("a", "job", cpu=9))
    (event,) = [decision for decision in of_kind(outcome, Event) if decision.kind == "PodGroup"]
    assert (event.type, event.reason) == ("Warning", "Unschedulable")
    volcano = "1/1 tasks in gang unschedulable: pod group is not ready, 1 Pending, 1 minAvailable"
    assert event.message.endswith(f" ({volcano})")
    outcome = cycle(queue(), node("n0"), group("job", 1), pod("a", "job", on="n0"))
    assert of_kind(outcome, Event) == [
        Event(*JOB, "Normal", "Scheduled", "pod group is ready", topic="outcome", job=JOB)
    ]


@pytest.mark.parametrize("actions", ["enqueue, allocate", "enqueue"])
def test_while_the_pods_of_a_gang_are_created_only_the_new_ones_are_told_that_it_waits(actions: str) -> None:
    world = World(policy=policy_text(actions, "gang")).add(queue(), node("n0"), group("job", 9))
    told = [
        {
            (decision.kind, decision.name)
            for decision in of_kind(world.add(pod(f"p{number}", "job", cpu=1)).step().outcome, Event)
        }
        for number in range(3)
    ]
    assert told == [{("PodGroup", "job"), ("Pod", "p0")}, {("Pod", "p1")}, {("Pod", "p2")}]


def test_a_job_whose_queue_does_not_exist_is_told_so() -> None:
    outcome = cycle(node("n0"), group("job", 1, queue="missing"), pod("a", "job"))
    why = 'PodGroup job waits: queue "missing" does not exist; create it, or set spec.queue of the PodGroup ('
    kinds = {PodCondition, PodGroupStatus, Event, QueueStatus}
    assert {type(decision) for decision in outcome.decisions} == kinds
    assert {event.kind for event in of_kind(outcome, Event)} == {"Pod", "PodGroup"}
    assert all(event.message.startswith(why) for event in of_kind(outcome, Event))
    (status,) = of_kind(outcome, PodGroupStatus)
    (condition,) = status.conditions
    assert (status.phase, condition.type) == ("Inqueue", "Unschedulable")
    assert condition.message.startswith(why)


OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "job",
    "uid": "u",
    "controller": True,
}


def owned(manifest: Manifest) -> Manifest:
    manifest["metadata"]["ownerReferences"] = [OWNER]
    return manifest


def test_the_owner_of_a_group_gets_an_event_that_names_it() -> None:
    outcome = cycle(queue(), node("n0"), owned(group("job-1234", 1)), pod("a", "job-1234", cpu=9))
    sentence = (
        "Job job waits: nodes are unavailable: Insufficient cpu; no node is large enough: request "
        "less cpu per pod or add larger nodes"
    )
    identity = (OWNER["apiVersion"], "u", "owner", JobId("PodGroup", "default", "job-1234"))
    event = Event("Job", "default", "job", "Warning", "Unschedulable", sentence, *identity)  # type: ignore[arg-type]
    assert event in outcome.decisions
    (group_event,) = [decision for decision in of_kind(outcome, Event) if decision.kind == "PodGroup"]
    assert group_event.message.startswith(f"{sentence} (1/1 tasks in gang unschedulable")


def test_messages_fit_into_an_event_whatever_a_plugin_says() -> None:
    class Wordy(Plugin):
        """Refuses with a long text."""

        name = "wordy"

        def prefilter(self, task: Task) -> Refusal | None:
            return Refusal("ä" * 5000, self.name)

    world = World().add(queue(), node("n0"), group("job", 1), pod("a", "job"))
    decisions = world.run("enqueue, allocate", "gang wordy", plugin_classes=[Wordy]).decisions
    messages = [decision.message for decision in decisions if isinstance(decision, Event | PodCondition)]
    messages += [
        entry.message
        for status in decisions
        if isinstance(status, PodGroupStatus)
        for entry in status.conditions
    ]
    assert len(messages) == 4
    assert all("ä..." in message and len(message.encode()) <= 1024 for message in messages)
    assert all("; change the nodes" in message for message in messages)


def test_a_gang_that_only_waits_for_its_binds_is_not_called_unschedulable() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 1, phase="Inqueue"), pod("a", "job"))
    assert of_kind(outcome, Event) == []


def test_a_pod_whose_reason_changes_without_its_message_gets_no_second_event() -> None:
    objects = [queue(), node("n0"), group("job", 1)]
    (first,) = of_kind(cycle(*objects, pod("a", "job", cpu=9)), PodCondition)
    known = {"type": "PodScheduled", "status": "False", "reason": "Schedulable", "message": first.message}
    outcome = cycle(*objects, pod("a", "job", cpu=9, status={"conditions": [known]}))
    assert of_kind(outcome, PodCondition) == [first]
    assert [event.kind for event in of_kind(outcome, Event)] == ["PodGroup"]


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_job_whose_controller_makes_its_pods_now_is_not_called_unschedulable(phase: str) -> None:
    """It was let in, in this cycle or before: its controller waited for that."""
    outcome = cycle(queue(), node("n0"), owned(group("job-1234", 3, phase=phase)))
    assert of_kind(outcome, Event) == []
    assert [status.conditions for status in of_kind(outcome, PodGroupStatus)] in ([()], [])


def test_a_job_that_was_let_in_does_not_keep_the_reason_why_it_was_not() -> None:
    manifest = owned(group("job-1234", 3, phase="Pending"))
    waited = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "waits"}
    manifest["status"]["conditions"] = [waited]
    (status,) = of_kind(cycle(queue(), node("n0"), manifest), PodGroupStatus)
    (condition,) = status.conditions
    assert (status.phase, condition.type, condition.status) == ("Inqueue", "Unschedulable", "False")
    assert condition.message.startswith("admitted to its queue; its controller creates its pods")


def test_a_group_without_pods_and_without_a_controller_hears_that_they_are_missing() -> None:
    outcome = cycle(queue(), node("n0"), group("job", 3, phase="Inqueue"))
    (event,) = of_kind(outcome, Event)
    assert event.message.startswith(
        "PodGroup job waits: it has fewer pods than the 3 that must start together"
    )


# -- queues


def test_a_queue_shows_what_its_jobs_and_those_below_it_hold() -> None:
    objects = [queue("root"), queue("dept"), queue("team", parent="dept"), queue("lost", parent="nowhere")]
    objects += [group("a", 1, queue="team"), group("b", 1, queue="lost"), node("n0", cpu=8)]
    outcome = cycle(*objects, pod("a", "a", cpu=2), pod("b", "b", on="n0", cpu=1))
    held = {decision.name: decision.allocated["cpu"] for decision in of_kind(outcome, QueueStatus)}
    assert held == {"root": "3", "default": "0", "dept": "2", "team": "2", "lost": "1"}


def test_a_circle_of_queues_ends_where_it_closes() -> None:
    queues = World().add(queue("a", parent="b"), queue("b", parent="a")).cluster.queues
    assert [queue.name for queue in lineage(queues["a"], queues)] == ["a", "b"]


def test_best_effort_pods_that_wait_count_for_readiness() -> None:
    session = World().add(node("n0"), group("job", 1), pod("a", "job", cpu=0)).session()
    job = job_named(session.cluster, "job")
    assert job.counts[Status.PENDING] == 1
    assert group_message(job) == "pod group is ready, 1 Pending, 1 minAvailable"


class Unprintable(str):
    """A text that some plugin gave, which is none after all."""

    def __format__(self, _: str) -> str:
        raise ValueError("no words for it")


def test_a_job_of_which_nothing_can_be_said_costs_no_cycle() -> None:
    class Wordless(Plugin):
        name = "wordless"

        def job_valid(self, job: Job) -> Invalid | None:
            return Invalid("x", Unprintable("x")) if job.name == "lost" else None

    world = World("n1 cpu=4").job("lost", pods=1, cpu=1).job("runs", pods=1, cpu=1)
    catalog = catalog_with([Wordless], [])
    engine = Engine(policy_of(catalog, "enqueue, allocate", "gang, wordless", ""), catalog)
    outcome = engine.cycle(world.cluster, NOON)
    assert outcome.lost is None
    assert [decision.name for decision in of_kind(outcome, Bind)] == ["runs-0"]
    (failure,) = set(outcome.session.failures)
    assert failure.message == "outcome failed: ValueError: no words for it"


def test_an_outcome_says_which_action_let_jobs_in_and_which_decided_what() -> None:
    world = World(nodes="n1 cpu=1", policy='actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}]}]')
    outcome = world.job("train", cpu=1, phase="Pending").step().outcome
    enqueue, allocate = outcome.action_ends
    assert [job.name for job in outcome.session.journal.admitted] == ["train"]
    assert (enqueue.action, enqueue.admitted, allocate.action, allocate.admitted) == (
        "enqueue",
        1,
        "allocate",
        1,
    )
    decided = outcome.decisions[enqueue.decisions : allocate.decisions]
    assert [type(decision) for decision in decided] == [Bind]
    again = world.step().outcome
    assert again.session.journal.admitted == []
