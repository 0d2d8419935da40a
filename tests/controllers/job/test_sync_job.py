"""Bringing a job up and down: groups first, dependencies, scaling, what users are told (spec 06 2.7 to 2.15)."""

from typing import Any

import msgspec
import pytest

from stromboli.api.types.scheduling import Queue
from stromboli.controllers.job.job_status import go_duration
from stromboli.controllers.job.observed_state import CreatePod, PatchJob
from tests.controllers.job.simulated_job import SimulatedJob, in_phase, make_job, policy, running, task


@pytest.mark.parametrize(
    ("phase", "pods"), [("", 0), ("Pending", 0), ("Inqueue", 2), ("Running", 2), ("Unknown", 2)]
)
def test_pods_are_made_once_the_group_is_let_in(phase: str, pods: int) -> None:
    simulated = SimulatedJob(make_job(), admits=False)
    simulated.settle()
    assert simulated.group is not None
    simulated.group.status.phase = phase  # type: ignore[assignment]
    assert len(simulated.settle().alive) == pods


def test_a_new_job_is_pending_with_a_condition_and_no_version() -> None:
    status = SimulatedJob(make_job(), admits=False).settle().job.status
    assert (status.state.phase, status.min_available, status.version) == ("Pending", 2, 0)
    assert [(condition.status, condition.last_transition_time) for condition in status.conditions] == [
        ("Pending", status.state.last_transition_time)
    ]


def test_a_phase_has_one_condition_the_latest_last_and_its_time_is_that_of_the_change() -> None:
    simulated = running().wait(10).set_all("Pending").settle().wait(10).set_all("Running").settle()
    status = simulated.job.status
    assert [condition.status for condition in status.conditions] == ["Pending", "Running"]
    since = status.state.last_transition_time
    simulated.wait(10).set_pod("worker-0", "Succeeded").settle()
    assert (simulated.job.status.state.last_transition_time, simulated.job.status.succeeded) == (since, 1)


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    simulated = running()
    simulated.job.metadata.deletion_timestamp = simulated.now
    simulated.evict("worker-0")
    assert simulated.reconcile().writes == ()


def test_counts_are_by_phase_and_by_task_each_pod_once() -> None:
    simulated = running(task("a", 3), task("b", 2), minAvailable=1)
    simulated.set_pod("a-0", "Succeeded").set_pod("a-1", "Failed").set_pod("b-0", "Strange").settle()
    simulated._delete(simulated.pods["j-b-1"], out_of_sync=False)
    status = simulated.settle().job.status
    counts = (status.running, status.succeeded, status.failed, status.unknown, status.terminating)
    assert counts == (1, 1, 1, 1, 1)
    assert msgspec.to_builtins(status.task_status_count) == {
        "a": {"phase": {"Failed": 1, "Running": 1, "Succeeded": 1}},
        "b": {"phase": {"Unknown": 1}},
    }


def test_a_finished_job_keeps_its_pods_and_their_counts_and_nothing_else() -> None:
    simulated = running(minSuccess=1, plugins={"svc": []})
    simulated.wait(90).set_pod("worker-0", "Succeeded").settle()
    assert (simulated.phase, simulated.alive, simulated.group, simulated.attached) == (
        "Completed",
        ["worker-0"],
        None,
        {},
    )
    status = simulated.remove_deleted().settle().job.status
    assert (status.succeeded, status.running_duration) == (1, "1m30s")
    assert status.controlled_resources == {"succeeded-worker": "0"}


def test_what_was_attached_goes_although_a_crash_kept_us_from_writing_that_down() -> None:
    simulated = SimulatedJob(make_job(plugins={"svc": []}))
    simulated.write(simulated.reconcile().writes[0])
    assert simulated.attached
    simulated.restart().ask("TerminateJob").settle()
    assert (simulated.phase, simulated.attached) == ("Terminated", {})


# -- dependencies


def ready(count: int, *, of: int = 2, least: int | None = None, iteration: str = "") -> list[str]:
    """What exists of a job whose second task waits for `count` ready pods of the first."""
    more = {} if least is None else {"minAvailable": least}
    tasks = task("a", of, **more), task("b", 1, dependsOn={"name": ["a"], "iteration": iteration})
    simulated = SimulatedJob(make_job(*tasks, minAvailable=1)).settle()
    for index in range(count):
        simulated.set_pod(f"a-{index}", "Running")
    return [name for name in simulated.settle().alive if name.startswith("b")]


@pytest.mark.parametrize(
    ("count", "least", "made"), [(0, 1, 0), (1, 1, 1), (1, 2, 0), (2, 2, 1), (0, None, 1), (0, 0, 1)]
)
def test_a_task_waits_for_the_one_that_it_depends_on(count: int, least: int | None, made: int) -> None:
    assert len(ready(count, least=least)) == made


@pytest.mark.parametrize(
    ("status", "made"),
    [
        ({"phase": "Running", "containerStatuses": [{"ready": False}]}, False),
        ({"phase": "Running", "containerStatuses": [{"ready": True}, {"ready": True}]}, True),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, False),
    ],
)
def test_a_pod_is_ready_when_all_its_containers_are_or_it_succeeded(
    status: dict[str, Any], made: bool
) -> None:
    tasks = task("a", 1, minAvailable=1), task("b", 1, dependsOn={"name": ["a"]})
    simulated = SimulatedJob(make_job(*tasks, minAvailable=2)).settle()
    simulated.set_pod("a-0", status.pop("phase"), **status).settle()
    assert ("b-0" in simulated.alive) == made


@pytest.mark.parametrize(("iteration", "made"), [("any", True), ("all", False), ("", False)])
def test_of_several_dependencies_any_or_all_must_be_ready(iteration: str, made: bool) -> None:
    after = {"name": ["a", "b"], "iteration": iteration}
    tasks = task("a", 1, minAvailable=1), task("b", 1, minAvailable=1), task("c", 1, dependsOn=after)
    simulated = SimulatedJob(make_job(*tasks, minAvailable=1)).settle().set_pod("a-0", "Running").settle()
    assert ("c-0" in simulated.alive) == made


# -- scaling


def test_scaling_up_makes_the_missing_pods_and_tells_group_and_hosts() -> None:
    simulated = running(task(replicas=2), minAvailable=1, plugins={"svc": []})
    simulated.scale(worker=4).settle()
    assert simulated.alive == ["worker-0", "worker-1", "worker-2", "worker-3"]
    assert simulated.group is not None
    assert simulated.group.spec.min_task_member == {"worker": 4}
    assert simulated.attached["ConfigMap", "j-svc"]["data"]["VC_WORKER_NUM"] == "4"


def test_scaling_down_deletes_the_last_pods_and_is_no_eviction() -> None:
    simulated = running(task(replicas=4), minAvailable=1, policies=[policy("RestartJob", "PodEvicted")])
    simulated.scale(worker=2).settle()
    assert (simulated.alive, simulated.job.status.terminating) == (["worker-0", "worker-1"], 2)
    simulated.remove_deleted().settle()
    assert (simulated.phase, simulated.job.status.running, simulated.job.status.retry_count) == (
        "Running",
        2,
        0,
    )


def test_a_large_job_is_made_in_steps_that_follow_at_once() -> None:
    simulated = SimulatedJob(make_job(task(replicas=625)))
    made = [sum(isinstance(write, CreatePod) for write in simulated.step().writes) for _ in range(6)]
    assert [count for count in made if count] == [250, 250, 125]
    assert len(simulated.settle().alive) == 625


def test_pods_that_fail_because_they_are_scaled_away_are_no_failure() -> None:
    """A program that is told to end rarely exits with 0."""
    simulated = running(task(replicas=3), minAvailable=1, policies=[policy("RestartJob", "PodFailed")])
    simulated.scale(worker=2).settle()
    simulated.set_pod("worker-2", "Failed", 143).settle()
    simulated.scale(worker=3).settle().remove_deleted().settle()
    assert (simulated.phase, simulated.job.status.retry_count) == ("Running", 0)
    assert simulated.alive == ["worker-0", "worker-1", "worker-2"]


def test_a_pod_that_is_scaled_away_completes_no_task() -> None:
    simulated = running(task(replicas=3), minAvailable=1, policies=[policy("CompleteJob", "TaskCompleted")])
    simulated.set_pod("worker-0", "Succeeded").set_pod("worker-2", "Succeeded").scale(worker=2).settle()
    assert (simulated.phase, simulated.job.status.running) == ("Running", 1)


@pytest.mark.parametrize("phase", ["Completed", "Terminated", "Failed", "Aborted"])
def test_a_job_at_rest_ignores_scaling(phase: str) -> None:
    simulated = in_phase(phase).scale(worker=5).settle()
    assert (simulated.phase, len(simulated.alive)) == (phase, 2 if phase == "Failed" else 0)


# -- what users are told


def test_what_the_scheduler_says_of_the_group_is_told_once() -> None:
    simulated = SimulatedJob(make_job(), admits=False).settle()
    assert simulated.group is not None
    conditions = [
        {"type": "Scheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {
            "type": "Unschedulable",
            "status": "True",
            "message": "2/2 tasks in gang unschedulable",
            "lastTransitionTime": "2026-01-01T00:00:09Z",
        },
    ]
    simulated.group.status = msgspec.convert({"conditions": conditions}, type(simulated.group.status))
    simulated.settle().settle()
    text = "PodGroup team:j unschedulable, reason: 2/2 tasks in gang unschedulable"
    assert simulated.recorded == [("PodGroupPending", text)]
    conditions.reverse()
    conditions[1]["lastTransitionTime"] = "2026-01-01T00:00:10Z"
    simulated.group.status = msgspec.convert({"conditions": conditions}, type(simulated.group.status))
    simulated.settle()
    assert len(simulated.recorded) == 1


def test_a_bad_plugin_argument_is_told_and_what_came_before_it_counts() -> None:
    arguments = ["--inject-hosts-env=false", "--publish-not-ready-adresses", "--disable-network-policy"]
    simulated = SimulatedJob(make_job(plugins={"svc": arguments})).settle()
    assert ("NetworkPolicy", "j") in simulated.attached
    (recorded,) = {text for reason, text in simulated.recorded if reason == "PluginError"}
    assert "did you mean" in recorded
    assert "env" not in simulated.manifests["j-worker-0"]["spec"]["containers"][0]


def test_a_job_of_a_queue_that_hands_on_is_marked() -> None:
    simulated = SimulatedJob(make_job())
    simulated.queue = msgspec.convert(
        {"metadata": {"name": "default"}, "spec": {"extendClusters": [{"name": "far"}]}}, Queue
    )
    assert any(isinstance(write, PatchJob) for write in simulated.step().writes)
    simulated.settle()
    assert simulated.job.metadata.annotations["volcano.sh/job-forwarding"] == "true"
    assert simulated.manifests["j-worker-0"]["metadata"]["labels"]["volcano.sh/job-forwarding"] == "true"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(600, "10m0s"), (0, "0s"), (3605, "1h0m5s"), (0.25, "250ms"), (1.5, "1.5s"), (-61, "-1m1s")],
)
def test_durations_are_spoken_as_go_speaks_them(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
