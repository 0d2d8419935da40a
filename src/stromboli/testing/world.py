"""A small cluster made for one test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Unpack

from msgspec.structs import asdict

from stromboli.api import names
from stromboli.api.decoding import decode
from stromboli.api.manifests.object_defaults import Priorities, case_defaults, implied_queues
from stromboli.api.types.meta import Object
from stromboli.engine.catalog import Action
from stromboli.engine.cycle import Engine
from stromboli.engine.placement.node_functions import Nodes
from stromboli.engine.placement.node_placement import Placement
from stromboli.engine.plugin import Plugin
from stromboli.engine.rules import Rules
from stromboli.engine.session import Session
from stromboli.model.cluster import Cluster
from stromboli.model.job import JobId
from stromboli.model.task import Task
from stromboli.policy.policy_problems import suggestion
from stromboli.scheduling_loop import PERIOD, Scheduler
from stromboli.simulator import cluster_notation
from stromboli.simulator.cycle_report import Report
from stromboli.simulator.job_manifests import Terms, nodes_of
from stromboli.simulator.rehearsal import Rehearsal
from stromboli.testing.cycle_result import Result, task_named
from stromboli.testing.policy_text import catalog_with, known_extensions, policy_of

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC).timestamp()
"""When tests begin; what is made first is oldest, all of it in January 2026, a second apart."""


class World:
    """Nodes, queues and jobs in memory. `run` lets a policy decide; whatever is decided is true by the next cycle."""

    def __init__(
        self,
        nodes: str = "",
        queues: str = "",
        now: float = NOON,
        *,
        policy: str = "",
        features: Iterable[str] = (),
        services: Mapping[str, Any] | None = None,
    ) -> None:
        """Nodes and queues in the notation of `stromboli.simulator.cluster_notation`; the queue `default` exists.

        `policy` is the one of the first `step`, `features` are feature gates that are on, and `services` is what
        plugins find in `session.services`.
        """
        self.rehearsal = Rehearsal(now=now)
        self._settings: dict[str, Any] = {"features": frozenset(features), "services": services}
        self._policy = policy
        self._scheduler: Scheduler | None = None
        self._begun = False
        for queue in implied_queues([]):
            self.rehearsal.intake.put(queue)
        for manifest in (*cluster_notation.nodes(nodes), *cluster_notation.queues(queues)):
            self.add(manifest)

    @property
    def cluster(self) -> Cluster:
        """The state itself, for looking at."""
        self.rehearsal.cluster.settle()
        return self.rehearsal.cluster

    @property
    def engine(self) -> Engine:
        """The policy at work, with its plugins."""
        return self._current().engine

    def plugin(self, name: str) -> Any:
        """A plugin of the policy at work."""
        return next(plugin for plugin in self.engine.rules.plugins if plugin.name == name)

    def add(self, *objects: Object | Mapping[str, Any]) -> World:
        """Add objects, or replace those of the same name: API objects or manifests, completed as usual."""
        for obj in objects:
            self.rehearsal.add(obj)
        return self

    def remove(self, obj: Object | Mapping[str, Any]) -> World:
        """Delete an object: an API object, or a manifest with its kind and name."""
        decoded = obj if isinstance(obj, Object) else decode(obj)
        if decoded is None:
            raise ValueError(f"a scheduler does not read {obj!r}")
        case_defaults(decoded, 0, Priorities())
        self.rehearsal.intake.drop(decoded)
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
        chosen = policy_of(catalog, actions, plugins, policy)
        self._scheduler = Scheduler(self.rehearsal, chosen, catalog, period, **self._settings)
        return self.step(cycles)

    def step(self, cycles: int = 1, now: float | None = None) -> Result:
        """More cycles of the policy that ran last; what it decided before has come true.

        A period passes between two cycles, unless `now` is the time of the first.
        """
        scheduler = self._current()
        outcomes, reports = [], []
        for _ in range(cycles):
            if now is not None:
                self.rehearsal.sleep(now - self.rehearsal.now())
            elif self._begun:
                self.rehearsal.sleep(scheduler.period)
            self._begun, now = True, None
            outcomes.append(scheduler.cycle())
            reports.append(Report.of(outcomes[-1]))
        return Result(
            **asdict(Report.together(reports)),
            outcome=outcomes[-1],
            cycles=reports,
            warnings=list(scheduler.engine.policy.warnings),
            decisions=[decision for outcome in outcomes for decision in outcome.decisions],
        )

    def _current(self) -> Scheduler:
        if self._scheduler is None:
            catalog = known_extensions()
            policy = policy_of(catalog, "", "", self._policy)
            self._scheduler = Scheduler(self.rehearsal, policy, catalog, **self._settings)
        return self._scheduler

    def session(self, *plugin_classes: type[Plugin]) -> Session:
        """A session outside of any cycle, with these plugins in one tier; they are not opened."""
        rules = Rules([[plugin(plugin.Arguments(), {}) for plugin in plugin_classes]])
        policy = policy_of(known_extensions(), "allocate", "", "")
        return Session(self.cluster, policy, rules, Placement(rules), self.rehearsal.now(), "test")

    def scores(self, plugin: str, pod: str) -> dict[str, float]:
        """The score that a plugin gives each node for a pod, as things stand after the last cycle."""
        task, nodes = task_named(self.cluster, pod), Nodes(self.cluster.columns)
        total = nodes.zeros()
        for score in self.plugin(plugin).node_scores(task):
            total = total + score.score(task, nodes)
        return {node.name: float(total[node.row]) for node in self.cluster.columns.nodes}

    def refusals(self, plugin: str, pod: str) -> dict[str, str]:
        """The reason for which a plugin refuses each node to a pod, as things stand; empty where it does not."""
        task, nodes = task_named(self.cluster, pod), Nodes(self.cluster.columns)
        reasons = {node.name: "" for node in self.cluster.columns.nodes}
        for node_filter in self.plugin(plugin).node_filters(task):
            for check in node_filter.checks(task, nodes):
                for node in self.cluster.columns.nodes:
                    if not check.passes[node.row]:
                        reasons[node.name] = reasons[node.name] or check.reason
        return reasons

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
        return task_named(self.cluster, pod)
