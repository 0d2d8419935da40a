"""When jobs that wait will probably start: virtual time goes on under the policy until they have."""

from __future__ import annotations

from collections.abc import Collection

from stromboli.engine.catalog import Catalog
from stromboli.engine.explanation.backfill_causes import time_text
from stromboli.engine.explanation.subjects.explanation_document import StartForecast
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.runs.run_record import RunRecord
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.what_if.assumptions import Assumptions, assumptions
from stromboli.simulator.what_if.future_world import FutureWorld
from stromboli.simulator.what_if.run_differences import ends_before

MOST_NODES = 20
WORK = 200_000
"""What a run may look at: so many moments, times a hundredth of nodes and jobs."""
MOST_MOMENTS = 2_000


def forecast_starts(
    loaded: Loaded, policy: Policy, catalog: Catalog, now: float, names: Collection[str]
) -> dict[str, StartForecast]:
    """When these jobs start; the loaded cluster is used up by that. Without any time limit it is not even tried."""
    cluster = loaded.intake.cluster
    rests_on = assumptions(cluster, now, None)
    if not (rests_on.limited or rests_on.known or rests_on.leaving):
        text = "Nobody knows: none of the jobs that run has a time limit." if cluster.tasks else ""
        return {name: StartForecast(text) for name in names} if text else {}
    settings = SimulationSettings()
    world = FutureWorld(loaded, now, settings)
    loop = SimulationLoop(world, policy, catalog, settings)
    places = {job.name: place for place, job in enumerate(world.record.jobs) if job.name in names}
    moments = max(20, min(MOST_MOMENTS, WORK * 100 // max(len(cluster.nodes) + len(cluster.jobs), 1) // 100))
    ended = False
    while moments > 0 and any(world.record.jobs[place].started is None for place in places.values()):
        moments -= 1
        if not loop.step():
            ended = True
            break
    until = world.time
    loop.close()
    return {
        name: _forecast(world.record, place, now, until, ended, rests_on) for name, place in places.items()
    }


def _forecast(
    record: RunRecord, place: int, now: float, until: float, ended: bool, rests_on: Assumptions
) -> StartForecast:
    job = record.jobs[place]
    if job.started is None:
        if not ended:
            return StartForecast(
                f"Not before {time_text(now + until)}: what comes later was not looked at.",
                not_before=time_text(now + until),
            )
        if rests_on.lacks_limits:
            return StartForecast(
                "Nobody knows: it does not start before jobs have ended that have no time limit."
            )
        return StartForecast("It does not start, even when all jobs that run now have ended.")
    nodes = list(dict.fromkeys(pod.node for pod in record.pods if pod.job == place))
    after = list(ends_before(record, job, set(nodes)))
    when = time_text(now + job.started)
    return StartForecast(
        f"Probably by {when}, if jobs run until their time limits and nothing else is submitted.",
        when,
        round(job.started, 3),
        nodes[:MOST_NODES],
        after,
    )
