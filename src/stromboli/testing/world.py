"""A small cluster made for one test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from stromboli.api.checks import check_object
from stromboli.api.decoding import decode
from stromboli.api.defaults import Priorities, case_defaults, implied_queues
from stromboli.api.meta import Object
from stromboli.api.scheduling import PriorityClass
from stromboli.engine.catalog import Action
from stromboli.engine.plugin import Plugin
from stromboli.model.cluster import Cluster
from stromboli.model.task import Task
from stromboli.scheduler import PERIOD, Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.simulator.report import Report
from stromboli.testing import jobs, lines
from stromboli.testing.jobs import Amount
from stromboli.testing.policies import catalog_with, policy_of
from stromboli.testing.result import Result

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
"""When tests begin; what is made first is oldest, all of it in January 2026, a second apart."""


class World:
    """Nodes, queues and jobs in memory. `run` lets a policy decide; whatever is decided is true by the next cycle."""

    def __init__(self, nodes: str = "", queues: str = "", now: float = NOON) -> None:
        """Nodes and queues in the short notation of `stromboli.testing.lines`; the queue `default` exists."""
        self.rehearsal = Rehearsal(now=now)
        self._classes: dict[str, PriorityClass] = {}
        self._made = 0
        self._scheduler: Scheduler | None = None
        self._begun = False
        for queue in implied_queues([]):
            self.rehearsal.put(queue)
        for manifest in (*lines.nodes(nodes), *lines.queues(queues)):
            self.add(manifest)

    @property
    def cluster(self) -> Cluster:
        """The state itself, for looking at."""
        return self.rehearsal.cluster

    def add(self, thing: Object | Mapping[str, Any]) -> World:
        """Add an object, or replace the one of that name: an API object or a manifest, completed as usual."""
        found = thing if isinstance(thing, Object) else decode(thing)
        if found is None:
            raise ValueError(f"a scheduler does not read {thing!r}")
        case_defaults(found, self._made, Priorities(self._classes.values()))
        check_object(found)
        self._made += 1
        if isinstance(found, PriorityClass):
            self._classes[found.name] = found
        self.rehearsal.put(found)
        return self

    def job(
        self,
        name: str,
        *,
        pods: int = 1,
        minimum: int | None = None,
        queue: str = "",
        namespace: str = "default",
        cpu: Amount = 0,
        memory: Amount = 0,
        gpu: Amount = 0,
        resources: Mapping[str, Amount] | None = None,
        priority: int | None = None,
        roles: Mapping[str, int] | None = None,
        role_minimums: Mapping[str, int] | None = None,
        min_resources: Mapping[str, Amount] | None = None,
        running_on: str | Sequence[str] = (),
        phase: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
        group: Mapping[str, Any] | None = None,
    ) -> World:
        """A PodGroup with its pods `NAME-0`, `NAME-1`, ...; the first ones run already on the nodes named.

        `minimum` is all pods unless given. `spec` goes into every pod's spec, `group` into the PodGroup's.
        Without cpu, memory, gpu and resources its pods are best-effort.
        """
        members = jobs.spread_roles(roles or {}, pods)
        places = jobs.places(running_on)
        priority_class = "" if priority is None else self._priority_class(priority)
        terms = {
            "minMember": len(members) if minimum is None else minimum,
            "queue": queue,
            "priorityClassName": priority_class,
            "minTaskMember": dict(role_minimums or {}),
            "minResources": {key: str(value) for key, value in (min_resources or {}).items()},
            **(group or {}),
        }
        self.add(
            jobs.group(name, namespace, terms, phase or ("Running" if places else ""), annotations or {})
        )
        asked = jobs.requests(cpu, memory, gpu, resources or {})
        for index, role in enumerate(members):
            manifest = jobs.pod(f"{name}-{index}", namespace, name, asked)
            manifest["metadata"]["labels"] = dict(labels or {})
            manifest["metadata"]["annotations"].update(annotations or {})
            if priority_class:
                manifest["spec"]["priorityClassName"] = priority_class
            jobs.give_role(manifest, role)
            if index < len(places):
                jobs.run_on(manifest, places[index])
            self.add(jobs.merged(manifest, {"spec": spec or {}}))
        return self

    def run(
        self,
        actions: str = "",
        plugins: str = "",
        policy: str = "",
        *,
        plugin_classes: Iterable[type[Plugin]] = (),
        action_functions: Iterable[Action] = (),
        cycles: int = 1,
        period: float = PERIOD,
    ) -> Result:
        """Let a policy decide: names of actions and plugins, a whole text, a preset, or nothing for the default."""
        catalog = catalog_with(plugin_classes, action_functions)
        self._scheduler = Scheduler(
            self.rehearsal, policy_of(catalog, actions, plugins, policy), catalog, period
        )
        return self.step(cycles)

    def step(self, cycles: int = 1) -> Result:
        """More cycles of the policy that ran last; what it decided before has come true."""
        if self._scheduler is None:
            return self.run(cycles=cycles)
        outcomes, reports = [], []
        for _ in range(cycles):
            if self._begun:
                self.rehearsal.sleep(self._scheduler.period)
            self._begun = True
            outcomes.append(self._scheduler.cycle())
            reports.append(Report.of(outcomes[-1]))
        return Result(outcomes, reports, list(self._scheduler.engine.policy.warnings))

    def finish(self, pod: str, failed: bool = False) -> World:
        """A pod is done, well or badly."""
        self.rehearsal.finish(self.task(pod), failed)
        return self

    def sleep(self, seconds: float) -> World:
        """Let time pass."""
        self.rehearsal.sleep(seconds)
        return self

    def task(self, pod: str) -> Task:
        """A pod as it stands once all decisions have come true, by `name` or `namespace/name`."""
        self.rehearsal.news()
        for task in self.cluster.tasks.values():
            if pod in (task.key, task.name):
                return task
        raise LookupError(f"there is no pod {pod!r}")

    def _priority_class(self, value: int) -> str:
        name = f"priority-{value}".replace("--", "-minus-")
        if name not in self._classes:
            self.add({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        return name
