"""One reconcile at a flow: whose turn it is, how far it is, what is remembered."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest

from stromboli.api.types.jobflow import JobFlow, JobFlowStatus, JobTemplate
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.jobflow.flow_jobs import patched
from stromboli.controllers.jobflow.reconcile import HISTORY_LIMIT, Outcome, reconcile, waiting_for_probes

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
TEMPLATES = {
    name: msgspec.convert(
        {"metadata": {"name": name, "namespace": "ns"}, "spec": {"queue": "q", "t": name}}, JobTemplate
    )
    for name in "abcd"
}


def flow(
    *steps: Any, phase: str = "", policy: str = "retain", status: JobFlowStatus | None = None
) -> JobFlow:
    """`"b<a"`: b after a."""
    flows = []
    for step in steps:
        if isinstance(step, str):
            name, _, before = step.partition("<")
            flows.append({"name": name, **({"dependsOn": {"targets": list(before)}} if before else {})})
        else:
            flows.append(step)
    made = msgspec.convert(
        {
            "metadata": {"name": "f", "namespace": "ns", "uid": "flow-uid"},
            "spec": {"flows": flows, "jobRetainPolicy": policy},
            "status": {"state": {"phase": phase}},
        },
        JobFlow,
    )
    if status is not None:
        made.status = status
    return made


def job(step: str, phase: str, **status: Any) -> Job:
    meta = {"name": f"f-{step}", "namespace": "ns", "uid": f"u-{step}", "creationTimestamp": STAMP}
    return msgspec.convert({"metadata": meta, "status": {"state": {"phase": phase}, **status}}, Job)


def made(outcome: Outcome) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in outcome.create]


def test_jobs_without_dependencies_are_made_at_once() -> None:
    outcome = reconcile(flow("a", "b", "c<ab"), TEMPLATES, [], NOW)
    assert made(outcome) == ["f-a", "f-b"]
    manifest = outcome.create[0]
    marks = {"volcano.sh/createdByJobTemplate": "ns.a", "volcano.sh/createdByJobFlow": "ns.f"}
    assert (manifest["metadata"]["labels"], manifest["metadata"]["annotations"]) == (marks, marks)
    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "flow-uid"
    assert manifest["spec"] == {"queue": "q", "t": "a"}
    assert outcome.status.state.phase == "Pending"


@pytest.mark.parametrize(
    ("a", "b", "starts"),
    [
        ("Completed", "Completed", True),
        ("Completed", "Running", False),
        ("Completed", None, False),
        ("Completed", "Failed", False),
        ("Completed", "Completing", False),
    ],
)
def test_a_job_waits_until_all_before_it_are_complete(a: str, b: str | None, starts: bool) -> None:
    jobs = [job("a", a)] + ([job("b", b)] if b else [])
    assert ("f-c" in made(reconcile(flow("a", "b", "c<ab", phase="Running"), TEMPLATES, jobs, NOW))) is starts


@pytest.mark.parametrize(
    ("phase", "jobs", "then"),
    [
        ("", {}, "Pending"),
        ("", {"a": "Pending"}, "Pending"),
        ("", {"a": "Running"}, "Running"),
        ("Pending", {"a": "Completed"}, "Running"),
        ("Pending", {"a": "Running", "b": "Failed"}, "Failed"),
        ("Pending", {"a": "Running", "b": "Terminated"}, "Running"),
        ("Pending", {"a": "Terminated"}, "Failed"),
        ("Running", {"a": "Running"}, "Running"),
        ("Running", {"a": "Completed", "b": "Completed"}, "Succeed"),
        ("Running", {"a": "Completed", "b": "Failed"}, "Failed"),
        ("Running", {"a": "Completed", "b": "Terminated"}, "Failed"),
        ("Running", {"a": "Completed", "b": "Restarting"}, "Running"),
        ("Running", {"a": "Completed", "b": "Aborted"}, "Running"),
        ("Succeed", {"a": "Failed"}, "Succeed"),
        ("Failed", {"a": "Completed", "b": "Completed"}, "Failed"),
        ("Terminating", {"a": "Running"}, "Terminating"),
    ],
)
def test_the_phase_of_a_flow(phase: str, jobs: dict[str, str], then: str) -> None:
    outcome = reconcile(
        flow("a", "b", phase=phase), TEMPLATES, [job(*name_and_phase) for name_and_phase in jobs.items()], NOW
    )
    assert outcome.status.state.phase == then


def test_jobs_are_listed_by_phase() -> None:
    phases = [
        "Pending",
        "Running",
        "Failed",
        "Terminated",
        "Completed",
        "Restarting",
        "Aborted",
        "",
        "Completing",
    ]
    jobs = [job(str(number), phase) for number, phase in enumerate(phases)]
    status = reconcile(flow(phase="Running"), TEMPLATES, jobs, NOW).status
    assert status.pending_jobs == ("f-0",)
    assert status.running_jobs == ("f-1",)
    assert status.failed_jobs == ("f-2",)
    assert status.terminated_jobs == ("f-3",)
    assert status.completed_jobs == ("f-4",)
    assert status.un_know_jobs == ("f-5", "f-6", "f-7")


def test_a_job_is_shown_with_its_counts_and_its_history() -> None:
    running = job(
        "a",
        "Running",
        runningDuration="1m30s",
        retryCount=2,
        taskStatusCount={"w": {"phase": {"Running": 3}}},
    )
    first = reconcile(flow("a", phase="Running"), TEMPLATES, [running], NOW).status
    assert first.conditions["f-a"] == {
        "phase": "Running",
        "createTime": STAMP,
        "runningDuration": "1m30s",
        "taskStatusCount": {"w": {"phase": {"Running": 3}}},
    }
    (entry,) = first.job_status_list
    assert (entry.state, entry.restart_count) == ("Running", 2)
    assert entry.end_timestamp == datetime.fromisoformat("2026-01-01T00:01:30Z")
    again = reconcile(flow("a", status=first), TEMPLATES, [running], NOW + 10).status
    assert again == first
    then = reconcile(flow("a", status=first), TEMPLATES, [job("a", "Completed")], NOW + 60).status
    (entry,) = then.job_status_list
    assert [(history.state, history.end_timestamp is None) for history in entry.running_histories] == [
        ("Running", False),
        ("Completed", True),
    ]
    assert entry.running_histories[0].end_timestamp == entry.running_histories[1].start_timestamp


def test_a_history_does_not_grow_for_ever() -> None:
    status = None
    for number in range(200):
        phase = ("Running", "Restarting")[number % 2]
        status = reconcile(flow("a", status=status), TEMPLATES, [job("a", phase)], NOW + number).status
        status.state.phase = "Running"
    assert status is not None
    assert len(status.job_status_list[0].running_histories) == HISTORY_LIMIT


def test_a_job_that_was_complete_and_is_gone_is_not_run_again() -> None:
    """As its time to live may be over before the others are done."""
    before = reconcile(flow("a", "b<a", phase="Running"), TEMPLATES, [job("a", "Completed")], NOW).status
    outcome = reconcile(flow("a", "b<a", status=before), TEMPLATES, [], NOW)
    assert made(outcome) == ["f-b"]
    assert outcome.status.completed_jobs == ("f-a",)
    done = reconcile(flow("a", "b<a", status=outcome.status), TEMPLATES, [job("b", "Completed")], NOW)
    assert done.status.state.phase == "Succeed"
    assert reconcile(flow("a", "b<a", status=done.status), TEMPLATES, [], NOW).create == []


def test_a_job_that_is_gone_before_it_was_complete_is_made_again() -> None:
    before = reconcile(flow("a", phase="Running"), TEMPLATES, [job("a", "Running")], NOW).status
    assert made(reconcile(flow("a", status=before), TEMPLATES, [], NOW)) == ["f-a"]


@pytest.mark.parametrize(("policy", "deleted"), [("delete", ["f-a"]), ("retain", []), ("", [])])
def test_what_becomes_of_jobs_when_all_is_done(policy: str, deleted: list[str]) -> None:
    outcome = reconcile(flow("a", phase="Succeed", policy=policy), TEMPLATES, [job("a", "Completed")], NOW)
    assert [job.name for job in outcome.delete] == deleted
    assert outcome.create == []


def test_a_missing_template_holds_up_nobody_else() -> None:
    outcome = reconcile(flow("missing", "a"), TEMPLATES, [], NOW)
    assert (outcome.missing, made(outcome)) == (["missing"], ["f-a"])


def test_a_flow_of_which_nothing_can_start_gets_no_status() -> None:
    """So that who creates it can still update it with what was returned."""
    waiting = flow("missing", {"name": "a", "dependsOn": {"targets": ["missing"]}})
    outcome = reconcile(waiting, TEMPLATES, [], NOW)
    assert (outcome.missing, outcome.status) == (["missing"], waiting.status)
    assert reconcile(flow("missing", "a"), TEMPLATES, [], NOW).status.state.phase == "Pending"


def test_a_flow_without_steps_and_one_that_names_a_step_twice_come_to_an_end() -> None:
    assert reconcile(flow(), TEMPLATES, [], NOW).status.state.phase == "Pending"
    twice = reconcile(flow("a", "a", phase="Running"), TEMPLATES, [job("a", "Completed")], NOW)
    assert twice.status.state.phase == "Succeed"


def test_a_step_with_a_probe_is_asked_for_once_its_targets_are_there() -> None:
    step = {"name": "b", "dependsOn": {"targets": ["a"], "probe": {"tcpSocketList": [{"port": 80}]}}}
    probed = flow("a", step)
    assert waiting_for_probes(probed, {}) == []
    running = job("a", "Running")
    assert [step.name for step in waiting_for_probes(probed, {"f-a": running})] == ["b"]
    assert made(reconcile(probed, TEMPLATES, [running], NOW)) == []
    assert reconcile(probed, TEMPLATES, [running], NOW).requeue_after is not None
    assert made(reconcile(probed, TEMPLATES, [running], NOW, passed={"b"})) == ["f-b"]
    assert made(reconcile(probed, TEMPLATES, [job("a", "Completed")], NOW)) == ["f-b"]


def test_a_patch_changes_the_template_task_by_task() -> None:
    spec = {
        "queue": "q",
        "minAvailable": 2,
        "plugins": {"env": [], "svc": []},
        "tasks": [{"name": "w", "replicas": 2, "template": {"spec": {"a": 1}}}, {"name": "m", "replicas": 1}],
    }
    patch = {
        "minAvailable": 5,
        "queue": "default",
        "maxRetry": 3,
        "plugins": {"svc": ["--x"]},
        "tasks": [{"name": "w", "replicas": 4}, {"name": "new", "replicas": 1}],
    }
    assert patched(spec, patch) == {
        "queue": "q",
        "minAvailable": 5,
        "plugins": {"env": [], "svc": ["--x"]},
        "tasks": [
            {"name": "w", "replicas": 4, "template": {"spec": {"a": 1}}},
            {"name": "m", "replicas": 1},
            {"name": "new", "replicas": 1},
        ],
    }
    assert spec["minAvailable"] == 2
    outcome = reconcile(flow({"name": "a", "patch": {"jobSpec": {"queue": "other"}}}), TEMPLATES, [], NOW)
    assert outcome.create[0]["spec"]["queue"] == "other"


def test_the_summary_of_a_job_with_many_tasks_is_short() -> None:
    counts = {f"t{index}": {"phase": {"Running": 1}} for index in range(101)}
    status = reconcile(flow("a"), TEMPLATES, [job("a", "Running", taskStatusCount=counts)], NOW).status
    assert "taskStatusCount" not in status.conditions["f-a"]
