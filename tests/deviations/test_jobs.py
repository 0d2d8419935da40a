"""Where jobs live differently than in Volcano on purpose: docs/deviations.md, one test per row (spec 06 2)."""

import pytest

from tests.controllers.job.simulated_job import SimulatedJob, in_phase, make_job, policy, running, task


@pytest.mark.parametrize(
    ("action", "phase", "end"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_a_job_that_is_restarting_can_be_ended(action: str, phase: str, end: str) -> None:
    """Volcano kills its pods once more and starts it again."""
    simulated = in_phase("Restarting").ask(action).settle()
    assert simulated.phase == phase
    assert simulated.remove_deleted().settle().phase == end


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_a_job_is_restarted_as_often_as_it_may(allowed: int) -> None:
    """In Volcano once less."""
    simulated = running(maxRetry=allowed, policies=[policy("RestartJob", "PodFailed")])
    for restart in range(1, allowed + 1):
        simulated.set_pod("worker-0", "Failed").settle().remove_deleted().settle().set_all("Running").settle()
        assert (simulated.phase, simulated.job.status.retry_count) == ("Running", restart)
    simulated.set_pod("worker-0", "Failed").settle()
    assert (simulated.phase, simulated.alive, simulated.job.status.retry_count) == (
        "Failed",
        ["worker-0"],
        allowed,
    )
    assert simulated.job.status.state.message == f"no retry is left of {allowed}: pod j-worker-0 failed"


def test_resuming_is_no_retry() -> None:
    """In Volcano a job with maxRetry 1 fails when it is resumed."""
    simulated = in_phase("Aborted", maxRetry=0).ask("ResumeJob").settle().set_all("Running").settle()
    assert (simulated.phase, simulated.job.status.retry_count) == ("Running", 0)


def test_a_healthy_job_outlives_a_restart_of_the_controller() -> None:
    """Volcano sets a timer for every pod that it meets, whether it is pending or not."""
    simulated = running(policies=[policy("AbortJob", "PodPending", timeout="1m")])
    simulated.restart().settle().wait(3600).settle()
    assert (simulated.phase, simulated.requeue_at) == ("Running", None)


def test_a_delayed_action_is_off_when_its_cause_is() -> None:
    """In Volcano timers of tasks and pods outlive the restart of the whole job."""
    policies = [policy("AbortJob", "PodFailed", timeout="1m"), policy("RestartJob", exitCode=2)]
    simulated = running(task(replicas=3), policies=policies)
    simulated.set_pod("worker-0", "Failed", 1).settle()
    assert simulated.requeue_at is not None
    simulated.ask("RestartJob").settle().remove_deleted().settle().set_all("Running").wait(3600).settle()
    assert (simulated.phase, simulated.job.status.retry_count) == ("Running", 1)


def test_a_lost_pod_is_replaced_while_its_delayed_action_waits() -> None:
    """Volcano makes it again only when something else happens."""
    simulated = (
        running(policies=[policy("RestartJob", "PodEvicted", timeout="1h")]).evict("worker-0").settle()
    )
    assert simulated.alive == ["worker-0", "worker-1"]


def test_pods_that_are_kept_are_counted() -> None:
    """In Volcano a completed job has no succeeded pods."""
    simulated = running(task(replicas=3))
    simulated.set_pod("worker-0", "Succeeded").set_pod("worker-1", "Failed").settle()
    simulated.ask("CompleteJob").settle().remove_deleted().settle()
    status = simulated.job.status
    assert (simulated.phase, status.succeeded, status.failed) == ("Completed", 1, 1)
    assert status.task_status_count["worker"].phase == {"Succeeded": 1, "Failed": 1}


def test_restarting_a_part_counts_the_rest_and_leaves_services_and_keys() -> None:
    """Volcano counts nothing but what it kills, and deletes the job's Service and ssh keys."""
    simulated = running(
        task(replicas=3), plugins={"svc": [], "ssh": []}, policies=[policy("RestartPod", "PodFailed")]
    )
    before = dict(simulated.attached)
    simulated.set_pod("worker-0", "Failed").step()
    assert (simulated.job.status.running, simulated.job.status.terminating) == (2, 1)
    simulated.settle().remove_deleted().settle()
    assert simulated.attached == before


def test_a_job_says_by_which_action_and_why_it_is_where_it_is() -> None:
    """Volcano leaves reason and message empty."""
    simulated = running(policies=[policy("AbortJob", "PodEvicted")]).evict("worker-1").settle()
    state = simulated.job.status.state
    assert (state.phase, state.reason, state.message) == (
        "Aborting",
        "AbortJob",
        "pod j-worker-1 was deleted",
    )


def test_a_restarting_job_is_pending_again_once_its_old_pods_are_gone() -> None:
    """In Volcano only when the scheduler has let its group in."""
    simulated = in_phase("Restarting")
    simulated.admits = False
    assert simulated.remove_deleted().settle().phase == "Pending"


def test_an_order_that_names_no_pod_restarts_none_and_counts_no_retry() -> None:
    """In Volcano the job is Restarting and has used up a retry."""
    simulated = running().ask("RestartTask").settle()
    assert (simulated.phase, simulated.job.status.retry_count, simulated.commands) == ("Running", 0, [])


def test_an_order_is_carried_out_once_also_if_we_are_stopped_meanwhile() -> None:
    """Volcano deletes it first and forgets it."""
    simulated = running().ask("RestartJob")
    simulated.write(simulated.reconcile().writes[0])
    simulated.restart().settle()
    assert (simulated.phase, simulated.job.status.retry_count, simulated.commands) == ("Restarting", 1, [])


def test_an_order_for_an_earlier_job_of_the_name_is_dropped() -> None:
    simulated = running().ask("AbortJob", uid="u0").settle()
    assert (simulated.phase, simulated.commands) == ("Running", [])


def test_a_partition_of_which_nothing_is_left_is_made_anew() -> None:
    """In Volcano nothing happens until something else does."""
    partition = {"totalPartitions": 2, "partitionSize": 1}
    simulated = running(task(partitionPolicy=partition), policies=[policy("RestartPartition", "PodEvicted")])
    assert simulated.evict("worker-1").settle().alive == ["worker-0", "worker-1"]


def test_a_job_at_rest_is_not_written_about() -> None:
    """Volcano raises its version with every event."""
    simulated = in_phase("Completed")
    before, version = simulated.status_writes, simulated.job.status.version
    simulated.restart().settle().wait(10).settle()
    assert (simulated.status_writes, simulated.job.status.version) == (before, version)


def test_however_often_we_look_a_volume_is_claimed_once() -> None:
    """Volcano draws a new name each time until it could write it down."""
    job = make_job(volumes=[{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}])
    first, second = SimulatedJob(job).settle(), SimulatedJob(job).settle()
    assert first.claims == second.claims
    assert len(first.claims) == 1


def test_a_succeeded_pod_that_is_deleted_does_not_run_again() -> None:
    """In Volcano it does, and a policy for evictions restarts the whole job."""
    simulated = running(minAvailable=1, policies=[policy("RestartJob", "PodEvicted")])
    simulated.set_pod("worker-0", "Succeeded").settle().evict("worker-0").settle()
    status = simulated.job.status
    assert (simulated.phase, simulated.alive, status.succeeded, status.retry_count) == (
        "Running",
        ["worker-1"],
        1,
        0,
    )
