"""A Job of `batch/v1` sync by sync: pods that it wants, what their ends mean, and how it ends itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.controllers.workloads.batch_job.job_tracking import UNCOUNTED_LIMIT
from stromboli.controllers.workloads.batch_job.pod_ends import INDEX_FAILURES, INDEX_IGNORED_FAILURES
from stromboli.controllers.workloads.batch_job.pod_management import BURST
from tests.controllers.workloads.batch_job.simulated_batch_job import NOW, SimulatedBatchJob

INDEXED = {"completionMode": "Indexed"}


@pytest.mark.parametrize(
    ("spec", "succeeded", "active"),
    [
        ({"parallelism": 3, "completions": 5}, 0, 3),
        ({"parallelism": 3, "completions": 5}, 3, 2),
        ({"parallelism": 3, "completions": 5}, 5, 0),
        ({"parallelism": 9, "completions": 2}, 0, 2),
        ({"parallelism": 0, "completions": 2}, 0, 0),
        ({"parallelism": 2}, 0, 2),
        ({"parallelism": 2}, 1, 0),
        ({"parallelism": 3, "completions": 5, **INDEXED}, 4, 1),
        ({"parallelism": 2, "completions": 2, "suspend": True}, 0, 0),
    ],
)
def test_as_many_pods_are_active_as_are_wanted(spec: Any, succeeded: int, active: int) -> None:
    status = {"succeeded": succeeded, "completedIndexes": f"0-{succeeded - 1}" if succeeded else ""}
    world = SimulatedBatchJob(status, **spec)
    world.sync()
    assert (len(world.active), world.status.active) == (active, active)


def test_a_large_job_gets_its_pods_in_several_syncs() -> None:
    world = SimulatedBatchJob(parallelism=BURST + 10, completions=BURST + 10)
    world.sync()
    assert len(world.active) == BURST
    world.sync()
    assert len(world.active) == BURST + 10


def test_a_large_job_is_counted_in_several_syncs() -> None:
    count = UNCOUNTED_LIMIT + 10
    world = SimulatedBatchJob(parallelism=count, completions=count)
    world.settle()
    for pod in world.active:
        world.end(pod)
    world.sync()
    assert (world.status.succeeded, world.job.finished) == (UNCOUNTED_LIMIT, None)
    world.sync()
    assert (world.status.succeeded, world.conditions["Complete"]) == (count, "CompletionsReached")


# -- waiting after failures


@pytest.mark.parametrize(("failures", "wait"), [(1, 10), (2, 20), (3, 40), (7, 600), (30, 600)])
def test_each_failure_in_a_row_doubles_the_wait(failures: int, wait: int) -> None:
    world = SimulatedBatchJob(backoffLimit=100)
    for _ in range(failures):
        world.sync()
        world.end(world.active[0], 1, ago=0)
        world.sync()
        last = world.now
        world.now += 600
    world.now = last
    world.sync()
    assert world.active == []
    assert world.requeue_after == wait
    world.now += wait
    world.sync()
    assert len(world.active) == 1


def test_a_success_ends_the_wait() -> None:
    world = SimulatedBatchJob(parallelism=2, completions=4)
    world.sync()
    failed, succeeded = world.active
    world.end(failed, 1, ago=5)
    world.end(succeeded, ago=1)
    world.sync()
    assert len(world.active) == 2


def test_of_several_indexes_each_waits_for_itself() -> None:
    world = SimulatedBatchJob(parallelism=3, completions=3, backoffLimitPerIndex=5, **INDEXED)
    world.sync()
    world.end(world.of_index(0), 1, ago=3)
    world.end(world.of_index(1), 1, ago=30)
    world.sync()
    assert world.indexes() == [1, 2]
    assert world.requeue_after == 7


# -- the end of the job


def test_a_job_that_fails_deletes_and_counts_what_is_left() -> None:
    world = SimulatedBatchJob(parallelism=3, completions=3, backoffLimit=0)
    world.sync()
    world.end(world.active[0], 1)
    world.settle()
    assert world.conditions == dict.fromkeys(["FailureTarget", "Failed"], "BackoffLimitExceeded")
    assert (world.status.failed, world.status.active, len(world.pods)) == (3, 0, 1)
    assert world.reasons == ["BackoffLimitExceeded"]


def test_a_deadline_counts_from_the_last_resumption() -> None:
    world = SimulatedBatchJob(activeDeadlineSeconds=60)
    world.sync()
    assert world.requeue_after == 60
    world.now += 59
    world.change(suspend=True)
    world.sync()
    assert world.requeue_after is None
    world.now += 3600
    world.change(suspend=False)
    world.settle()
    assert world.job.finished is None
    world.now += 60
    world.settle()
    assert world.conditions["Failed"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("rules", "indexes", "message"),
    [
        ([{"succeededIndexes": "0,2"}], [0, 2], "Matched rules at index 0"),
        ([{"succeededIndexes": "0-3", "succeededCount": 2}], [1, 3], "Matched rules at index 0"),
        ([{"succeededIndexes": "7-9"}, {"succeededCount": 1}], [3], "Matched rules at index 1"),
        ([{"succeededIndexes": "0,2"}], [0, 1], ""),
        ([{"succeededCount": 3}], [0, 1], ""),
    ],
)
def test_a_success_policy_is_met_by_indexes_or_by_their_number(
    rules: Any, indexes: list[int], message: str
) -> None:
    world = SimulatedBatchJob(parallelism=4, completions=4, successPolicy={"rules": rules}, **INDEXED)
    world.sync()
    for index in indexes:
        world.end(world.of_index(index))
    world.settle()
    assert [each.message for each in world.status.conditions] == ([message] * 2 if message else [])
    assert (world.status.succeeded, world.status.failed) == (len(indexes), 0)


@pytest.mark.parametrize("writes", range(12))
def test_a_success_policy_holds_wherever_the_controller_ends(writes: int) -> None:
    policy = {"rules": [{"succeededCount": 1}]}
    world = SimulatedBatchJob(parallelism=3, completions=3, backoffLimit=0, successPolicy=policy, **INDEXED)
    world.sync()
    world.end(world.of_index(1))
    world.sync_and_crash(writes)
    world.settle()
    assert world.conditions["Complete"] == "SuccessPolicy"
    assert (world.status.succeeded, world.status.failed) == (1, 0)


# -- rules about failures


def codes(action: str, operator: str, *values: int, **more: Any) -> Any:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(values), **more}}


CONDITION = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rule", "failed", "reason"),
    [
        (codes("FailJob", "In", 42), 1, "PodFailurePolicy"),
        (codes("FailJob", "NotIn", 42), 1, None),
        (codes("FailJob", "NotIn", 1), 1, "PodFailurePolicy"),
        (codes("FailJob", "In", 42, containerName="other"), 1, None),
        (codes("Ignore", "In", 42), 0, None),
        (codes("Count", "In", 42), 1, None),
        (codes("Perhaps", "In", 42), 1, None),
        (CONDITION, 0, None),
        ({**CONDITION, "action": "FailJob"}, 1, "PodFailurePolicy"),
    ],
)
def test_a_rule_says_what_a_failure_means(rule: Any, failed: int, reason: str | None) -> None:
    world = SimulatedBatchJob(podFailurePolicy={"rules": [rule]})
    world.sync()
    conditions = [{"type": "DisruptionTarget", "status": "True"}]
    world.end(world.active[0], 42, conditions=conditions)
    world.settle()
    assert (world.status.failed, world.conditions.get("Failed")) == (failed, reason)


def test_a_failure_that_is_ignored_is_remembered_for_the_wait_of_the_index() -> None:
    policy = {"rules": [codes("Ignore", "In", 42)]}
    world = SimulatedBatchJob(
        completions=1, parallelism=1, backoffLimitPerIndex=1, podFailurePolicy=policy, **INDEXED
    )
    world.sync()
    for code in (42, 1):
        world.end(world.of_index(0), code)
        world.settle()
    annotations = world.of_index(0).metadata.annotations
    assert (annotations[INDEX_FAILURES], annotations[INDEX_IGNORED_FAILURES]) == ("1", "1")
    assert world.status.failed == 1


# -- pods too many


def test_pods_without_an_index_of_their_own_go() -> None:
    world = SimulatedBatchJob(parallelism=2, completions=2, **INDEXED)
    world.sync()
    twin = msgspec.convert(msgspec.to_builtins(world.of_index(0)), type(world.active[0]))
    twin.metadata.uid, twin.metadata.name, twin.status.phase = "twin", "twin", "Running"
    stray = msgspec.convert(msgspec.to_builtins(world.of_index(1)), type(world.active[0]))
    stray.metadata.uid, stray.metadata.name, stray.metadata.annotations = "stray", "stray", {}
    world.pods |= {"twin": twin, "stray": stray}
    world.settle()
    assert world.indexes() == [0, 1]
    assert world.of_index(0).name == "twin"
    assert world.status.failed == 0


def test_pods_that_are_not_running_go_first() -> None:
    world = SimulatedBatchJob(parallelism=3, completions=9)
    world.sync()
    kept = world.active[1]
    kept.status.phase, kept.spec.node_name = "Running", "n1"
    world.change(parallelism=1)
    world.settle()
    assert [pod.name for pod in world.active] == [kept.name]


def test_a_pod_that_is_being_deleted_keeps_its_place_if_the_job_waits_for_ends() -> None:
    world = SimulatedBatchJob(podReplacementPolicy="Failed")
    world.sync()
    (pod,) = world.active
    world.delete(pod)
    world.settle()
    assert (world.active, world.status.terminating, world.status.failed) == ([], 1, 0)
    world.end(pod, 1)
    world.settle()
    assert (len(world.active), world.status.terminating, world.status.failed) == (1, 0, 1)


def test_a_job_that_is_being_deleted_lets_its_pods_go_and_makes_no_others() -> None:
    world = SimulatedBatchJob(parallelism=2, completions=9)
    world.sync()
    world.end(world.active[0])
    world.job.metadata.deletion_timestamp = world.job.metadata.creation_timestamp
    world.settle()
    assert world.created == 2
    assert not [pod for pod in world.pods.values() if pod.metadata.finalizers]


def test_hostile_values_in_pods_and_status_do_no_harm() -> None:
    status = {"completedIndexes": "x,5-2,9999999999999,-1,1_0,0", "failedIndexes": ",,-"}
    world = SimulatedBatchJob(status, parallelism=4, completions=4, backoffLimitPerIndex=1, **INDEXED)
    world.sync()
    assert world.indexes() == [1, 2, 3]
    pod = world.of_index(1)
    pod.metadata.annotations[INDEX_FAILURES] = "9" * 30
    pod.status.phase = "Nonsense"
    world.end(world.of_index(2), 1, ago=-(10.0**10))
    world.sync()
    assert world.requeue_after == 10.0
    assert world.status.start_time is not None
    assert world.status.start_time.timestamp() == NOW
