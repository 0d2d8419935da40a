"""Why a job waits and how its pods fared, in the words of their status; ranks of pods."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cli.following.job_wait import wait_sentence
from stromboli.cli.following.pod_trouble import failure_code
from stromboli.cli.following.rank_prefix import PodRanks

Manifest = dict[str, Any]


def job(phase: str = "Pending", reason: str = "", message: str = "", **tasks: int) -> Manifest:
    state = {"phase": phase, "reason": reason, "message": message}
    listed = [{"name": name, "replicas": count} for name, count in tasks.items()]
    return {"metadata": {"name": "train"}, "spec": {"tasks": listed}, "status": {"state": state}}


def group(message: str, type: str = "Unschedulable") -> Manifest:
    return {"status": {"conditions": [{"type": type, "status": "True", "message": message}]}}


def pod(task: str = "worker", index: object = 0, **status: Any) -> Manifest:
    labels = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
    return {"metadata": {"name": f"train-{task}-{index}", "labels": labels}, "status": status}


def test_the_job_itself_knows_best_then_the_scheduler_then_its_pods() -> None:
    waiting = pod(containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}])
    assert wait_sentence(job(reason="NameTaken", message="x"), group("full"), [waiting]).endswith(
        "NameTaken: x"
    )
    assert wait_sentence(job(), group("full"), [waiting]) == "train pending: full"
    assert wait_sentence(job(), None, [waiting]).endswith("pod train-worker-0: ImagePullBackOff: no")
    assert wait_sentence(job(), None, [], "queue q is not found") == "train pending: queue q is not found"
    assert wait_sentence(job(), None, [pod(phase="Running"), pod()]) == "train pending: 1 of 2 pods run"
    assert wait_sentence(job(""), None, []) == "train pending: no controller has seen it yet"


@pytest.mark.parametrize("phase", ["Running", "Completed", "Failed", "Aborted", "Terminated"])
def test_a_job_that_runs_or_has_ended_waits_for_nothing(phase: str) -> None:
    assert wait_sentence(job(phase), group("full"), []) == ""


def test_a_condition_that_is_over_says_nothing() -> None:
    assert wait_sentence(job(), group("all placed", "Scheduled"), []) == "train pending"


def test_ranks_count_through_all_tasks() -> None:
    ranks = PodRanks(job(master=1, worker=11))
    assert (ranks.rank(pod("master")), ranks.rank(pod("worker", 3))) == (0, 4)
    assert (ranks.prefix(pod("worker", 3)), ranks.prefix(pod("worker", 9), "log")) == ("[ 4] ", "[10 log] ")


def test_a_single_pod_needs_no_prefix() -> None:
    assert PodRanks(job(worker=1)).prefix(pod()) == ""


@pytest.mark.parametrize("index", ["x", "-1", "9" * 30, "", "٣٣"])
def test_a_hostile_index_is_no_rank(index: str) -> None:
    assert isinstance(PodRanks(job(worker=2)).rank(pod(index=index)), int)


def test_the_exit_code_is_that_of_the_container_that_failed() -> None:
    ended = [{"state": {"terminated": {"exitCode": code}}} for code in (0, 3)]
    assert failure_code({"phase": "Failed", "containerStatuses": ended}) == 3
    assert failure_code({"phase": "Failed", "reason": "Evicted"}) == 1
    assert failure_code({"phase": "Succeeded", "containerStatuses": ended[:1]}) == 0
