"""Annotations of ours on jobs at the gate: the jobs that one waits for, and how many pods run at a time."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api import names
from tests.admission.reviewing import job, task, texts


def annotated(minimum: int = 1, **annotations: str) -> dict[str, Any]:
    keys = {"after": names.AFTER, "parallelism": names.PARALLELISM}
    made = job(task(replicas=4, minAvailable=minimum))
    made["metadata"]["annotations"] = {keys[key]: value for key, value in annotations.items()}
    made["spec"]["minAvailable"] = minimum
    return made


@pytest.mark.parametrize("text", ["prepare", "afterok:a:b,afterany:c", "after:a, afternotok:b"])
def test_jobs_to_wait_for_are_let_through(text: str) -> None:
    assert texts("/jobs/validate", annotated(after=text)) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no job is named"),
        ("soon:a", '"soon" is no condition'),
        ("Prepare", '"Prepare" is no name of a job'),
        ("a?b", "any of several"),
        (",".join(f"a{i}" for i in range(101)), "at most 100"),
        ("a" * 20_000, "longer than 16384 bytes"),
        ("\x1b[2J", "no name of a job"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, why: str) -> None:
    assert why in " ".join(texts("/jobs/validate", annotated(after=text)))


def test_a_job_cannot_wait_for_itself() -> None:
    name = annotated()["metadata"]["name"]
    assert "wait for itself" in " ".join(texts("/jobs/validate", annotated(after=f"other,afterany:{name}")))


@pytest.mark.parametrize("text", ["0", "-1", "three", "1000000", "٣", ""])
def test_a_number_of_pods_at_a_time_must_be_one(text: str) -> None:
    assert "number of pods" in " ".join(texts("/jobs/validate", annotated(parallelism=text)))


def test_pods_that_must_start_together_run_at_a_time() -> None:
    assert texts("/jobs/validate", annotated(minimum=3, parallelism="3")) == []
    assert "start together" in " ".join(texts("/jobs/validate", annotated(minimum=3, parallelism="2")))
