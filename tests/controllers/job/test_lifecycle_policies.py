"""Policies: which action follows from which event, at once or after a while (spec 06 2.4, 2.5)."""

from datetime import timedelta
from typing import Any

import pytest

from stromboli.api.go_scalars import MAX_DURATION
from stromboli.controllers.job.lifecycle_policies import PolicyActions
from tests.controllers.job.simulated_job import NOON, SimulatedJob, make_job, policy, running, task

FAILED, EVICTED, PENDING = "PodFailed", "PodEvicted", "PodPending"


@pytest.mark.parametrize(
    ("own", "jobs", "trigger", "expected"),
    [
        ([], [], {"event": FAILED}, None),
        ([], [policy("RestartJob", FAILED)], {"event": FAILED}, ("RestartJob", 0)),
        ([], [policy("RestartJob", FAILED)], {"event": EVICTED}, None),
        ([], [{"action": "AbortJob", "event": EVICTED}], {"event": EVICTED}, ("AbortJob", 0)),
        ([], [policy("AbortJob", EVICTED, FAILED)], {"event": FAILED}, ("AbortJob", 0)),
        # the first that matches decides, the task's own before the job's
        ([], [policy("AbortJob", FAILED), policy("RestartJob", FAILED)], {"event": FAILED}, ("AbortJob", 0)),
        (
            [policy("RestartTask", FAILED)],
            [policy("AbortJob", FAILED)],
            {"event": FAILED},
            ("RestartTask", 0),
        ),
        ([policy("RestartTask", EVICTED)], [policy("AbortJob", FAILED)], {"event": FAILED}, ("AbortJob", 0)),
        ([policy("RestartTask", FAILED)], [], {"event": FAILED, "task": "other"}, None),
        # anything
        ([], [policy("AbortJob", "*")], {"event": FAILED}, ("AbortJob", 0)),
        ([], [policy("AbortJob", "*")], {"event": "Unknown", "task": ""}, ("AbortJob", 0)),
        # a pending pod is nothing unless it lasts
        ([], [policy("AbortJob", "*")], {"event": PENDING}, None),
        ([], [policy("AbortJob", PENDING)], {"event": PENDING}, None),
        ([], [policy("AbortJob", PENDING, timeout="10m")], {"event": PENDING}, ("AbortJob", 600)),
        ([], [policy("AbortJob", "*", timeout="1h")], {"event": PENDING}, ("AbortJob", 3600)),
        # exit codes
        ([], [policy("AbortJob", exitCode=3)], {"event": FAILED, "exit_code": 3}, ("AbortJob", 0)),
        ([], [policy("AbortJob", exitCode=3)], {"event": FAILED, "exit_code": 4}, None),
        ([], [policy("AbortJob", exitCode=0)], {"event": EVICTED}, None),
        # timeouts that make no sense count as none
        ([], [policy("AbortJob", FAILED, timeout="soon")], {"event": FAILED}, ("AbortJob", 0)),
        ([], [policy("AbortJob", PENDING, timeout="soon")], {"event": PENDING}, None),
        ([], [policy("AbortJob", FAILED, timeout="-5s")], {"event": FAILED}, ("AbortJob", 0)),
        (
            [],
            [policy("AbortJob", FAILED, timeout="9999999999h")],
            {"event": FAILED},
            ("AbortJob", MAX_DURATION),
        ),
    ],
)
def test_the_policy_table(
    own: list[Any], jobs: list[Any], trigger: dict[str, Any], expected: tuple[str, float] | None
) -> None:
    job = make_job(task(policies=own), policies=jobs)
    assert PolicyActions(job).action_for(**{"task": "worker", **trigger}) == expected


@pytest.mark.parametrize(
    ("action", "phase", "left"),
    [
        ("AbortJob", "Aborting", ["worker-0"]),
        ("TerminateJob", "Terminating", ["worker-0"]),
        ("CompleteJob", "Completing", ["worker-0"]),
        ("RestartJob", "Restarting", []),
        ("RestartTask", "Restarting", ["other-0"]),
        ("RestartPod", "Restarting", ["other-0", "worker-1", "worker-2"]),
        ("ResumeJob", "Running", ["other-0", "worker-0", "worker-1", "worker-2"]),
        ("SyncJob", "Running", ["other-0", "worker-0", "worker-1", "worker-2"]),
    ],
)
def test_a_failed_pod_leads_to_the_action_of_its_policy(action: str, phase: str, left: list[str]) -> None:
    simulated = running(task("worker", 3), task("other", 1), policies=[policy(action, FAILED)])
    simulated.set_pod("worker-0", "Failed", 7).step()
    assert (simulated.phase, simulated.alive) == (phase, left)
    if phase != "Running":
        assert ("ExecuteAction", f"Start to execute action {action} ") in simulated.recorded
        state = simulated.job.status.state
        assert (state.reason, state.message) == (action, "pod j-worker-0 failed with exit code 7")


def test_an_evicted_pod_raises_its_event_once_it_is_gone() -> None:
    simulated = running(policies=[policy("RestartJob", EVICTED)])
    pod = simulated.pods["j-worker-0"]
    simulated._delete(pod, out_of_sync=False)
    simulated.settle()
    assert (simulated.phase, simulated.job.status.terminating) == ("Running", 1)
    simulated.remove_deleted().step()
    assert simulated.phase == "Restarting"


def test_a_pod_that_is_replaced_without_a_policy_is_just_made_again() -> None:
    simulated = running().evict("worker-0").settle()
    assert (simulated.phase, simulated.alive, simulated.job.status.retry_count) == (
        "Pending",
        ["worker-0", "worker-1"],
        0,
    )


def test_pods_that_a_restart_deletes_raise_nothing() -> None:
    """Neither by their deletion nor by failing on the way."""
    everything = [policy("AbortJob", EVICTED), policy("RestartTask", FAILED)]
    simulated = running(policies=everything)
    simulated.set_pod("worker-0", "Failed").settle()
    assert simulated.phase == "Restarting"
    simulated.set_pod("worker-1", "Failed").settle().restart().settle()
    simulated.remove_deleted().settle().set_all("Running").settle()
    assert (simulated.phase, simulated.job.status.retry_count) == ("Running", 1)


def test_several_pods_that_fail_together_are_one_restart() -> None:
    simulated = running(task(replicas=5), policies=[policy("RestartPod", FAILED)])
    for index in range(4):
        simulated.set_pod(f"worker-{index}", "Failed")
    simulated.step()
    assert (simulated.alive, simulated.job.status.retry_count) == (["worker-4"], 1)


def test_a_completed_task_may_complete_the_job() -> None:
    simulated = running(
        task("master", 1, policies=[policy("CompleteJob", "TaskCompleted")]),
        task("worker", 2),
        minAvailable=3,
    )
    simulated.set_pod("master-0", "Succeeded").settle()
    assert (simulated.phase, simulated.alive) == ("Completing", ["master-0"])
    assert simulated.remove_deleted().settle().phase == "Completed"


@pytest.mark.parametrize(
    ("retries", "restarts", "phase"),
    [(0, 2, "Running"), (0, 3, "Restarting"), (5, 4, "Running"), (5, 5, "Restarting"), (-1, 99, "Running")],
)
def test_a_task_fails_when_its_containers_were_restarted_too_often(
    retries: int, restarts: int, phase: str
) -> None:
    simulated = running(task(maxRetry=retries), policies=[policy("RestartJob", "TaskFailed")])
    runs = {
        "initContainerStatuses": [{"restartCount": 1}],
        "containerStatuses": [{"restartCount": restarts - 1}],
    }
    simulated.set_pod("worker-0", "Running", **runs).settle()
    assert simulated.phase == phase


def test_a_group_that_is_unknown_raises_its_event_whatever_the_version() -> None:
    simulated = running(policies=[policy("RestartJob", "Unknown")])
    for restarts in (1, 2):
        assert simulated.group is not None
        simulated.group.status.phase = "Unknown"
        simulated.step()
        assert (simulated.phase, simulated.job.status.retry_count) == ("Restarting", restarts)
        simulated.remove_deleted().settle().set_all("Running").settle()


# -- after a while


def test_a_pod_that_stays_pending_leads_to_its_action_in_time() -> None:
    simulated = SimulatedJob(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    assert ("ExecuteAction", "Execute action AbortJob after 10m0s") in simulated.recorded
    assert simulated.requeue_at == NOON + timedelta(minutes=10)
    assert simulated.wait(599).settle().phase == "Pending"
    assert simulated.wait(1).step() is not None
    assert simulated.phase == "Aborting"


def test_a_wait_without_end_keeps_no_job_from_its_pods() -> None:
    simulated = SimulatedJob(make_job(policies=[policy("AbortJob", PENDING, timeout="9999999999h")])).settle()
    assert (simulated.phase, len(simulated.alive)) == ("Pending", 2)


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_pod_that_is_pending_no_more_is_forgiven(phase: str) -> None:
    simulated = SimulatedJob(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    simulated.set_all(phase).wait(700).settle()
    assert simulated.phase in ("Running", "Completed", "Failed")


def test_a_delayed_action_comes_in_time_although_the_controller_was_restarted() -> None:
    simulated = SimulatedJob(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    simulated.restart().wait(300).settle()
    assert simulated.requeue_at == NOON + timedelta(minutes=10)
    simulated.restart().wait(300).step()
    assert simulated.phase == "Aborting"


def test_a_pod_that_failed_leads_to_a_delayed_action_counted_from_its_end() -> None:
    simulated = running(policies=[policy("RestartJob", FAILED, timeout="60s")])
    simulated.wait(1000).set_pod("worker-0", "Failed").restart().settle()
    assert (simulated.phase, simulated.requeue_at) == ("Running", simulated.now + timedelta(seconds=60))
    simulated.restart().wait(61).step()
    assert simulated.phase == "Restarting"


def test_a_lost_pod_that_comes_back_in_time_is_forgiven() -> None:
    simulated = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    simulated.evict("worker-0").settle()
    assert simulated.alive == ["worker-0", "worker-1"]
    assert simulated.requeue_at == simulated.now + timedelta(seconds=60)
    simulated.set_all("Running").settle().wait(100).settle()
    assert (simulated.phase, simulated.job.status.retry_count) == ("Running", 0)


def test_a_lost_pod_that_does_not_come_back_leads_to_its_action_also_after_a_restart() -> None:
    simulated = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    simulated.evict("worker-0").settle().restart().wait(61).step()
    assert simulated.phase == "Restarting"


def test_a_lost_pod_that_cannot_be_replaced_leads_to_its_action() -> None:
    simulated = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    simulated.admits = False
    assert simulated.group is not None
    simulated.group.status.phase = "Pending"
    simulated.evict("worker-0").settle()
    assert simulated.alive == ["worker-1"]
    simulated.wait(61).step()
    assert simulated.phase == "Restarting"


def test_a_task_that_keeps_failing_is_not_given_more_time_by_every_restart() -> None:
    simulated = running(policies=[policy("AbortJob", "TaskFailed", timeout="60s")])
    for _ in range(3):
        ended = {"terminated": {"finishedAt": simulated.now.isoformat()}}
        simulated.set_pod("worker-0", "Running", containerStatuses=[{"restartCount": 5, "lastState": ended}])
        simulated.settle().wait(25)
    simulated.step()
    assert simulated.phase == "Aborting"


def test_a_delayed_action_is_told_once() -> None:
    simulated = SimulatedJob(
        make_job(task(replicas=5), policies=[policy("AbortJob", PENDING, timeout="10m")])
    ).settle()
    for _ in range(3):
        simulated.wait(1).settle()
    assert simulated.recorded.count(("ExecuteAction", "Execute action AbortJob after 10m0s")) == 1
