"""A story in virtual time: jobs arrive, a real policy decides, pods run for a while and are done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stromboli.api.defaults import implied_queues
from stromboli.engine.catalog import Catalog
from stromboli.engine.policy import Policy
from stromboli.model.job import Job, JobId
from stromboli.model.status import Status
from stromboli.scheduler import PERIOD, Scheduler
from stromboli.simulator import notation
from stromboli.simulator.jobs import Terms
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.report import Report


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that somebody submits at some second, and how long its pods run."""

    at: float
    name: str
    runs_for: float
    terms: Terms


@dataclass(slots=True)
class Life:
    """What became of a job, in seconds since the story began."""

    arrival: Arrival
    job: Job
    started: float | None = None
    finished: float | None = None
    waits_for: str = ""
    fewest: int = 0
    """The fewest pods that it ever ran at once, from the moment it had any."""

    @property
    def waited(self) -> float | None:
        return None if self.started is None else self.started - self.arrival.at


@dataclass(slots=True)
class Story:
    """Nodes, queues, and who comes when. Each `tick` is a cycle and tells what happened."""

    nodes: str
    queues: str
    arrivals: Sequence[Arrival]
    policy: Policy
    catalog: Catalog
    world: Rehearsal = field(default_factory=Rehearsal)
    lives: dict[str, Life] = field(default_factory=dict)
    decisions: Counter[str] = field(default_factory=Counter)
    cycles: int = 0
    scheduling_s: float = 0.0

    def __post_init__(self) -> None:
        for queue in implied_queues([]):
            self.world.intake.put(queue)
        for manifest in (*notation.nodes(self.nodes), *notation.queues(self.queues)):
            self.world.add(manifest)
        self._scheduler = Scheduler(self.world, self.policy, self.catalog)
        self._coming = sorted(self.arrivals, key=lambda arrival: arrival.at)

    _scheduler: Scheduler = field(init=False)
    _coming: list[Arrival] = field(init=False)

    @property
    def now(self) -> float:
        """Seconds since the story began."""
        return self.world.now()

    @property
    def over(self) -> bool:
        return not self._coming and all(life.finished is not None for life in self.lives.values())

    def tick(self) -> list[str]:
        """One cycle, after what is due has happened; in sentences. Then a period passes."""
        self.world.news()
        told = [*self._finish(), *self._arrive(), *self._decide()]
        self.world.sleep(PERIOD)
        return told

    def _arrive(self) -> list[str]:
        told = []
        while self._coming and self._coming[0].at <= self.now:
            arrival = self._coming.pop(0)
            self.world.add_job(arrival.name, **arrival.terms)
            id = JobId("PodGroup", arrival.terms.get("namespace", "default"), arrival.name)
            job = self.world.cluster.jobs[id]
            self.lives[job.key] = Life(arrival, job)
            told.append(
                f"{arrival.terms.get('queue', 'default')} submits {arrival.name}, {_size(arrival.terms)}"
            )
        return told

    def _finish(self) -> list[str]:
        told = []
        for life in self.lives.values():
            running = list(life.job.by_status[Status.RUNNING])
            if running:
                life.fewest = min(life.fewest or len(running), len(running))
            for task in running:
                if task.started is not None and task.started + life.arrival.runs_for <= self.now:
                    self.world.finish(task)
            if running and not life.job.counts[Status.RUNNING] and not life.job.counts[Status.PENDING]:
                life.finished = self.now
                told.append(f"{life.arrival.name} is done")
        return told

    def _decide(self) -> list[str]:
        outcome = self._scheduler.cycle()
        self.cycles += 1
        self.scheduling_s += sum(outcome.seconds.values())
        self.decisions.update(type(decision).__name__ for decision in outcome.decisions)
        report = Report.of(outcome)
        told = []
        for job, count in report.bound_per_job.items():
            life = self.lives[job]
            life.started = self.now if life.started is None else life.started
            nodes = sorted({node for pod, node in report.binds.items() if pod.startswith(f"{job}-")})
            told.append(f"{life.arrival.name} starts: {_pods(count)} on {', '.join(nodes)}")
        for key, life in self.lives.items():
            reason = report.pending[key].reason if key in report.pending else ""
            if reason and not life.waits_for:
                told.append(f"{life.arrival.name} waits: {report.pending[key].message}")
            life.waits_for = reason
        return told


def _size(terms: Terms) -> str:
    count, cpu = terms.get("pods", 1), terms.get("cpu", 0)
    if not cpu:
        return "a best-effort pod" if count == 1 else f"{count} best-effort pods"
    return f"a gang of {count} x {cpu} CPU" if count > 1 else f"a pod of {cpu} CPU"


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods together"
