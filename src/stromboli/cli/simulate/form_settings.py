"""What all forms make of the same options: nodes, settings, and how the record describes them."""

from __future__ import annotations

from dataclasses import replace

from stromboli.api.go_scalars import MAX_DURATION, duration
from stromboli.cli.cli_errors import Usage
from stromboli.cli.simulate.simulate_options import CycleMode, SimulateOptions
from stromboli.embedded.nodes.node_groups import BadNodes, node_manifests
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.runs.simulation import NodeFailures, SimulationSettings
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload

_FAILURES = "--failures {}: expected two durations such as 30d/4h: how long a node works, how long it is away"


def given_nodes(options: SimulateOptions) -> list[Manifest]:
    """The nodes of `--nodes`; none if it is not given."""
    try:
        return node_manifests(options.nodes)
    except BadNodes as error:
        raise Usage(f"--nodes: {error}") from None


def settings_of(
    options: SimulateOptions, policy: Policy, **more: str | int | float | None
) -> SimulationSettings:
    """The settings that all forms have in common; `more` describes the form."""
    described = {
        **more,
        "nodes": " ".join(options.nodes) or None,
        "policy": policy.source_name,
        "backfill": options.backfill.value if options.backfill else None,
        "score": options.score.value if options.score else None,
        "load": options.load,
        "seed": options.seed or 0,
        "overrun": options.overrun or None,
        "assume_run_time": options.assume_run_time,
        "jobs": options.jobs,
        "cycle": options.cycle.value,
        "period": options.period if options.cycle is CycleMode.PERIOD else None,
        "failures": options.failures,
    }
    return SimulationSettings(
        seed=options.seed or 0,
        on_every_event=options.cycle is CycleMode.EVENT,
        period=options.period,
        failures=_failures(options.failures) if options.failures else None,
        described_by={key: value for key, value in described.items() if value is not None},
    )


def assumed_run_time(options: SimulateOptions) -> float | None:
    """The seconds of `--assume-run-time`; none if it is not given."""
    text = options.assume_run_time
    if text is None:
        return None
    seconds = duration(f"{text}s" if text.isdecimal() else text)
    if seconds is None or not 0 <= seconds <= MAX_DURATION:
        raise Usage(f"--assume-run-time {text}: no time; write it as 2h or 1h30m")
    return seconds


def adjusted(workload: Workload, options: SimulateOptions) -> Workload:
    """Only the first jobs if not all are wanted, coming faster or slower by the load."""
    jobs = workload.jobs[: options.jobs]
    if options.load is not None:
        if options.load <= 0:
            raise Usage(f"--load {options.load:g}: jobs must come; give a number above 0")
        jobs = tuple(_hastened(job, options.load) for job in jobs)
    return replace(workload, jobs=jobs)


def _hastened(job: SubmittedJob, load: float) -> SubmittedJob:
    return replace(job, submit_time=job.submit_time / load)


def _failures(text: str) -> NodeFailures:
    between, _, repair = text.partition("/")
    works, away = _seconds(between), _seconds(repair)
    if works is None or away is None or works <= 0 or away <= 0:
        raise Usage(_FAILURES.format(text[:64]))
    return NodeFailures(works, away)


def _seconds(text: str) -> float | None:
    """Seconds of `30d`, or of a duration such as `1h30m`."""
    days = text.removesuffix("d")
    if days != text and days.isdecimal() and len(days) < 7:
        return int(days) * 86_400.0
    return duration(text)
