"""What happened to a job, in the order of time, and how long it waited and ran."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stromboli.cli.cluster.object_events import Happening
from stromboli.cli.dashboard.pages.workloads.job_timeline import moments_of, spans_of, timeline
from stromboli.cli.dashboard.reading.gang_reading import GangReading, PodSummary
from tests.cli.dashboard.view_requests import HOSTILE

START = 1_800_000_000.0


def at(seconds: float) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(*phases: tuple[str, float]) -> dict[str, Any]:
    conditions = [{"status": phase, "lastTransitionTime": at(moment)} for phase, moment in phases]
    state = {"phase": phases[-1][0] if phases else ""}
    return {
        "metadata": {"name": "train", "creationTimestamp": at(0)},
        "status": {"state": state, "conditions": conditions},
    }


def pod(created: float, scheduled: float = 0, started: float = 0, ended: float = 0) -> PodSummary:
    moments = [START + each if each else 0.0 for each in (created, scheduled, started, ended)]
    return PodSummary("p", "worker", 0, "Running", "Running", "n1", 0, "", *moments, ("main",))


def reading(
    manifest: dict[str, Any], *pods: PodSummary, events: list[Happening] | None = None
) -> GangReading:
    gang = {"metadata": {"name": "g"}, "spec": {"minMember": 2}}
    return GangReading(manifest, gang, list(pods), events or [], ())


def test_moments_come_in_the_order_of_time():
    ran = reading(
        job(("Pending", 1), ("Running", 30), ("Completed", 90)), pod(10, 20, 25, 80), pod(11, 22, 28, 85)
    )
    assert [(each.time - START, each.text) for each in moments_of(ran)] == [
        (0, "created"),
        (1, "phase Pending"),
        (10, "let in: its first pod was made"),
        (20, "its first pod was given a node"),
        (22, "its gang of 2 had nodes"),
        (25, "its first pod started"),
        (30, "phase Running"),
        (85, "its last pod ended"),
        (90, "phase Completed"),
    ]


def test_a_job_waited_started_and_ran():
    ran = reading(job(("Running", 30), ("Completed", 90)), pod(10, 20, 25, 85))
    spans = spans_of(ran, moments_of(ran), START + 90)
    assert [(span.kind, span.end - span.begin) for span in spans] == [
        ("wait", 20),
        ("start", 10),
        ("run", 60),
    ]


def test_a_suspended_job_ran_though_its_pods_are_gone():
    gone = reading(job(("Running", 30), ("Aborted", 90)))
    spans = spans_of(gone, moments_of(gone), START + 90)
    assert [(span.kind, span.end - span.begin) for span in spans] == [("wait", 30), ("run", 60)]


def test_moments_of_one_second_are_in_the_order_in_which_they_happen():
    quick = reading(job(("Running", 0), ("Pending", 0)), pod(0.1, 0.4, 0.2))
    assert [each.text for each in moments_of(quick)] == [
        "created",
        "phase Pending",
        "let in: its first pod was made",
        "its first pod was given a node",
        "its first pod started",
        "phase Running",
    ]


def test_a_job_that_waits_has_done_nothing_else():
    waits = reading(job())
    spans = spans_of(waits, moments_of(waits), START + 50)
    assert [(span.kind, span.end - span.begin) for span in spans] == [("wait", 50)]


def eviction(seconds: float, object: str, message: str, times: int = 1) -> Happening:
    moment = START + seconds
    return Happening(moment, moment, "Normal", "Evict", object, message, times, "", "default")


def evictions(*events: Happening) -> list[tuple[float, str]]:
    told = reading(job(("Running", 30)), events=list(events))
    return [(each.time - START, each.text) for each in moments_of(told) if each.kind == "evicted"]


def test_evictions_are_moments_with_their_reason():
    evicted = eviction(41, "podgroup/g", f"for {HOSTILE}", 3)
    shown = timeline(reading(job(("Running", 30)), pod(10, 20, 25), events=[evicted]), START + 100)
    assert "3 pods evicted: for" in shown
    assert "mark-evicted" in shown
    assert "<script" not in shown


def test_a_gang_that_is_evicted_is_one_line_with_a_count():
    reason = "reclaim for default/urgent, chosen by tier 1 (priority)"
    gang = [eviction(40 + number, "podgroup/g", f"train-worker-{number}: {reason}") for number in range(8)]
    assert evictions(*gang) == [(47, f"8 pods evicted: {reason}")]
    again = [eviction(500, "podgroup/g", f"train-worker-{number}: {reason}") for number in range(2)]
    assert evictions(*gang, *again) == [(47, f"8 pods evicted: {reason}"), (500, f"2 pods evicted: {reason}")]


def test_evictions_for_different_reasons_are_told_apart():
    told = evictions(
        eviction(40, "podgroup/g", "train-0: reclaim for a/b"),
        eviction(41, "podgroup/g", "train-1: preempt for a/c"),
        eviction(42, "podgroup/g", "train-2: preempt for a/c", times=3),
    )
    assert told == [(40, "1 pod evicted: reclaim for a/b"), (42, "2 pods evicted (4 times): preempt for a/c")]


def test_what_a_podgroup_and_its_pods_say_is_told_once():
    because = "Pod is evicted, because of reclaim for a/b"
    told = evictions(
        eviction(40, "podgroup/g", "train-0: reclaim for a/b"), eviction(40, "pod", because, times=1)
    )
    assert told == [(40, "1 pod evicted: reclaim for a/b")]
    assert evictions(eviction(40, "pod", because, times=5)) == [(40, "5 pods evicted: reclaim for a/b")]


def test_the_line_of_a_gang_of_another_owner_ends_with_it():
    def line(status: dict[str, Any], *pods: PodSummary, now: float) -> str:
        gang = {"metadata": {"name": "g", "creationTimestamp": at(0)}, "spec": {}, "status": status}
        return timeline(GangReading(None, gang, list(pods), [], ()), START + now).partition("<ol")[0]

    ended = [pod(10, 20, 25, 80), pod(11, 22, 28, 85)]
    running = [*ended, pod(11, 22, 28)]
    conditions = [{"type": "Scheduled", "status": "True", "reason": "r", "lastTransitionTime": at(30)}]
    completed = {"phase": "Completed", "conditions": conditions}
    for gang in (({"phase": "Running"}, *ended), (completed,)):
        assert line(*gang, now=100) == line(*gang, now=5000)
    assert "ran 60s" in line({"phase": "Running"}, *ended, now=5000)
    assert line({"phase": "Running"}, *running, now=100) != line({"phase": "Running"}, *running, now=5000)


def test_the_line_of_a_running_job_changes_seldom():
    runs = reading(job(("Running", 30)), pod(10, 20, 25))
    lines = {timeline(runs, START + 2010 + second).partition("<ol")[0] for second in range(60)}
    assert len(lines) == 1


def test_times_that_are_none_are_left_out():
    odd = {
        "metadata": {"creationTimestamp": HOSTILE},
        "status": {"conditions": [{"lastTransitionTime": 7}, "x"]},
    }
    assert "Nothing is known" in timeline(GangReading(odd, None, None, None, ()), START)


def test_the_line_of_a_job_that_was_resumed_begins_then_and_says_so():
    phases = [("Aborting", 140), ("Aborted", 145), ("Restarting", 200), ("Pending", 201), ("Running", 210)]
    resumed = reading(job(*phases), pod(202, 205, 208))
    spans = spans_of(resumed, moments_of(resumed), START + 300)
    assert [(span.kind, span.end - span.begin) for span in spans] == [("wait", 5), ("start", 5), ("run", 90)]
    assert "Since it was resumed: waited 5s, started its pods 5s, ran 90s." in timeline(resumed, START + 300)


def test_what_ran_before_a_job_was_resumed_is_not_taken_for_what_it_does_now():
    waits = reading(job(("Running", 10), ("Aborted", 145), ("Restarting", 200), ("Pending", 201)))
    spans = spans_of(waits, moments_of(waits), START + 260)
    assert [(span.kind, span.end - span.begin) for span in spans] == [("wait", 60)]


def test_the_line_of_a_job_that_was_restarted_begins_then():
    restarted = reading(job(("Restarting", 100), ("Pending", 102), ("Running", 110)), pod(103, 105, 108))
    assert "Since it was restarted: waited 3s" in timeline(restarted, START + 130)
