"""What tables show of jobs, also of jobs that are not as they should be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stromboli.cli.cluster.object_output import cell
from stromboli.cli.job.job_columns import job_columns


def row(job: dict[str, Any], wide: bool = False, **groups: Any) -> dict[str, str]:
    columns = [column for column in job_columns(groups) if wide or not column.wide]
    return {column.title: cell(column.value(job)) for column in columns}


def stamp(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(phase: str = "", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "train", "uid": "u", "creationTimestamp": stamp(7200)},
        "spec": {"minAvailable": 3, "tasks": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 3}]},
        "status": {"state": {"phase": phase, **status.pop("state", {})}, **status},
    }


def test_a_running_job_has_pods_of_all_tasks_and_the_time_since_it_started() -> None:
    running = job("Running", running=4, conditions=[{"status": "Running", "lastTransitionTime": stamp(3600)}])
    assert row(running) == {
        "NAME": "train",
        "STATUS": "Running",
        "QUEUE": "default",
        "PODS": "4/5",
        "MIN": "3",
        "AGE": "120m",
        "DURATION": "60m",
    }


def test_the_run_time_of_a_job_ends_with_it() -> None:
    ended = job(
        "Completed",
        state={"lastTransitionTime": stamp(3600)},
        conditions=[{"status": "Running", "lastTransitionTime": stamp(5400)}],
    )
    assert row(ended)["DURATION"] == "30m"
    again = job("Pending", conditions=[{"status": "Running", "lastTransitionTime": stamp(5400)}])
    assert row(again)["DURATION"] == "<none>"


def test_a_job_that_no_controller_has_seen_is_pending_and_one_that_goes_is_deleting() -> None:
    assert row({"metadata": {"name": "new"}})["STATUS"] == "Pending"
    going = job("Running")
    going["metadata"]["deletionTimestamp"] = stamp(1)
    assert row(going)["STATUS"] == "Deleting"


def test_the_reason_is_that_of_the_scheduler_in_a_few_words() -> None:
    message = "Job train waits: 2 of 3 pods find no room; wait for jobs to end (0/4 nodes are available)"
    condition = {"type": "Unschedulable", "status": "True", "message": message}
    shown = row(job("Pending"), wide=True, **{"train-u": {"status": {"conditions": [condition]}}})
    assert shown["REASON"] == "2 of 3 pods find no room"
    failed = job("Failed", state={"reason": "MaxRetry", "message": "\x1b[2Jit failed"})
    assert row(failed, wide=True)["REASON"] == "MaxRetry: \\x1b[2Jit failed"


@pytest.mark.parametrize(
    "broken",
    [
        {"metadata": {"name": "x"}, "spec": None, "status": None},
        {"metadata": {"name": "x"}, "spec": {"tasks": "none"}, "status": {"state": "Running"}},
        {
            "metadata": {"name": "x" * 10_000},
            "spec": {"tasks": [3, {"replicas": "many"}]},
            "status": {"conditions": [1]},
        },
    ],
)
def test_any_object_has_a_row(broken: dict[str, Any]) -> None:
    shown = row(broken, wide=True)
    assert shown["PODS"] == "0/0"
    assert max(map(len, shown.values())) <= 120
