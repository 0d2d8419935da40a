"""Jobs that arrive over time, in virtual time: evicted pods are created again, as controllers do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup
from stromboli.engine.decisions import Evict
from stromboli.extensions import load_catalog
from stromboli.model.job import Job
from stromboli.model.task import Task
from stromboli.policy.policy import Policy
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.world import NOON

GROUP = "scheduling.k8s.io/group-name"
CATALOG = load_catalog()
_changed = msgspec.structs.replace


class Eviction(NamedTuple):
    """An eviction, with what is needed to judge it."""

    time: float
    pod: str
    age: float
    action: str
    job: str
    queue: str
    priority: int
    beneficiary: str
    taker: str
    """The queue of the beneficiary."""
    urgency: int
    """The priority of the beneficiary."""


class Arrivals:
    """A cluster to which jobs come one after another, and all evictions so far.

    The pods of a job exist once it was admitted, as those of a Volcano Job. `length` is how long pods run, by job;
    without it they run forever.
    """

    def __init__(self, policy: Policy, standing: Iterable[Object]):
        self.world = Rehearsal(now=NOON)
        for obj in standing:
            self.world.add(obj)
        self.scheduler = Scheduler(self.world, policy, CATALOG)
        self.length: dict[str, float] = {}
        self.evictions: list[Eviction] = []
        self._pods: dict[str, list[Pod]] = {}
        self._templates: dict[str, Pod] = {}
        self._births = 0
        self._again: dict[float, list[str]] = defaultdict(list)

    def arrive(self, group: PodGroup, pods: list[Pod]) -> None:
        self.world.add(self._created_now(group))
        self._pods[group.key] = pods
        self._templates |= {pod.key: pod for pod in pods}

    def pass_time(self, seconds: float = 1.0) -> None:
        """Run a cycle, then let this much time pass."""
        world = self.world
        for job in [job for job in self.jobs() if job.key in self._pods and not job.waits_for_queue]:
            for pod in self._pods.pop(job.key):
                world.add(self._created_now(pod))
        for moment in [moment for moment in self._again if moment <= world.now()]:
            for key in self._again.pop(moment):
                world.add(self._created_now(self._templates[key]))
        self._finish_pods()
        outcome = self.scheduler.cycle()
        assert outcome.lost is None
        jobs = {job.key: job for job in self.jobs()}
        for decision in outcome.decisions:
            if isinstance(decision, Evict):
                self.evictions.append(self._described(decision, jobs))
                self._again[world.now() + 2].append(decision.key)
        world.sync()
        world.sleep(seconds)

    def jobs(self) -> list[Job]:
        return [job for job in self.world.cluster.jobs.values() if job.group is not None]

    def unfinished(self) -> list[str]:
        """The jobs of which pods are missing, pending or running."""
        return [job.key for job in self.jobs() if job.key in self._pods or self._open_tasks(job)]

    def pods_evicted_twice(self) -> set[str]:
        pods = [eviction.pod for eviction in self.evictions]
        return {pod for pod in pods if pods.count(pod) > 1}

    @staticmethod
    def _open_tasks(job: Job) -> list[Task]:
        return [task for task in job.tasks.values() if task.status.name != "SUCCEEDED"]

    def _finish_pods(self) -> None:
        now = self.world.now()
        for task in list(self.world.cluster.tasks.values()):
            length = self.length.get(task.job.key) if task.job is not None else None
            if length is not None and task.status.name == "RUNNING" and now >= task.running_since + length:
                self.world.finish(task)

    def _described(self, decision: Evict, jobs: dict[str, Job]) -> Eviction:
        task = self.world.cluster.tasks[decision.uid]
        job, beneficiary = jobs[decision.job], jobs[decision.beneficiary]
        assert job.queue is not None
        assert beneficiary.queue is not None
        return Eviction(
            self.world.now(),
            decision.key,
            self.world.now() - task.running_since,
            decision.action,
            job.key,
            job.queue.name,
            job.priority,
            beneficiary.key,
            beneficiary.queue.name,
            beneficiary.priority,
        )

    def _created_now(self, obj: Object) -> Object:
        self._births += 1
        created = datetime.fromtimestamp(self.world.now(), UTC)
        meta = _changed(obj.metadata, creation_timestamp=created, uid=f"{obj.key}#{self._births}")
        return _changed(obj, metadata=meta)
