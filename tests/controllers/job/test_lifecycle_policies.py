"""Policies: which action follows from which event, at once or after a while (spec 06 2.4, 2.5)."""

from datetime import timedelta
from typing import Any

import pytest

from stromboli.api.go_scalars import LONGEST_DURATION
from stromboli.controllers.job.lifecycle_policies import LifecycleEvent, policy_action
from tests.controllers.job.stage import NOON, Stage, make_job, policy, running, task

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
            ("AbortJob", LONGEST_DURATION),
        ),
    ],
)
def test_the_policy_table(
    own: list[Any], jobs: list[Any], trigger: dict[str, Any], expected: tuple[str, float] | None
) -> None:
    job = make_job(task(policies=own), policies=jobs)
    assert policy_action(job, LifecycleEvent(**{"since": NOON, "task": "worker", **trigger})) == expected


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
    stage = running(task("worker", 3), task("other", 1), policies=[policy(action, FAILED)])
    stage.set_pod("worker-0", "Failed", 7).step()
    assert (stage.phase, stage.alive) == (phase, left)
    if phase != "Running":
        assert ("ExecuteAction", f"Start to execute action {action} ") in stage.told
        state = stage.job.status.state
        assert (state.reason, state.message) == (action, "pod j-worker-0 failed with exit code 7")


def test_an_evicted_pod_raises_its_event_once_it_is_gone() -> None:
    stage = running(policies=[policy("RestartJob", EVICTED)])
    pod = stage.pods["j-worker-0"]
    stage._delete(pod, out_of_sync=False)
    stage.settle()
    assert (stage.phase, stage.job.status.terminating) == ("Running", 1)
    stage.bury().step()
    assert stage.phase == "Restarting"


def test_a_pod_that_is_replaced_without_a_policy_is_just_made_again() -> None:
    stage = running().evict("worker-0").settle()
    assert (stage.phase, stage.alive, stage.job.status.retry_count) == (
        "Pending",
        ["worker-0", "worker-1"],
        0,
    )


def test_pods_that_a_restart_deletes_raise_nothing() -> None:
    """Neither by their deletion nor by failing on the way."""
    everything = [policy("AbortJob", EVICTED), policy("RestartTask", FAILED)]
    stage = running(policies=everything)
    stage.set_pod("worker-0", "Failed").settle()
    assert stage.phase == "Restarting"
    stage.set_pod("worker-1", "Failed").settle().restart().settle()
    stage.bury().settle().set_all("Running").settle()
    assert (stage.phase, stage.job.status.retry_count) == ("Running", 1)


def test_several_pods_that_fail_together_are_one_restart() -> None:
    stage = running(task(replicas=5), policies=[policy("RestartPod", FAILED)])
    for index in range(4):
        stage.set_pod(f"worker-{index}", "Failed")
    stage.step()
    assert (stage.alive, stage.job.status.retry_count) == (["worker-4"], 1)


def test_a_completed_task_may_complete_the_job() -> None:
    stage = running(
        task("master", 1, policies=[policy("CompleteJob", "TaskCompleted")]),
        task("worker", 2),
        minAvailable=3,
    )
    stage.set_pod("master-0", "Succeeded").settle()
    assert (stage.phase, stage.alive) == ("Completing", ["master-0"])
    assert stage.bury().settle().phase == "Completed"


@pytest.mark.parametrize(
    ("retries", "restarts", "phase"),
    [(0, 2, "Running"), (0, 3, "Restarting"), (5, 4, "Running"), (5, 5, "Restarting"), (-1, 99, "Running")],
)
def test_a_task_fails_when_its_containers_were_restarted_too_often(
    retries: int, restarts: int, phase: str
) -> None:
    stage = running(task(maxRetry=retries), policies=[policy("RestartJob", "TaskFailed")])
    runs = {
        "initContainerStatuses": [{"restartCount": 1}],
        "containerStatuses": [{"restartCount": restarts - 1}],
    }
    stage.set_pod("worker-0", "Running", **runs).settle()
    assert stage.phase == phase


def test_a_group_that_is_unknown_raises_its_event_whatever_the_version() -> None:
    stage = running(policies=[policy("RestartJob", "Unknown")])
    for restarts in (1, 2):
        assert stage.group is not None
        stage.group.status.phase = "Unknown"
        stage.step()
        assert (stage.phase, stage.job.status.retry_count) == ("Restarting", restarts)
        stage.bury().settle().set_all("Running").settle()


# -- after a while


def test_a_pod_that_stays_pending_leads_to_its_action_in_time() -> None:
    stage = Stage(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    assert ("ExecuteAction", "Execute action AbortJob after 10m0s") in stage.told
    assert stage.requeue_at == NOON + timedelta(minutes=10)
    assert stage.wait(599).settle().phase == "Pending"
    assert stage.wait(1).step() is not None
    assert stage.phase == "Aborting"


def test_a_wait_without_end_keeps_no_job_from_its_pods() -> None:
    stage = Stage(make_job(policies=[policy("AbortJob", PENDING, timeout="9999999999h")])).settle()
    assert (stage.phase, len(stage.alive)) == ("Pending", 2)


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed"])
def test_a_pod_that_is_pending_no_more_is_forgiven(phase: str) -> None:
    stage = Stage(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    stage.set_all(phase).wait(700).settle()
    assert stage.phase in ("Running", "Completed", "Failed")


def test_a_delayed_action_comes_in_time_although_the_controller_was_restarted() -> None:
    stage = Stage(make_job(policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    stage.restart().wait(300).settle()
    assert stage.requeue_at == NOON + timedelta(minutes=10)
    stage.restart().wait(300).step()
    assert stage.phase == "Aborting"


def test_a_pod_that_failed_leads_to_a_delayed_action_counted_from_its_end() -> None:
    stage = running(policies=[policy("RestartJob", FAILED, timeout="60s")])
    stage.wait(1000).set_pod("worker-0", "Failed").restart().settle()
    assert (stage.phase, stage.requeue_at) == ("Running", stage.now + timedelta(seconds=60))
    stage.restart().wait(61).step()
    assert stage.phase == "Restarting"


def test_a_lost_pod_that_comes_back_in_time_is_forgiven() -> None:
    stage = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    stage.evict("worker-0").settle()
    assert stage.alive == ["worker-0", "worker-1"]
    assert stage.requeue_at == stage.now + timedelta(seconds=60)
    stage.set_all("Running").settle().wait(100).settle()
    assert (stage.phase, stage.job.status.retry_count) == ("Running", 0)


def test_a_lost_pod_that_does_not_come_back_leads_to_its_action_also_after_a_restart() -> None:
    stage = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    stage.evict("worker-0").settle().restart().wait(61).step()
    assert stage.phase == "Restarting"


def test_a_lost_pod_that_cannot_be_replaced_leads_to_its_action() -> None:
    stage = running(policies=[policy("RestartJob", EVICTED, timeout="60s")])
    stage.admits = False
    assert stage.group is not None
    stage.group.status.phase = "Pending"
    stage.evict("worker-0").settle()
    assert stage.alive == ["worker-1"]
    stage.wait(61).step()
    assert stage.phase == "Restarting"


def test_a_task_that_keeps_failing_is_not_given_more_time_by_every_restart() -> None:
    stage = running(policies=[policy("AbortJob", "TaskFailed", timeout="60s")])
    for _ in range(3):
        ended = {"terminated": {"finishedAt": stage.now.isoformat()}}
        stage.set_pod("worker-0", "Running", containerStatuses=[{"restartCount": 5, "lastState": ended}])
        stage.settle().wait(25)
    stage.step()
    assert stage.phase == "Aborting"


def test_a_delayed_action_is_told_once() -> None:
    stage = Stage(make_job(task(replicas=5), policies=[policy("AbortJob", PENDING, timeout="10m")])).settle()
    for _ in range(3):
        stage.wait(1).settle()
    assert stage.told.count(("ExecuteAction", "Execute action AbortJob after 10m0s")) == 1
