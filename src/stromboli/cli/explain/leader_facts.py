"""What the leader knows of a subject besides its objects, added to what is explained from them."""

from __future__ import annotations

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.engine.explanation.quantities import time_text
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.simulator.explain.explanation_document import JobExplanation, Subject


def add_leader_facts(subject: Subject, answer: LeaderAnswer) -> None:
    """Add history, what plugins remember, the start that was promised, and what the leader sees otherwise."""
    history = answer.history
    history.leader = answer.leader
    subject.history = subject.history.merged(history)
    subject.remembered = answer.remembered
    if answer.lost:
        subject.notes.append(f"The leader's last cycle failed: {shown(answer.lost)}")
    if isinstance(subject, JobExplanation) and subject.state in ("waits", "starts"):
        subject.promise = answer.promise
        _add_other_cause(subject, answer)


def _add_other_cause(job: JobExplanation, answer: LeaderAnswer) -> None:
    """The leader may see what objects do not tell, such as what its plugins remember."""
    wait = answer.explanation
    if wait is not None and (job.wait is None or job.wait.gate != wait.gate):
        job.notes.append(f"The leader reported at {time_text(answer.time)}: {shown(wait.message)}")
