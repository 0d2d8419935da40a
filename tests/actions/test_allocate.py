"""allocate: gangs all or nothing, then one task per turn; who is tried again and who is skipped (spec 02 3, 01 3.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stromboli.api import names
from stromboli.engine.cycle import Outcome
from stromboli.engine.decisions import Bind
from stromboli.engine.placement.node_functions import Check, Nodes, reads
from stromboli.engine.plugin import Plugin
from stromboli.model.task import Task
from stromboli.testing import World
from tests.manifests import Manifest, group, job_named, node, pod, sub_group_policy, task_named


def allocate(
    *objects: Manifest, tiers: str = "priority, gang", own: Any = (), actions: str = "allocate"
) -> Outcome:
    outcome = World().add(*objects).run(actions, tiers, plugin_classes=own).outcome
    assert outcome.lost is None
    return outcome


def bound(outcome: Outcome) -> list[str]:
    return [decision.name for decision in outcome.decisions if isinstance(decision, Bind)]


def gang(name: str, count: int, minimum: int, *, cpu: Any = 1, **more: Any) -> list[Manifest]:
    return [
        group(name, minimum, **more),
        *(pod(f"{name}-w-{number}", name, cpu=cpu) for number in range(count)),
    ]


def test_a_gang_gets_all_or_nothing_and_the_next_one_what_is_left() -> None:
    outcome = allocate(node("n0", cpu=4), *gang("big", 5, 5), *gang("small", 2, 2))
    assert bound(outcome) == ["small-w-0", "small-w-1"]
    assert outcome.session.attempts.verdicts[job_named(outcome.session.cluster, "big")]


def test_a_ready_job_comes_back_for_one_task_per_turn_behind_those_not_ready() -> None:
    outcome = allocate(node("n0", cpu=9), *gang("a", 3, 1), *gang("b", 3, 1))
    assert bound(outcome) == ["a-w-0", "b-w-0", "a-w-1", "a-w-2", "b-w-1", "b-w-2"]


def test_a_gang_that_could_start_on_what_is_leaving_keeps_its_room() -> None:
    leaving = pod("old", on="n0", cpu=3, terminating=True)
    outcome = allocate(node("n0", cpu=4), leaving, *gang("gang", 2, 2, cpu=1), *gang("late", 1, 1))
    assert bound(outcome) == []
    assert outcome.pipelined == {"default/gang-w-1": "n0", "default/late-w-0": "n0"}
    assert task_named(outcome.session.cluster, "gang-w-0").condition.reason == "Unschedulable"


def test_a_pending_job_is_left_to_enqueue_if_there_is_one() -> None:
    objects = [node("n0"), *gang("a", 1, 1, phase="Pending")]
    assert bound(allocate(*objects, actions="allocate, enqueue")) == []
    assert bound(allocate(*objects)) == ["a-w-0"]


def test_best_effort_and_gated_tasks_are_not_for_allocate() -> None:
    outcome = allocate(
        node("n0"),
        group("job"),
        pod("idle", "job", cpu=0),
        pod("gated", "job", gates=["foreign"]),
        pod("ours", "job", gates=[names.QUEUE_ALLOCATION_GATE]),
        pod("plain", "job"),
    )
    assert bound(outcome) == ["plain"]


def test_higher_priority_goes_first_within_a_job_and_then_the_replica_number() -> None:
    outcome = allocate(
        node("n0", cpu=2),
        group("job"),
        pod("job-w-10", "job"),
        pod("job-w-9", "job"),
        pod("job-w-11", "job", priority=5),
    )
    assert bound(outcome) == ["job-w-11", "job-w-9"]


def test_a_role_that_failed_is_not_tried_again() -> None:
    outcome = allocate(
        node("n0", cpu=2),
        group("job", 1),
        pod("job-w-0", "job", cpu=9, role="worker"),
        pod("job-w-1", "job", cpu=1, role="worker"),
        pod("job-w-2", "job", cpu=1, role="ps"),
    )
    assert bound(outcome) == ["job-w-2"]
    skipped = task_named(outcome.session.cluster, "job-w-1")
    assert (
        "waits: nodes are unavailable: Insufficient cpu; no node is large enough" in skipped.condition.message
    )
    verdict = outcome.session.attempts.verdicts[skipped.job][skipped]
    assert verdict.message == "Task job-w-1 with role spec worker has already predicated failed, skip"


@pytest.mark.parametrize(
    ("minimum", "roles", "pods", "expected"),
    [
        (3, {}, [("big", ""), ("small", ""), ("small", "")], []),
        (2, {}, [("big", ""), ("small", ""), ("small", "")], ["p-x-1", "p-x-2"]),
        (2, {"a": 1, "b": 1}, [("big", "a"), ("small", "b"), ("small", "b")], []),
        (1, {"a": 0, "b": 1}, [("big", "a"), ("small", "b"), ("small", "b")], ["p-x-1", "p-x-2"]),
        (1, {"a": 1, "b": 1}, [("big", "a"), ("small", "b"), ("small", "b")], ["p-x-1", "p-x-2"]),
        (2, {"a": 2, "b": 1}, [("big", "a"), ("big", "b"), ("small", "c")], []),
    ],
    ids=["all are needed", "one may fail", "a needed role failed", "an optional role failed",
         "roles ignored (quirk), enough others", "roles ignored (quirk), too few others"],
)  # fmt: skip
def test_after_a_failure_it_goes_on_only_while_the_job_may_still_start(
    minimum: int, roles: dict[str, int], pods: list[tuple[str, str]], expected: list[str]
) -> None:
    objects = [
        pod(f"p-x-{number}", "job", cpu=9 if size == "big" else 1, role=role)
        for number, (size, role) in enumerate(pods)
    ]
    outcome = allocate(node("n0", cpu=4), group("job", minimum, minTaskMember=roles), *objects)
    assert bound(outcome) == expected


def test_the_role_minimum_counts_not_only_the_number() -> None:
    objects = [
        pod("p-x-0", "job", role="ps"),
        pod("p-x-1", "job", role="ps"),
        pod("p-x-2", "job", role="worker", cpu=9),
    ]
    outcome = allocate(node("n0", cpu=4), group("job", 2, minTaskMember={"ps": 1, "worker": 1}), *objects)
    assert bound(outcome) == []


def test_the_nominated_node_is_taken_if_it_still_serves() -> None:
    nominee = pod("p", "job", status={"nominatedNodeName": "n1"})
    objects = [node("n0"), node("n1"), group("job", 1)]
    (decision,) = [
        decision for decision in allocate(*objects, nominee).decisions if isinstance(decision, Bind)
    ]
    assert decision.node == "n1"
    full = pod("r", on="n1", cpu=4)
    (decision,) = [
        decision for decision in allocate(*objects, full, nominee).decisions if isinstance(decision, Bind)
    ]
    assert decision.node == "n0"


# -- sub-groups


def rack(job: str, name: str, count: int, cpu: Any = 1) -> list[Manifest]:
    return [pod(f"{job}-{name}-{n}", job, cpu=cpu, labels={"rack": name}) for n in range(count)]


def test_a_sub_group_that_does_not_fit_whole_is_left_out_for_one_that_does() -> None:
    job = group("job", 2, subGroupPolicy=[sub_group_policy("p", "rack", size=2, least=1)])
    outcome = allocate(node("n0", cpu=4), job, *rack("job", "1", 2, cpu=3), *rack("job", "2", 2))
    assert bound(outcome) == ["job-2-0", "job-2-1"]


def test_without_enough_sub_groups_nothing_starts() -> None:
    job = group("job", 2, subGroupPolicy=[sub_group_policy("p", "rack", size=2, least=2)])
    outcome = allocate(node("n0", cpu=4), job, *rack("job", "1", 2, cpu=3), *rack("job", "2", 2))
    assert bound(outcome) == []


class NextToTwo(Plugin):
    """Lets pods of rack 1 in only where pods of rack 2 are."""

    name = "next-to-two"

    @reads("usage")
    def filter_nodes(self, task: Task, nodes: Nodes) -> list[Check]:
        if task.label_set.labels.get("rack") == "2":
            return []
        return [Check(nodes.used[0] >= np.int64(2000), "not next to rack 2", curable=True)]

    def shape_key(self, task: Task) -> str:
        return task.label_set.labels.get("rack", "")


def test_a_sub_group_that_found_no_place_is_not_tried_again_in_this_cycle() -> None:
    """As in Volcano: it is off the worksheet, even if another sub-group made a place for it since (spec 02 3.4)."""
    job = group("job", 2, subGroupPolicy=[sub_group_policy("p", "rack", size=2, least=1)])
    outcome = allocate(
        node("n0", cpu=4),
        job,
        *rack("job", "1", 2),
        *rack("job", "2", 2),
        tiers="gang, next-to-two",
        own=[NextToTwo],
    )
    assert sorted(bound(outcome)) == ["job-2-0", "job-2-1"]


def test_sub_groups_that_were_required_to_begin_with_stay_the_first() -> None:
    """One ready sub-group of one pod is required; the job's own minimum is met from it too, not from the other."""
    job = group("job", 3, subGroupPolicy=[sub_group_policy("p", "rack", size=1, least=1)])
    outcome = allocate(node("n0", cpu=3), job, *rack("job", "1", 3), *rack("job", "2", 3))
    assert bound(outcome) == ["job-1-0", "job-1-1", "job-1-2"]


def test_without_enqueue_every_waiting_job_is_let_in() -> None:
    """Also one that has nothing to place, and one that is not valid."""
    outcome = allocate(
        node("n0"), group("empty", 1, phase="Pending"), group("short", 3, phase="Pending"), pod("a", "short")
    )
    assert {job.name: job.phase for job in outcome.session.cluster.jobs.values()} == {
        "empty": "Inqueue",
        "short": "Inqueue",
    }
