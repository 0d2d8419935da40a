"""When jobs that wait will probably start: virtual time goes on under the policy until they have."""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite

from stromboli.engine.catalog import Catalog
from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.waiting.room_waits import Waits
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.explain.explanation_document import StartForecast
from stromboli.simulator.runs.run_record import JobRecord, RunRecord
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.what_if.future_world import FutureWorld
from stromboli.simulator.what_if.run_differences import ends_before
from stromboli.simulator.what_if.run_times import RunTimes

MOST_NODES = 20
WORK = 250_000
"""What a run may look at: moments times nodes, jobs, and four times the pods that wait."""
GATED = "Start time unknown: its pods have scheduling gates."
FEWEST_MOMENTS, MOST_MOMENTS = 3, 2_000


def forecast_starts(
    loaded: Loaded,
    policy: Policy,
    catalog: Catalog,
    now: float,
    names: Collection[str],
    waits: Waits | None = None,
) -> dict[str, StartForecast]:
    """When these jobs start; the loaded cluster is used up by that. Where nobody has a time limit it is not tried.

    `waits`: the jobs for which there was no room in the cycle at the present.
    """
    cluster = loaded.intake.cluster
    if not _has_known_end(cluster, now):
        text = "Start time unknown: no running job has a time limit."
        if not any(job.allocated_count for job in cluster.jobs.values()):
            text = "It does not start by waiting: no running job would free capacity."
        return {name: StartForecast(text) for name in names}
    gated = {job.key for job in cluster.jobs.values() if job.key in names and _is_gated(job)}
    settings = SimulationSettings()
    world = FutureWorld(loaded, now, settings, measures=False)
    loop = SimulationLoop(world, policy, catalog, settings)
    loop.recall(waits)
    records = {job.name: job for job in world.record.jobs if job.name in names}
    moments, ended = moments_for(cluster), False
    while moments > 0 and not ended and any(record.started is None for record in records.values()):
        moments -= 1
        ended = not loop.step()
    jobs = {job.key: job for job in cluster.jobs.values() if job.key in names}
    forecasts = {}
    for name, record in records.items():
        if record.started is None and name in gated:
            forecasts[name] = StartForecast(GATED)
        elif record.started is None:
            held = any(job.allocated_count for job in cluster.jobs.values())
            forecasts[name] = _unstarted(now + world.time, ended, held)
        else:
            forecasts[name] = _started(world.record, record, jobs[name], now)
    return forecasts


def moments_for(cluster: Cluster) -> int:
    """How many moments may be looked at."""
    waiting = sum(job.counts[Status.PENDING] for job in cluster.backlog)
    cost = max(len(cluster.nodes) + len(cluster.jobs) + 4 * waiting, 1)
    return max(FEWEST_MOMENTS, min(MOST_MOMENTS, WORK // cost))


def _has_known_end(cluster: Cluster, now: float) -> bool:
    """Whether it is known of any job when it ends."""
    run_times = RunTimes(cluster.queues)
    for job in cluster.jobs.values():
        tasks = [*job.by_status[Status.RUNNING], *job.by_status[Status.BOUND]]
        if job.counts[Status.RELEASING] or (tasks and isfinite(run_times.end_of(tasks[0], now))):
            return True
    return False


def _is_gated(job: Job) -> bool:
    waiting = job.by_status[Status.PENDING]
    return bool(waiting) and all(task.gates for task in waiting)


def _unstarted(until: float, ended: bool, held: bool) -> StartForecast:
    """`held`: jobs hold room at the end of all that is known."""
    if not ended:
        moment = time_text(until)
        return StartForecast(f"Not before {moment}, where the forecast ends.", not_before=moment)
    if held:
        return StartForecast("Start time unknown: it waits for jobs without a time limit.")
    return StartForecast("It does not start, even after all running jobs end.")


def _started(run: RunRecord, record: JobRecord, job: Job, now: float) -> StartForecast:
    nodes = list(dict.fromkeys(task.node.name for task in job.tasks.values() if task.node is not None))
    assert record.started is not None
    when = time_text(now + record.started)
    return StartForecast(
        f"Probably by {when}, if jobs run until their time limits and no new jobs arrive.",
        when,
        round(record.started, 3),
        nodes[:MOST_NODES],
        list(ends_before(run, record, set(nodes))),
    )
