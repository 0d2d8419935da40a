"""A diagnosis is one value: without numbers that move for conditions, and measured for everything else."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from stromboli.engine.explanation.diagnosis import Diagnosis, Shortage
from stromboli.engine.placement.node_functions import Check, Nodes
from stromboli.engine.plugin import Invalid, Plugin
from stromboli.engine.points import Vote
from stromboli.model.job import Job
from stromboli.model.remedy import Why
from stromboli.model.task import Task
from stromboli.testing import World

KEYS = "gate reason message hint counts shortages holders pods queue summary sentence closest code"


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


class NoSsd(Plugin):
    """Keeps pods off all nodes: one line gives the reason, the remedy and the code."""

    name = "no-ssd"

    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        yield Check(
            ~nodes.all(), "node(s) had no fast disk, or: none at all", remedy="add disks", code="NoSsd"
        )


class NoLicence(Plugin):
    """Leaves jobs out with one value."""

    name = "no-licence"

    def job_valid(self, job: Job) -> Invalid | None:
        return Invalid("NoLicence", "no licence: 3 of 3, all taken", "buy one", "no licence: all, taken")


class NoEntry(Plugin):
    """Does not admit jobs."""

    name = "no-entry"

    def job_enqueueable(self, job: Job) -> Vote:
        self.session.refuse(job, self.name, Why("full: 3 of 3, sorry", "wait", "Full", "full, sorry", "full"))
        return Vote.REJECT


@pytest.mark.parametrize(
    ("plugin", "gate", "reason", "code", "message"),
    [
        (
            NoSsd,
            "nodes",
            "node(s) had no fast disk, or: none at all",
            "NoSsd",
            "a-0: 0/1 nodes are unavailable: 1 node(s) had no fast disk, or: none at all.",
        ),
        (NoLicence, "validity", "no licence: all, taken", "NoLicence", "no licence: 3 of 3, all taken"),
        (NoEntry, "enqueue", "full", "Full", "full: 3 of 3, sorry"),
    ],
)
def test_what_refuses_gives_the_code_and_the_short_reason_and_no_text_is_cut(
    plugin: type[Plugin], gate: str, reason: str, code: str, message: str
) -> None:
    world = World(nodes="n1 cpu=4").job("a", cpu=1, phase="Pending", min_resources={"cpu": 1})
    result = world.run("enqueue, allocate", f"gang predicates {plugin.name}", plugin_classes=[plugin])
    wait = result.pending["default/a"]
    assert (wait.gate, wait.reason, wait.code, wait.message) == (gate, reason, code, message)
