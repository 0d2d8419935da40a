"""What has to change in a job for other numbers of pods."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.job.task_scaling import position_of, scaling_of


def job(*tasks: dict[str, Any], minimum: int | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"tasks": list(tasks)}
    return {
        "metadata": {"name": "train"},
        "spec": spec | ({} if minimum is None else {"minAvailable": minimum}),
    }


def task(name: str, replicas: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, **more}


def values(patch: list[dict[str, Any]]) -> dict[str, Any]:
    return {change["path"]: change["value"] for change in patch if change["op"] != "test"}


def test_more_pods_leave_the_minimums_alone() -> None:
    scaling = scaling_of(job(task("worker", 4, minAvailable=4), minimum=4), 0, 8, None, None)
    assert values(scaling.patch) == {"/spec/tasks/0/replicas": 8}
    assert scaling.text == "worker replicas 4 -> 8"


def test_fewer_pods_lower_what_the_api_server_would_refuse() -> None:
    both = job(task("ps", 1, minAvailable=1), task("worker", 4, minAvailable=4), minimum=5)
    scaling = scaling_of(both, 1, 2, None, None)
    assert values(scaling.patch) == {
        "/spec/tasks/1/replicas": 2,
        "/spec/tasks/1/minAvailable": 2,
        "/spec/minAvailable": 3,
    }
    assert scaling.patch[0] == {"op": "test", "path": "/spec/tasks/1/name", "value": "worker"}


def test_minimums_are_set_as_told_and_never_above_the_pods() -> None:
    elastic = job(task("worker", 4), minimum=2)
    assert values(scaling_of(elastic, 0, 4, 3, 1).patch) == {
        "/spec/tasks/0/minAvailable": 1,
        "/spec/minAvailable": 3,
    }
    with pytest.raises(Usage, match="--min 5 is more than all pods of the job, 4"):
        scaling_of(elastic, 0, 4, 5, None)
    with pytest.raises(Usage, match="--task-min 5 is more than the replicas of task worker, 4"):
        scaling_of(elastic, 0, 4, None, 5)


def test_partitions_cannot_be_scaled() -> None:
    with pytest.raises(ClusterError, match="partitions of a fixed number and size"):
        scaling_of(job(task("worker", 4, partitionPolicy={"totalPartitions": 2})), 0, 8, None, None)


def test_nothing_changes_where_the_number_is_the_same() -> None:
    assert scaling_of(job(task("worker", 4), minimum=4), 0, 4, None, None).text == "nothing changes"


def test_a_job_without_tasks_cannot_be_scaled() -> None:
    for name in ("", "worker"):
        with pytest.raises(Usage, match=r"train has no tasks$"):
            position_of(job(), name)
