"""Why jobs still wait when a simulation has come to its end: a note for each reason, with the first few jobs."""

from __future__ import annotations

from collections.abc import Sequence

from stromboli.engine.attribution import SuppressedErrors
from stromboli.engine.cycle import Outcome
from stromboli.model.cluster import Cluster
from stromboli.simulator.count_sentences import count_sentence
from stromboli.simulator.dangling_references import first_few
from stromboli.simulator.runs.job_run import JobRun
from stromboli.simulator.runs.run_notes import EXAMPLES

ASKED = 500
"""Jobs whose reason is looked for, as each may take a look at every node; others are counted."""


def waiting_notes(runs: Sequence[JobRun], what: str, cluster: Cluster, outcome: Outcome | None) -> list[str]:
    """`3 jobs never started: <why> (a, b, c)`, by the last cycle; without it, nobody knows why."""
    by_reason: dict[str, list[JobRun]] = {}
    others: list[JobRun] = []
    for place, run in enumerate(runs):
        reason = _reason(run, cluster, outcome) if outcome is not None and place < ASKED else ""
        if reason and (reason in by_reason or len(by_reason) < EXAMPLES):
            by_reason.setdefault(reason, []).append(run)
        else:
            others.append(run)
    notes = [
        f"{count_sentence(len(held), 'job', what)}: {reason} ({_names(held)})"
        for reason, held in by_reason.items()
    ]
    if others:
        noun = "more job" if by_reason else "job"
        notes.append(f"{count_sentence(len(others), noun, what)}: {_names(others)}")
    return notes


def _names(runs: Sequence[JobRun]) -> str:
    return first_few([run.job.name for run in runs])


def _reason(run: JobRun, cluster: Cluster, outcome: Outcome) -> str:
    """What holds a job and the remedy, without its name; empty if that cannot be told."""
    task = next(filter(None, map(cluster.tasks.get, run.uids)), None)
    if task is None or task.job is None:
        return ""
    with SuppressedErrors((Exception,)):  # plugins are asked, and a reason is worth no run
        if diagnosis := outcome.diagnoses.after(task.job, outcome.lost):
            return diagnosis.clause_about(task.job)
    return ""
