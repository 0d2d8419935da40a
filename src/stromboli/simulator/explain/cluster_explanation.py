"""The answer to `stromboli explain`, as a function of a loaded cluster, a policy and the time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.explanation.event_history import History
from stromboli.engine.explanation.node_gates import LARGER_THAN_CLUSTER
from stromboli.engine.explanation.quantities import time_text
from stromboli.engine.waiting.capacity_waits import Waits
from stromboli.model.cluster import Cluster
from stromboli.model.job import Job
from stromboli.model.status import Status
from stromboli.policy.policy import Policy
from stromboli.simulator.cluster_loading import Loaded
from stromboli.simulator.ephemeral_claims import make_ephemeral_claims
from stromboli.simulator.explain.explained_subject import explain_found
from stromboli.simulator.explain.explanation_document import (
    Explanation,
    JobExplanation,
    StartForecast,
    Subject,
)
from stromboli.simulator.explain.job_subject import WITHOUT_CLUES
from stromboli.simulator.explain.remedy_search import search_remedies
from stromboli.simulator.explain.subject_lookup import Found
from stromboli.simulator.explain.wait_clues import WaitClues
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.runs.run_record import JobRecord, RunRecord
from stromboli.simulator.runs.simulation_loop import SimulationLoop
from stromboli.simulator.runs.simulation_settings import SimulationSettings
from stromboli.simulator.what_if.future_world import FutureWorld
from stromboli.simulator.what_if.run_differences import ends_before
from stromboli.simulator.what_if.run_times import RunTimes
from stromboli.sources.usage_feed import UsageFeed
from stromboli.sources.usage_sources import LOCAL

WITHOUT_REMEDIES = (*WITHOUT_CLUES, "pipeline")
"""Gates without remedies to try: without clues, or because the job starts anyway."""
NEVER = "It does not start by waiting: it requests more than all nodes have."
Histories = Mapping[str, History]
"""Further histories of subjects, by `namespace/name` of a PodGroup or the name of a queue or node."""


@dataclass(slots=True)
class ClusterExplainer:
    """Explains subjects of a loaded cluster; a forecast uses the cluster up."""

    loaded: Loaded
    policy: Policy
    catalog: Catalog
    now: float
    histories: Histories = field(default_factory=dict)
    with_remedies: bool = True
    with_forecast: bool = True

    def explain(self, subjects: Sequence[Found], cluster: str = "") -> Explanation:
        """Explain all subjects after the same cycle."""
        if self.loaded.expansion is not None:
            Rehearsal(self.loaded.intake, self.now).claims.make_from_templates()
            make_ephemeral_claims(self.loaded.intake)
        UsageFeed(LOCAL, lambda warning: None).refresh(
            self.loaded.intake.cluster, self.policy.metrics, self.now
        )
        explained, clues = self._look(subjects)
        if self.with_remedies:
            for place, clue in clues.items():
                self._add_remedies(explained[place], clue)
        if self.with_forecast:
            waits = next((clue.waits for clue in clues.values()), None)
            self._add_forecasts(explained, waits)
        for subject in explained:
            key = (
                f"{subject.namespace}/{subject.pod_group}"
                if isinstance(subject, JobExplanation)
                else subject.name
            )
            if key in self.histories:
                subject.history = subject.history.merged(self.histories[key])
        return Explanation(
            cluster=cluster,
            now=time_text(self.now),
            policy=self.policy.source_name,
            subjects=explained,
            warnings=[*self.policy.warnings],
        )

    def _look(self, subjects: Sequence[Found]) -> tuple[list[Subject], dict[int, WaitClues]]:
        """The explanations after a cycle, which is undone, and clues to remedies for waiting jobs."""
        clues: dict[int, WaitClues] = {}

        def look(outcome: Outcome) -> list[Subject]:
            explained = []
            for place, found in enumerate(subjects):
                subject, of_job = explain_found(outcome, found)
                explained.append(subject)
                if of_job is not None and of_job.wait.gate not in WITHOUT_REMEDIES:
                    clues[place] = of_job
            return explained

        engine = Engine(self.policy, self.catalog, reports=False)
        return engine.rehearse(self.loaded.intake.cluster, self.now, look), clues

    def _add_remedies(self, subject: Subject, clues: WaitClues) -> None:
        if isinstance(subject, JobExplanation) and subject.state in ("waits", "empty"):
            found = search_remedies(self.loaded.intake, self.policy, self.catalog, self.now, clues)
            subject.remedies, subject.in_vain, subject.untried = found.helpful, found.in_vain, found.untried

    def _add_forecasts(self, explained: Sequence[Subject], waits: Waits | None) -> None:
        waiting = {
            f"{subject.namespace}/{subject.pod_group}": subject
            for subject in explained
            if isinstance(subject, JobExplanation) and subject.state == "waits" and subject.pods.waiting
        }
        too_large = [key for key, subject in waiting.items() if _is_too_large(subject)]
        for key in too_large:
            waiting.pop(key).forecast = StartForecast(NEVER)
        if waiting:
            starts = forecast_starts(self.loaded, self.policy, self.catalog, self.now, waiting, waits)
            for key, subject in waiting.items():
                subject.forecast = starts.get(key)


def _is_too_large(subject: JobExplanation) -> bool:
    return subject.wait is not None and subject.wait.code == LARGER_THAN_CLUSTER


# -- when waiting jobs will probably start: a simulation from now on without new jobs


MAX_NODES = 20
FORECAST_WORK = 250_000
"""What a run may look at: moments times nodes, jobs, and four times the waiting pods."""
GATED = "Start time unknown: its pods have scheduling gates."
MIN_MOMENTS, MAX_MOMENTS = 3, 2_000


def forecast_starts(
    loaded: Loaded,
    policy: Policy,
    catalog: Catalog,
    now: float,
    names: Collection[str],
    waits: Waits | None = None,
) -> dict[str, StartForecast]:
    """Forecast when these jobs start; this uses up the loaded cluster. Without any time limit it runs no simulation.

    `waits`: the jobs for which the present cycle had no capacity.
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
    """How many moments the forecast simulates."""
    waiting = sum(job.counts[Status.PENDING] for job in cluster.backlog)
    cost = max(len(cluster.nodes) + len(cluster.jobs) + 4 * waiting, 1)
    return max(MIN_MOMENTS, min(MAX_MOMENTS, FORECAST_WORK // cost))


def _has_known_end(cluster: Cluster, now: float) -> bool:
    """Whether the end of any job is known."""
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
    """`held`: whether jobs hold capacity after the last known end."""
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
        nodes[:MAX_NODES],
        list(ends_before(run, record, set(nodes))),
    )
