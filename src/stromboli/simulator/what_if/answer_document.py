"""An answer as JSON has it; see docs/what-if.md. Keys may be added, never changed."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import Any

import msgspec

from stromboli.api.go_scalars import rfc3339
from stromboli.simulator.what_if.run_differences import Eviction, Shift
from stromboli.simulator.what_if.what_if_answer import Answer, SubmittedJobAnswer

SCHEMA = 1


def answer_document(answer: Answer) -> dict[str, Any]:
    """Plain data: moments as clock time, and in seconds from now under keys that end in `_s`."""
    others = answer.others
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "cluster": answer.cluster,
        "now": clock_time(answer.now),
        "policy": answer.policy,
        "starts": answer.starts,
        "jobs": [_job(answer, job) for job in answer.jobs],
        "delayed": [_shift(answer, shift) for shift in others.later],
        "earlier": [_shift(answer, shift) for shift in others.earlier],
        "evicted": [_eviction(answer, eviction) for eviction in others.evictions],
        "never": answer.never,
        "undetermined": answer.undetermined,
        "assumptions": msgspec.to_builtins(answer.assumptions),
    }
    extras = {"warnings": answer.warnings, "failures": answer.failures, "partial": answer.partial}
    return document | {key: value for key, value in extras.items() if value}


def clock_time(moment: float) -> str | None:
    """Seconds since 1970 as Kubernetes writes a time; None beyond the year 9999, where clocks end."""
    try:
        return rfc3339(datetime.fromtimestamp(moment, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _job(answer: Answer, job: SubmittedJobAnswer) -> dict[str, Any]:
    untils = [*(wait.since for wait in job.waits[1:]), job.started]
    seconds = job.run_time.seconds
    return {
        "name": job.name,
        "queue": job.queue,
        "pods": job.pods,
        "minimum": job.minimum,
        **_moment(answer, "start", job.started),
        **_moment(answer, "complete", job.complete),
        **_moment(answer, "end", job.ended),
        "run_time_s": seconds if isfinite(seconds) else None,
        "run_time_from": job.run_time.basis.value,
        "placement": job.placement,
        "waits": [
            {
                **_moment(answer, "since", wait.since),
                **_moment(answer, "until", until),
                "reason": wait.explanation.reason,
                "message": wait.explanation.message,
                "hint": wait.explanation.remedy,
            }
            for wait, until in zip(job.waits, untils, strict=False)
        ],
        "after": [{"job": name, **_moment(answer, "end", end)} for name, end in job.after.items()],
        "ahead": job.ahead,
        **_moment(answer, "not_before", job.not_before),
        "blockers": job.blockers,
    }


def _shift(answer: Answer, shift: Shift) -> dict[str, Any]:
    return {
        "job": shift.job,
        "queue": shift.queue,
        **_moment(answer, "start", shift.start_with),
        **_moment(answer, "start_without", shift.start_without),
        "start_delay_s": _rounded(shift.start_delay),
        **_moment(answer, "complete", shift.complete_with),
        **_moment(answer, "complete_without", shift.complete_without),
        **_moment(answer, "end", shift.end_with),
        **_moment(answer, "end_without", shift.end_without),
        "end_delay_s": _rounded(shift.end_delay),
    }


def _eviction(answer: Answer, eviction: Eviction) -> dict[str, Any]:
    return {
        "pod": eviction.pod,
        "job": eviction.job,
        "node": eviction.node,
        **_moment(answer, "time", eviction.time),
        "lost_work_s": _rounded(eviction.lost_work),
        "reason": eviction.reason,
        "beneficiary": eviction.beneficiary,
        **_moment(answer, "restart", eviction.restart),
    }


def _moment(answer: Answer, key: str, seconds: float | None) -> dict[str, Any]:
    """A moment as clock time and in seconds from now; null for never, or if nobody knows it."""
    clock = None if seconds is None else clock_time(answer.now + seconds)
    return {key: clock, f"{key}_s": _rounded(seconds)}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
