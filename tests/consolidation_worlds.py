"""Worlds in which pods are moved: whoever is moved is made anew by its controller, under its name and another uid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stromboli.engine.decisions import Evict
from stromboli.testing import Result, World
from tests.manifests import Manifest, group, pod, policy

PLUGINS = "priority gang conformance | predicates proportion nodeorder binpack network-topology-aware"
ACTIONS = "enqueue, allocate, consolidate, backfill"
OWNER = {
    "ownerReferences": [
        {"apiVersion": "v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    ]
}


def consolidating(plugins: str = PLUGINS, actions: str = ACTIONS, **arguments: Any) -> str:
    """A policy that consolidates, with these arguments of the action."""
    return policy(actions, plugins, consolidate=arguments)


class MovingWorld(World):
    """A world with controllers: what is moved comes back as a pending pod in the next cycle."""

    def __init__(self, nodes: str, queues: str = "", *, tree: Iterable[Manifest] = (), **arguments: Any):
        super().__init__(nodes, queues, policy=arguments.pop("policy", "") or consolidating(**arguments))
        self.add(*tree)
        self._pods: dict[str, Manifest] = {}
        self._incarnations = 0

    def gang(
        self,
        name: str,
        on: str = "",
        pods: int | None = None,
        minimum: int | None = None,
        *,
        topology: int | None = None,
        annotations: dict[str, str] | None = None,
        owned: bool = True,
        priority: int = 0,
        queue: str = "default",
        labels: dict[str, str] | None = None,
        **requests: Any,
    ) -> MovingWorld:
        """A PodGroup with pods of a controller, the first ones running on nodes; `topology` is a hard tier."""
        nodes = on.split()
        count = pods if pods is not None else max(len(nodes), 1)
        spec: dict[str, Any] = {}
        if topology is not None:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": topology}
        if priority:
            spec["priorityClassName"] = self._priority_class(priority)
        self.add(
            group(
                name,
                count if minimum is None else minimum,
                phase="Running" if nodes else "Pending",
                annotations=annotations,
                queue=queue,
                **spec,
            )
        )
        for index in range(count):
            meta = OWNER if owned else {}
            made = pod(
                f"{name}-{index}",
                name,
                on=nodes[index] if index < len(nodes) else "",
                annotations=annotations,
                labels=labels,
                metadata=meta,
                **requests,
            )
            self._pods[made["metadata"]["name"]] = made
            self.add(made)
        return self

    def _priority_class(self, value: int) -> str:
        name = f"priority-{value}"
        self.add({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
        return name

    def step(self, cycles: int = 1, now: float | None = None) -> Result:
        """Cycles after each of which controllers make anew what was moved."""
        for _ in range(cycles):
            result = super().step(1, now)
            self.rehearsal.sync()
            for eviction in moves(result):
                self.make_anew(eviction.name)
        return result

    def make_anew(self, name: str) -> None:
        """The controller of a pod makes another of its name."""
        self._incarnations += 1
        made = dict(self._pods[name])
        made["metadata"] = {**made["metadata"], "uid": f"{name}/{self._incarnations}"}
        made["spec"] = {key: value for key, value in made["spec"].items() if key != "nodeName"}
        self.add({**made, "status": {"phase": "Pending"}})

    def where(self, job: str) -> dict[str, str]:
        """The nodes of a job's pods, by the pods' names; empty for those that wait."""
        self.rehearsal.sync()
        tasks = (task for task in self.cluster.tasks.values() if task.job and task.job.name == job)
        return {
            task.name: task.node.name if task.node else "" for task in sorted(tasks, key=lambda t: t.name)
        }


def moves(result: Result) -> list[Evict]:
    """The evictions by which pods are moved."""
    return [eviction for eviction in result.evictions if eviction.action == "consolidate"]


def moved(result: Result) -> dict[str, str]:
    """The destinations of moved pods, by name."""
    return {eviction.name: eviction.destination for eviction in moves(result)}
