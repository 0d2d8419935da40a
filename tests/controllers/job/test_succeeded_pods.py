"""A pod that succeeded stays succeeded when it is deleted: it does not run again, and its loss is no eviction."""

from typing import Any

import pytest

from stromboli.controllers.job.succeeded_pods import indexes_in, recorded_indexes, resource_entries
from tests.controllers.job.simulated_job import SimulatedJob, make_job, policy, running, task
from tests.controllers.job.submitted_jobs import admit, at_work, live, phase, run, submitted
from tests.controllers.running import names, wait_until_idle

RESTART_ON_EVICTION = [policy("RestartJob", "PodEvicted")]
SHORT_AND_LONG = (task("short", 3), task("long", 1))


def half_done(**spec: Any) -> SimulatedJob:
    """A job whose pods of one task have succeeded while that of another task runs."""
    simulated = running(*SHORT_AND_LONG, **{"minAvailable": 1, **spec})
    for index in range(3):
        simulated.set_pod(f"short-{index}", "Succeeded")
    return simulated.settle()


def lose_short_pods(simulated: SimulatedJob) -> SimulatedJob:
    for index in range(3):
        simulated.evict(f"short-{index}")
    return simulated.settle()


@pytest.mark.parametrize("policies", [[], RESTART_ON_EVICTION, [policy("AbortJob", "PodEvicted")]])
@pytest.mark.parametrize("controller_restarts", [False, True])
def test_the_loss_of_succeeded_pods_changes_nothing(policies: list[Any], controller_restarts: bool) -> None:
    simulated = half_done(policies=policies)
    if controller_restarts:
        simulated.restart()
    lose_short_pods(simulated)
    assert (simulated.phase, simulated.alive) == ("Running", ["long-0"])
    status = simulated.job.status
    assert (status.succeeded, status.running, status.retry_count) == (3, 1, 0)
    assert status.task_status_count["short"].phase == {"Succeeded": 3}


def test_a_job_completes_when_the_others_have_succeeded_too() -> None:
    simulated = lose_short_pods(half_done(minAvailable=4)).restart().set_pod("long-0", "Succeeded").settle()
    assert (simulated.phase, simulated.job.status.succeeded) == ("Completed", 4)
    simulated.evict("long-0").settle()
    assert simulated.job.status.succeeded == 4


def test_only_pods_that_had_not_succeeded_are_replaced() -> None:
    simulated = half_done(policies=[policy("RestartPod", "PodFailed")])
    simulated.evict("short-1").evict("long-0").settle()
    assert simulated.alive == ["long-0", "short-0", "short-2"]
    assert simulated.job.status.controlled_resources == {"succeeded-short": "0-2"}


def test_the_group_does_not_wait_for_pods_that_succeeded_and_are_gone() -> None:
    """Otherwise a gang whose last pod is evicted could never start it again."""
    simulated = half_done(minAvailable=4)
    assert simulated.group is not None
    assert simulated.group.spec.min_member == 4
    lose_short_pods(simulated).evict("long-0").settle()
    assert simulated.group.spec.min_member == 1
    assert simulated.group.spec.min_task_member == {"short": 0, "long": 1}
    assert simulated.group.spec.min_resources is not None
    assert simulated.group.spec.min_resources["cpu"] == "1"
    assert simulated.alive == ["long-0"]


@pytest.mark.parametrize(("gone", "size", "minimum"), [([0, 1], 2, 1), ([0], 1, 2), ([0, 1, 2], 1, 1)])
def test_the_group_does_not_wait_for_partitions_that_succeeded_and_are_gone(
    gone: list[int], size: int, minimum: int
) -> None:
    partitions = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
    simulated = running(task("worker", 4, partitionPolicy=partitions), minAvailable=4)
    for index in gone:
        simulated.set_pod(f"worker-{index}", "Succeeded").settle().evict(f"worker-{index}").settle()
    simulated.evict("worker-3").settle()
    assert simulated.group is not None
    (policy,) = simulated.group.spec.sub_group_policy
    assert (policy.sub_group_size, policy.min_sub_groups) == (size, minimum)
    assert simulated.group.spec.min_member == 4 - len(gone)


def test_a_task_whose_pods_are_gone_still_lets_others_start_that_depend_on_it() -> None:
    simulated = running(
        task("first", 1, minAvailable=1), task("then", 1, dependsOn={"name": ["first"]}), minAvailable=1
    )
    simulated.set_pod("first-0", "Succeeded").settle().evict("first-0").evict("then-0").settle()
    assert simulated.alive == ["then-0"]


def test_a_task_is_completed_though_its_pods_are_gone() -> None:
    simulated = running(
        task("master", 1, policies=[policy("CompleteJob", "TaskCompleted", timeout="60s")]),
        task("worker", 2),
    )
    simulated.set_pod("master-0", "Succeeded").settle().evict("master-0").settle()
    assert simulated.phase == "Running"
    assert simulated.wait(61).settle().remove_deleted().settle().phase == "Completed"


def test_a_restart_of_the_job_runs_all_pods_again() -> None:
    simulated = lose_short_pods(half_done()).ask("RestartJob").settle().remove_deleted().settle()
    assert simulated.alive == ["long-0", "short-0", "short-1", "short-2"]
    assert simulated.job.status.succeeded == 0


def test_a_restart_of_the_job_runs_succeeded_pods_again_that_leave_late() -> None:
    simulated = half_done().ask("RestartJob").settle().restart().settle()
    assert simulated.remove_deleted().settle().alive == ["long-0", "short-0", "short-1", "short-2"]


def test_a_restart_of_the_task_runs_all_its_pods_again() -> None:
    restarts = task("worker", 3, policies=[policy("RestartTask", "PodFailed")])
    simulated = running(restarts, task("other", 2), minAvailable=1)
    simulated.set_pod("worker-0", "Succeeded").set_pod("other-0", "Succeeded").settle()
    simulated.evict("worker-0").evict("other-0").settle()
    simulated.set_pod("worker-1", "Failed").settle().remove_deleted().settle()
    assert simulated.alive == ["other-1", "worker-0", "worker-1", "worker-2"]
    assert simulated.job.status.controlled_resources == {"succeeded-other": "0"}


def test_a_suspended_job_goes_on_without_the_pods_that_had_succeeded() -> None:
    simulated = half_done().ask("AbortJob").settle().remove_deleted().settle()
    assert simulated.phase == "Aborted"
    simulated.evict("short-0").ask("ResumeJob").settle()
    lost = simulated.evict("short-1").restart().settle()
    assert (lost.alive, lost.job.status.succeeded) == (["long-0", "short-2"], 3)


def test_pods_that_a_job_no_longer_has_are_forgotten() -> None:
    simulated = lose_short_pods(half_done()).scale(short=1).settle()
    assert simulated.job.status.controlled_resources == {"succeeded-short": "0"}
    assert simulated.scale(short=2).settle().alive == ["long-0", "short-1"]


def test_the_controller_does_not_replace_succeeded_pods_however_they_are_deleted() -> None:
    async def story() -> None:
        api = submitted(task(replicas=3), minAvailable=1, policies=RESTART_ON_EVICTION)
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            live(api, "Running")
            live(api, "Succeeded", "j-worker-0", "j-worker-1")
            api.remove("pods", "j-worker-0", "team")  # before a reconcile can see that it succeeded
            await wait_until_idle(api, runner)
            deleting = api.find("pods", "j-worker-1", "team")
            deleting["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}
            api.put("pods", deleting)
            await wait_until_idle(api, runner)
            api.remove("pods", "j-worker-1", "team")
            await wait_until_idle(api, runner)
            assert (phase(api), names(api.every("pods"))) == ("Running", ["j-worker-2"])
            assert api.find("jobs", "j", "team")["status"]["succeeded"] == 2

    run(story())


def test_a_pod_that_exits_without_error_because_it_is_evicted_has_not_succeeded() -> None:
    async def story() -> None:
        api = submitted(task(replicas=2), minAvailable=1)
        async with at_work(api) as runner:
            admit(api)
            await wait_until_idle(api, runner)
            live(api, "Running")
            await wait_until_idle(api, runner)
            evicted = api.find("pods", "j-worker-0", "team")
            evicted["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:30Z"}
            api.put("pods", evicted)
            await wait_until_idle(api, runner)
            live(api, "Succeeded", "j-worker-0")
            await wait_until_idle(api, runner)
            api.remove("pods", "j-worker-0", "team")
            await wait_until_idle(api, runner)
            assert names(api.every("pods")) == ["j-worker-0", "j-worker-1"]
            assert "succeeded" not in api.find("jobs", "j", "team")["status"]

    run(story())


@pytest.mark.parametrize(
    ("text", "indexes"),
    [
        ("", []),
        ("0", [0]),
        ("1,3-5", [1, 3, 4, 5]),
        ("4-999999999,x,-1,5-2", [4, 5]),
        ("9999999999999", []),
    ],
)
def test_indexes_are_read_as_kubernetes_writes_them(text: str, indexes: list[int]) -> None:
    job = make_job(task("a", 6), status={"controlledResources": {"succeeded-a": text}})
    (bits,) = recorded_indexes(job)
    assert [*indexes_in(bits)] == indexes
    again = make_job(task("a", 6), status={"controlledResources": resource_entries(job, [bits])})
    assert recorded_indexes(again) == [bits]
