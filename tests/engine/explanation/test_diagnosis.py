"""A diagnosis is one value: without numbers that move for conditions, and measured for everything else."""

from __future__ import annotations

import msgspec
import pytest

from stromboli.engine.explanation.diagnosis import Diagnosis, Shortage
from stromboli.testing import World

KEYS = "gate reason message hint counts shortages holders pods queue summary sentence closest"


def diagnoses() -> tuple[Diagnosis, Diagnosis]:
    """Of a job that is larger than any node: as conditions have it, and measured."""
    result = World(nodes="n1 cpu=4").job("big", cpu=9).run("enqueue, allocate", "gang")
    (job,) = (job for job in result.outcome.session.cluster.jobs.values() if job.name == "big")
    steady = result.outcome.diagnoses.of(job)
    assert steady is not None
    return steady, result.pending["default/big"]


def test_a_measured_diagnosis_has_the_numbers_and_keeps_the_steady_text() -> None:
    steady, measured = diagnoses()
    assert "9" not in steady.message + steady.remedy
    assert "cpu 9" in measured.remedy
    assert measured.summary == steady.message
    assert measured.sentence == f"PodGroup big waits: {steady.message}; {steady.remedy}"
    assert measured.shortages == (Shortage("cpu", 9000, 4000),)
    assert measured.measured() is measured


def test_the_leader_reports_a_measured_diagnosis_under_stable_keys() -> None:
    steady, measured = diagnoses()
    encoded = msgspec.json.encode(measured)
    assert list(msgspec.json.decode(encoded)) == KEYS.split()
    assert msgspec.json.decode(encoded, type=Diagnosis) == measured
    with pytest.raises(TypeError):
        msgspec.json.encode(steady)
