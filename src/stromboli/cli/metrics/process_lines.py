"""What metrics say of a process and of its requests, and of controllers."""

from __future__ import annotations

from stromboli.cli.metrics import metric_names as names
from stromboli.cli.metrics.measure_text import count_text, counts_by, number, within_text
from stromboli.cli.metrics.metric_samples import Samples
from stromboli.cli.metrics.scheduler_lines import FINE_FAILED_PART, distribution_numbers
from stromboli.cli.metrics.summary_line import Numbers, SummaryLine, judged, neutral

FINE_CREATION_SECONDS = 10.0
"""From a Job to its pods, of 99 of 100 pods."""
NO_RIGHT = ("401", "403")
TOO_MANY = "429"
NO_ANSWER = "<error>"


def requests(samples: Samples) -> SummaryLine | None:
    codes = samples.by_label(names.REQUESTS, "code")
    if not codes:
        return None
    failed = sum(count for code, count in codes.items() if _is_failure(code))
    denied = sum(codes.get(code, 0.0) for code in NO_RIGHT)
    text = counts_by({_answered(code): count for code, count in codes.items()}, samples.seconds) or "none"
    is_fine = failed <= FINE_FAILED_PART * sum(codes.values()) and not denied
    remedy = (
        "rights are missing: `stromboli check` names them"
        if denied
        else "the API server is overloaded, restarting, or cannot be reached; its log, and `stromboli check`"
    )
    numbers: Numbers = {"byCode": {code: number(count) for code, count in codes.items()}}
    return judged(is_fine, "requests", text, numbers, remedy)


def _is_failure(code: str) -> bool:
    """Whether the API server could not do what it was asked for; a refusal such as a conflict is no failure."""
    return code.startswith("5") or code in (TOO_MANY, NO_ANSWER)


def _answered(code: str) -> str:
    return "without answer" if code == NO_ANSWER else f"answered {code}"


def telemetry(samples: Samples) -> SummaryLine | None:
    failures = samples.by_label(names.TELEMETRY_FAILURES, "part")
    if not sum(failures.values()):
        return None
    return judged(
        False,
        "telemetry",
        f"failed: {counts_by(failures, samples.seconds)}",
        {part: number(count) for part, count in failures.items()},
        "what only tells failed, the work went on: the log says why",
    )


def pod_creation(samples: Samples) -> SummaryLine | None:
    taken = samples.distribution(names.POD_CREATION)
    if taken is None:
        return None
    most = taken.quantile(0.99)
    return judged(
        most.value <= FINE_CREATION_SECONDS * 1000 and not most.is_more,
        "pods made",
        f"{count_text(taken.observed, samples.seconds)}; {within_text('half', taken.quantile(0.5))} of the creation"
        f" of their Job, {within_text('99 of 100', most)}",
        distribution_numbers(taken),
        "a quota or a webhook holds pods up, or --kube-api-qps of the controllers is low: `stromboli events`",
    )


def ended_jobs(samples: Samples) -> SummaryLine | None:
    completed, failed = samples.value(names.COMPLETED_JOBS), samples.value(names.FAILED_JOBS)
    if completed is None and failed is None:
        return None
    done, lost = completed or 0.0, failed or 0.0
    text = f"{count_text(done, samples.seconds)} completed, {count_text(lost, samples.seconds)} failed"
    return neutral("jobs ended", text, {"completed": number(done), "failed": number(lost)})


def syncs(samples: Samples) -> SummaryLine | None:
    failing = samples.value(names.FAILING_SYNCS)
    if failing is None:
        return None
    waiting, failed = samples.value(names.WAITING_SYNCS) or 0.0, samples.value(names.SYNC_FAILURES) or 0.0
    return judged(
        failing <= 0,
        "syncs",
        f"{count_text(waiting)} objects wait for a worker, {count_text(failing)} are tried again after a failure;"
        f" {count_text(failed, samples.seconds)} failures",
        {"waiting": number(waiting), "failing": number(failing), "failures": number(failed)},
        "the log of the controllers names the objects",
    )
