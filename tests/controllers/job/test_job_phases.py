"""The state table of a job (spec 06 2.6), and the rules by which phases follow from counts."""

from typing import Any

import msgspec
import pytest

from stromboli.controllers.job.job_phases import Action, Effect, Phase, next_phase, transition_of
from stromboli.controllers.job.pod_facts import Counts
from tests.controllers.job.simulated_job import in_phase, make_job, policy, running, task

LIVE = """
RestartJob        delete all pods                              Restarting  1
RestartTask       delete targeted pods                         Restarting  1
RestartPod        delete targeted pods                         Restarting  1
RestartPartition  delete targeted pods                         Restarting  1
AbortJob          delete all pods but those that have ended    Aborting    0
CompleteJob       delete all pods but those that have ended    Completing  0
TerminateJob      delete all pods but those that have ended    Terminating 0
ResumeJob         sync pods                                    -           0
SyncJob           sync pods                                    -           0
Nonsense          sync pods                                    -           0
"""
AGAIN = """
RestartJob        delete all pods                              Restarting  0
RestartTask       delete targeted pods                         -           0
RestartPod        delete targeted pods                         -           0
RestartPartition  delete targeted pods                         -           0
AbortJob          delete all pods but those that have ended    Aborting    0
CompleteJob       delete all pods but those that have ended    Completing  0
TerminateJob      delete all pods but those that have ended    Terminating 0
ResumeJob         sync pods                                    -           0
SyncJob           sync pods                                    -           0
"""
RESUMABLE = """
ResumeJob         delete all pods but those that have ended    Restarting  0
AbortJob          delete all pods but those that have ended    -           0
RestartJob        delete all pods but those that have ended    -           0
SyncJob           delete all pods but those that have ended    -           0
"""
ENDING = """
ResumeJob         delete all pods but those that have ended    -           0
AbortJob          delete all pods but those that have ended    -           0
RestartJob        delete all pods but those that have ended    -           0
RestartTask       delete all pods but those that have ended    -           0
SyncJob           delete all pods but those that have ended    -           0
"""
TABLE = {
    "": LIVE,
    "Pending": LIVE,
    "Whatever": LIVE,
    "Running": LIVE,
    "Restarting": AGAIN,
    "Aborting": RESUMABLE,
    "Aborted": RESUMABLE,
    "Completing": ENDING,
    "Completed": ENDING,
    "Terminating": ENDING,
    "Terminated": ENDING,
    "Failed": ENDING,
}
ROWS = [
    (phase, *line.split(maxsplit=1)) for phase, text in TABLE.items() for line in text.strip().splitlines()
]


@pytest.mark.parametrize(("phase", "action", "expected"), ROWS)
def test_the_state_table(phase: str, action: str, expected: str) -> None:
    does, to, retries = expected.rsplit(maxsplit=2)
    transition = transition_of(phase, action)
    assert (transition.effect, transition.to or "-", int(transition.is_retry)) == (
        does.strip(),
        to,
        int(retries),
    )


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("action", list(Action))
def test_an_action_is_carried_out_as_the_table_says(phase: str, action: str) -> None:
    """By a user's command, on a job that came into the phase as jobs do."""
    simulated = in_phase(phase)
    before, transition = simulated.job.status, transition_of(phase, action)
    pods = len(simulated.alive)
    simulated.ask(action).step()
    status = simulated.job.status
    aimless = transition.effect == Effect.KILL_TARGET  # a command names no pod
    assert status.state.phase == (phase if transition.to is None or aimless else transition.to)
    assert status.retry_count == before.retry_count + (transition.is_retry and not aimless)
    assert simulated.commands == []
    if transition.effect in (Effect.KILL, Effect.KILL_ALL) and transition.to is not None:
        assert status.version == before.version + 1
        assert status.terminating == pods if phase in ("Pending", "Running") else True
        assert simulated.group is None


UNCHANGED = None


@pytest.mark.parametrize(
    ("phase", "counts", "spec", "expected"),
    [
        # Pending: Running once as many run or ran as must
        ("Pending", {"running": 3}, {}, "Running"),
        ("Pending", {"running": 1, "succeeded": 1, "failed": 1}, {}, "Running"),
        ("Pending", {"running": 2, "pending": 1}, {}, UNCHANGED),
        ("Pending", {"pending": 3}, {"minAvailable": 0}, "Running"),
        # Running
        ("Running", {"running": 3}, {}, UNCHANGED),
        ("Running", {"succeeded": 2, "running": 1}, {"minSuccess": 2}, "Completed"),
        ("Running", {"succeeded": 1, "running": 2}, {"minSuccess": 2}, UNCHANGED),
        ("Running", {"succeeded": 3}, {}, "Completed"),
        ("Running", {"succeeded": 2, "failed": 1}, {}, "Failed"),
        ("Running", {"succeeded": 2, "failed": 1}, {"minAvailable": 2}, "Completed"),
        ("Running", {"succeeded": 1, "failed": 2}, {"minAvailable": 2}, "Failed"),
        ("Running", {"succeeded": 1, "failed": 2}, {"minAvailable": 1, "minSuccess": 2}, "Failed"),
        ("Running", {"pending": 1, "running": 2}, {}, "Pending"),
        ("Running", {"pending": 1, "running": 2}, {"minAvailable": 2}, UNCHANGED),
        ("Running", {"pending": 2, "running": 1}, {"minAvailable": 2}, "Pending"),
        ("Running", {}, {"tasks": [], "minAvailable": 0}, UNCHANGED),
        # Restarting: Pending once enough of the old pods are gone
        ("Restarting", {"terminating": 1}, {}, UNCHANGED),
        ("Restarting", {"terminating": 0}, {}, "Pending"),
        ("Restarting", {"terminating": 1}, {"minAvailable": 2}, "Pending"),
        ("Restarting", {}, {"status": {"retryCount": 3, "minAvailable": 3}}, "Pending"),
        ("Restarting", {}, {"status": {"retryCount": 4, "minAvailable": 3}}, "Failed"),
        # what ends, has ended once nothing runs
        ("Aborting", {"terminating": 1}, {}, UNCHANGED),
        ("Aborting", {"pending": 1}, {}, UNCHANGED),
        ("Aborting", {"running": 1}, {}, UNCHANGED),
        ("Aborting", {"succeeded": 1, "failed": 1}, {}, "Aborted"),
        ("Completing", {"terminating": 1}, {}, UNCHANGED),
        ("Completing", {}, {}, "Completed"),
        ("Terminating", {"running": 1}, {}, UNCHANGED),
        ("Terminating", {}, {}, "Terminated"),
        # what has ended stays
        ("Aborted", {"running": 3}, {}, UNCHANGED),
        ("Completed", {"running": 3}, {}, UNCHANGED),
        ("Terminated", {}, {}, UNCHANGED),
        ("Failed", {"succeeded": 3}, {}, UNCHANGED),
    ],
)
def test_the_phase_that_follows_from_the_counts(
    phase: str, counts: dict[str, int], spec: dict[str, Any], expected: str | None
) -> None:
    spec = {"tasks": [task(replicas=3)], **spec}
    status = {"minAvailable": spec.get("minAvailable", 3), **spec.pop("status", {})}
    tasks = spec.pop("tasks")
    job = make_job(*tasks, **spec) if tasks else make_job(task(replicas=0), **spec)
    job.status = msgspec.convert(status, type(job.status))
    assert next_phase(phase, job, Counts(**counts)) == expected


@pytest.mark.parametrize(
    ("succeeded", "phase"),
    [({"a": 2, "b": 2}, "Completed"), ({"a": 2, "b": 1}, "Failed"), ({"a": 1, "b": 2}, "Completed")],
)
def test_a_job_that_needs_all_of_its_tasks_needs_enough_of_each(
    succeeded: dict[str, int], phase: str
) -> None:
    tasks = task("a", 2, minAvailable=1), task("b", 2, minAvailable=2)
    simulated = running(*tasks, minAvailable=3)
    for name, count in succeeded.items():
        for index in range(2):
            simulated.set_pod(f"{name}-{index}", "Succeeded" if index < count else "Failed")
    assert simulated.settle().phase == phase


def test_a_task_policy_strikes_the_pods_of_its_row() -> None:
    """RestartTask, RestartPod and RestartPartition kill what they are about, count a retry and keep the group."""
    expected = {
        "RestartTask": ["b-0", "b-1"],
        "RestartPod": ["a-0", "a-2", "a-3", "b-0", "b-1"],
        "RestartPartition": ["a-2", "a-3", "b-0", "b-1"],
    }
    for action, left in expected.items():
        partitioned = task(
            "a",
            4,
            policies=[policy(action, "PodFailed")],
            partitionPolicy={"totalPartitions": 2, "partitionSize": 2},
        )
        simulated = running(partitioned, task("b", 2))
        group = simulated.group
        simulated.set_pod("a-1", "Failed").step()
        assert (simulated.alive, simulated.phase, simulated.job.status.retry_count) == (left, "Restarting", 1)
        assert simulated.group is group
        assert simulated.job.status.version == 0
        simulated.remove_deleted().settle()
        assert (len(simulated.alive), simulated.phase) == (6, "Pending")
