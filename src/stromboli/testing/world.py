"""A small cluster made for one test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Unpack

from stromboli.api import names
from stromboli.api.manifests.object_defaults import implied_queues
from stromboli.api.types.meta import Object
from stromboli.engine.catalog import Action
from stromboli.engine.plugin import Plugin
from stromboli.model.cluster import Cluster
from stromboli.model.job import JobId
from stromboli.model.task import Task
from stromboli.policy.policy_problems import suggestion
from stromboli.scheduling_loop import PERIOD, Scheduler
from stromboli.simulator import cluster_notation
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.job_manifests import Terms, nodes_of
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.cycle_result import Result
from stromboli.testing.policy_text import catalog_with, policy_of

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
"""When tests begin; what is made first is oldest, all of it in January 2026, a second apart."""


class World:
    """Nodes, queues and jobs in memory. `run` lets a policy decide; whatever is decided is true by the next cycle."""

    def __init__(self, nodes: str = "", queues: str = "", now: float = NOON) -> None:
        """Nodes and queues in the notation of `stromboli.simulator.cluster_notation`; the queue `default` exists."""
        self.rehearsal = Rehearsal(now=now)
        self._scheduler: Scheduler | None = None
        self._begun = False
        for queue in implied_queues([]):
            self.rehearsal.intake.put(queue)
        for manifest in (*cluster_notation.nodes(nodes), *cluster_notation.queues(queues)):
            self.add(manifest)

    @property
    def cluster(self) -> Cluster:
        """The state itself, for looking at."""
        return self.rehearsal.cluster

    def add(self, obj: Object | Mapping[str, Any]) -> World:
        """Add an object, or replace the one of that name: an API object or a manifest, completed as usual."""
        self.rehearsal.add(obj)
        return self

    def job(self, name: str, *, unknown_nodes: bool = False, **terms: Unpack[Terms]) -> World:
        """A PodGroup with its pods `NAME-0`, `NAME-1`, ...; see `stromboli.simulator.job_manifests.Terms`.

        world.job("train", queue="research", pods=3, minimum=2, cpu=1, memory="2Gi", priority=10)

        A second job of that name is refused, and so is `running_on` a node that is not there unless `unknown_nodes`
        says that it is meant.
        """
        id = JobId("PodGroup", terms.get("namespace", names.DEFAULT_NAMESPACE), name)
        known = self.cluster.jobs.get(id)
        if known is not None and known.group is not None:
            raise ValueError(f"there is a job {known.key} already; use `add` to replace single objects")
        if not unknown_nodes:
            self._check_nodes(name, nodes_of(terms))
        self.rehearsal.add_job(name, **terms)
        return self

    def _check_nodes(self, job: str, node_names: Iterable[str]) -> None:
        known = {node.name for node in self.cluster.nodes.values() if node.object is not None}
        for node in node_names:
            if node not in known:
                raise ValueError(
                    f'job {job}: running_on: there is no node "{node}"{suggestion(node, known)}'
                    " (say unknown_nodes=True if that is meant)"
                )

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
        self.rehearsal.sync()
        for task in self.cluster.tasks.values():
            if pod in (task.key, task.name):
                return task
        raise LookupError(f"there is no pod {pod!r}")
