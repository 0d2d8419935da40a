"""What the leader knows is added to what follows from objects."""

from io import StringIO
from typing import Any

from rich.console import Console

from stromboli.cli.explain.explanation_text import SubjectText
from stromboli.cli.explain.leader_facts import add_leader_facts
from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.plugin import Promise
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.simulator.explain.explanation_document import Explanation, JobExplanation, as_builtins
from stromboli.testing.world import World
from tests.simulator.explain.explained_worlds import explain_job

AT_ONE = 1793538000.0


def waiting_job() -> JobExplanation:
    world = World("n1 cpu=3")
    world.job("huge", pods=1, cpu=4)
    return explain_job(world, "huge", "allocate", "gang predicates")


def answer(**facts: Any) -> LeaderAnswer:
    return LeaderAnswer("podgroups", "default", "huge", leader="leader-0", time=AT_ONE, **facts)


def text_of(job: JobExplanation) -> str:
    out = StringIO()
    SubjectText(Console(file=out, width=200)).print(job)
    return out.getvalue()


def test_a_promised_start_is_told_before_the_forecast() -> None:
    job = waiting_job()
    add_leader_facts(job, answer(promise=Promise(AT_ONE, ("n1",), ("default/long",))))
    lines = [line.strip() for line in text_of(job).splitlines()]
    place = lines.index("Expected start")
    assert lines[place + 1] == "The leader reserved a start by 2026-11-01T13:00:00Z."
    assert lines[place + 2] == "After default/long ends, on n1."


def test_the_room_of_jobs_over_their_limits_has_no_time() -> None:
    job = waiting_job()
    add_leader_facts(job, answer(promise=Promise(AT_ONE, ("n1",), ("default/long",), overdue=True)))
    promise = as_builtins(Explanation(subjects=[job]))["subjects"][0]["promise"]
    assert list(promise) == ["text", "start", "nodes", "after", "overdue"]
    assert (promise["start"], promise["after"], promise["overdue"]) == (None, ["default/long"], True)
    assert "over their time limits" in text_of(job)


def test_what_the_leader_sees_otherwise_is_a_note() -> None:
    job = waiting_job()
    held = Diagnosis("backfill", "held back", "it would delay \x1b[31mdefault/other")
    add_leader_facts(job, answer(explanation=held))
    assert job.notes[-1].startswith("The leader reported at 2026-11-01T13:00:00Z: it would delay ")
    assert "\x1b" not in text_of(job)


def test_what_the_leader_sees_alike_is_told_once() -> None:
    job = waiting_job()
    assert job.wait is not None
    add_leader_facts(job, answer(explanation=Diagnosis(job.wait.gate, job.wait.reason, job.wait.message)))
    assert job.notes == []


def test_a_lost_cycle_of_the_leader_is_told() -> None:
    job = waiting_job()
    add_leader_facts(job, answer(lost="plugin mine failed: boom"))
    assert job.notes == ["The leader's last cycle failed: plugin mine failed: boom"]
