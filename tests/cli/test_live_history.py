"""The history of a job, from several sources."""

from __future__ import annotations

from stromboli.cli.explain.live_explanation import without_wrappings
from stromboli.engine.explanation.event_history import HistoryEntry

SENTENCE = "Job train waits: no room; add nodes"
NOON = "2026-11-01T12:00:00Z"


def entry(text: str) -> HistoryEntry:
    return HistoryEntry(time=NOON, kind="event", text=text)


def test_why_a_job_waits_is_told_in_its_own_words_alone() -> None:
    own, other = (
        entry(f"Unschedulable: {SENTENCE}"),
        entry("Unschedulable: Job train waits: its queue is closed"),
    )
    wrapped = [
        entry(f"Unschedulable: {SENTENCE} (0/0 tasks in gang unschedulable)"),
        entry(f"PodGroupPending: PodGroup default:train unschedulable, reason: {SENTENCE} (0/0 tasks)"),
    ]
    created = entry("PodGroup train was created")
    assert without_wrappings([created, *wrapped, own, other]) == [created, own, other]
    assert without_wrappings([created, wrapped[0]]) == [created, wrapped[0]]
