"""A peer for comparison: the same policy in plain Python, one pod and one node at a time, nothing remembered.

It reads manifests and knows nothing of the package `stromboli`. It covers what the workloads without evictions use:
gangs in order of creation, all or nothing; the filters for room, number of pods, selectors, taints and spread; the
scores least allocated, balanced allocation, node affinity, taints, spread and binpack with the stock weights. It
explains and reports nothing. Both sides must bind every pod to the same node, or the comparison is void.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bench.manifests import HOSTNAME, Manifest, gibi, milli
from bench.measure import measure_apart
from bench.run import seconds, table
from bench.workload import Workload
from bench.workloads import WORKLOADS

MAX = 100
GIB = 2**30


@dataclass(slots=True)
class Pod:
    """What the policy reads of a pod."""

    key: str
    index: int
    job: str
    cpu: int
    memory: int
    labels: dict[str, str]
    selector: dict[str, str]
    tolerations: list[dict[str, str]]
    preferred: list[dict[str, Any]]
    spread: list[dict[str, Any]]


@dataclass(slots=True)
class Machine:
    """A node, what is on it, and how much of it is taken."""

    name: str
    labels: dict[str, str]
    taints: list[dict[str, str]]
    cpu: int
    memory: int
    most_pods: int
    used_cpu: int = 0
    used_memory: int = 0
    pods: list[Pod] = field(default_factory=list)

    def take(self, pod: Pod) -> None:
        self.pods.append(pod)
        self.used_cpu += pod.cpu
        self.used_memory += pod.memory

    def release(self, pod: Pod) -> None:
        self.pods.remove(pod)
        self.used_cpu -= pod.cpu
        self.used_memory -= pod.memory


# -- the cycle


def cycle(machines: list[Machine], jobs: list[list[Pod]]) -> dict[str, str]:
    """Gang by gang: all members find a node, or none keeps one."""
    bound: dict[str, str] = {}
    for members in jobs:
        placed: list[tuple[Pod, Machine]] = []
        for pod in members:
            machine = choose(machines, pod)
            if machine is None:
                break
            machine.take(pod)
            placed.append((pod, machine))
        if len(placed) == len(members):
            bound.update((pod.key, machine.name) for pod, machine in placed)
        else:
            for pod, machine in placed:
                machine.release(pod)
    return bound


def choose(machines: list[Machine], pod: Pod) -> Machine | None:
    """Filter all nodes, score the rest, take the best; the first of equals."""
    spreads = [
        Spread(rule, machines, pod) for rule in pod.spread if rule["whenUnsatisfiable"] == "DoNotSchedule"
    ]
    candidates = [
        machine
        for machine in machines
        if passes(machine, pod) and all(s.passes(machine, pod) for s in spreads)
    ]
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    batch = [0.0] * len(candidates)
    for weight, scores in batch_scores(machines, candidates, pod):
        batch = [sum_ + weight * score for sum_, score in zip(batch, scores, strict=True)]
    best, most = None, -math.inf
    for machine, score in zip(candidates, batch, strict=True):
        total = binpack(machine, pod) + score
        if total > most:
            best, most = machine, total
    return best


# -- filters


def passes(machine: Machine, pod: Pod) -> bool:
    """Room, number of pods, selector, taints."""
    return (
        machine.cpu - machine.used_cpu >= pod.cpu
        and machine.memory - machine.used_memory >= pod.memory
        and machine.most_pods > len(machine.pods)
        and selected(machine, pod)
        and all(
            tolerated(taint, pod.tolerations)
            for taint in machine.taints
            if taint["effect"] in ("NoSchedule", "NoExecute")
        )
    )


def selected(machine: Machine, pod: Pod) -> bool:
    return all(machine.labels.get(key) == value for key, value in pod.selector.items())


def tolerated(taint: dict[str, str], tolerations: Iterable[dict[str, str]]) -> bool:
    return any(
        toleration.get("effect", "") in ("", taint["effect"])
        and toleration.get("key", "") in ("", taint["key"])
        and (toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", ""))
        for toleration in tolerations
    )


class Spread:
    """How many pods that a constraint counts are in each domain."""

    def __init__(self, rule: dict[str, Any], machines: list[Machine], pod: Pod) -> None:
        self.key = rule["topologyKey"]
        self.skew = rule["maxSkew"]
        self.wanted = rule["labelSelector"]["matchLabels"]
        self.counts: dict[str, int] = {}
        keys = [rule["topologyKey"] for rule in pod.spread]
        for machine in machines:
            if all(key in machine.labels for key in keys) and selected(machine, pod):
                value = machine.labels[self.key]
                self.counts[value] = self.counts.get(value, 0) + self.matching(machine)

    def matches(self, pod: Pod) -> bool:
        return all(pod.labels.get(key) == value for key, value in self.wanted.items())

    def matching(self, machine: Machine) -> int:
        return sum(self.matches(pod) for pod in machine.pods)

    def passes(self, machine: Machine, pod: Pod) -> bool:
        value = machine.labels.get(self.key)
        if value is None:
            return False
        least = min(self.counts.values(), default=0)
        return self.counts.get(value, 0) + self.matches(pod) - least <= self.skew


# -- scores


def binpack(machine: Machine, pod: Pod) -> float:
    """Prefer the fuller node."""
    if machine.used_cpu + pod.cpu > machine.cpu or machine.used_memory + pod.memory > machine.memory:
        return 0.0
    cpu = (machine.used_cpu + pod.cpu) / machine.cpu
    memory = (machine.used_memory + pod.memory) / machine.memory
    return (cpu + memory) / 2 * MAX


Scores = Iterator[tuple[int, list[int]]]


def batch_scores(machines: list[Machine], candidates: list[Machine], pod: Pod) -> Scores:
    """The scores of nodeorder with their weights, each over all candidates."""
    yield 1, [least_allocated(machine, pod) for machine in candidates]
    yield 1, [balanced(machine, pod) for machine in candidates]
    if pod.preferred:
        yield 2, up([preference_score(machine, pod) for machine in candidates])
    yield 3, down([untolerated_taints(machine, pod) for machine in candidates])
    anyway = [rule for rule in pod.spread if rule["whenUnsatisfiable"] == "ScheduleAnyway"]
    if anyway:
        yield 2, evenly([Spread(rule, machines, pod) for rule in anyway], candidates)


def least_allocated(machine: Machine, pod: Pod) -> int:
    cpu = max(0, machine.cpu - machine.used_cpu - pod.cpu) * MAX // machine.cpu
    memory = max(0, machine.memory - machine.used_memory - pod.memory) * MAX // machine.memory
    return (cpu + memory) // 2


def balanced(machine: Machine, pod: Pod) -> int:
    return 50 + (50 + balance(machine, pod.cpu, pod.memory) - balance(machine, 0, 0)) // 2


def balance(machine: Machine, cpu: int, memory: int) -> int:
    cpu_part = min(1.0, (machine.used_cpu + cpu) / machine.cpu)
    memory_part = min(1.0, (machine.used_memory + memory) / machine.memory)
    return int((1 - abs(cpu_part - memory_part) / 2) * MAX)


def preference_score(machine: Machine, pod: Pod) -> int:
    return sum(
        term["weight"]
        for term in pod.preferred
        if all(
            machine.labels.get(expression["key"]) in expression["values"]
            for expression in term["preference"]["matchExpressions"]
        )
    )


def untolerated_taints(machine: Machine, pod: Pod) -> int:
    soft = [
        toleration
        for toleration in pod.tolerations
        if toleration.get("effect", "") in ("", "PreferNoSchedule")
    ]
    return sum(
        taint["effect"] == "PreferNoSchedule" and not tolerated(taint, soft) for taint in machine.taints
    )


def evenly(spreads: list[Spread], candidates: list[Machine]) -> list[int]:
    """Prefer domains with few pods of the same kind."""
    raw = [0.0] * len(candidates)
    for spread in spreads:
        domains = (
            len(candidates) if spread.key == HOSTNAME else len({m.labels[spread.key] for m in candidates})
        )
        weight = math.log(domains + 2)
        for index, machine in enumerate(candidates):
            count = (
                spread.matching(machine)
                if spread.key == HOSTNAME
                else spread.counts[machine.labels[spread.key]]
            )
            raw[index] += count * weight + spread.skew - 1
    whole = [math.floor(value + 0.5) for value in raw]
    most, least = max(whole), min(whole)
    return [MAX * (most + least - value) // most if most else MAX for value in whole]


def up(scores: list[int]) -> list[int]:
    most = max(scores)
    return [MAX * score // most if most else score for score in scores]


def down(scores: list[int]) -> list[int]:
    most = max(scores)
    return [MAX - MAX * score // most if most else MAX for score in scores]


# -- from manifests


def read(workload: Workload) -> tuple[list[Machine], list[list[Pod]]]:
    """The nodes, and the pending pods job by job, both in order of creation."""
    machines: dict[str, Machine] = {}
    jobs: dict[str, list[Pod]] = {}
    for manifest in workload.manifests():
        if manifest["kind"] == "Node":
            machine = _machine(manifest)
            machines[machine.name] = machine
        elif manifest["kind"] == "PodGroup":
            jobs[manifest["metadata"]["name"]] = []
        elif manifest["kind"] == "Pod":
            pod = _pod(manifest)
            host = manifest["spec"].get("nodeName")
            if host:
                machines[host].take(pod)
            else:
                jobs[pod.job].append(pod)
    return list(machines.values()), [sorted(job, key=lambda pod: pod.index) for job in jobs.values() if job]


def _machine(manifest: Manifest) -> Machine:
    room = manifest["status"]["allocatable"]
    meta = manifest["metadata"]
    taints = manifest.get("spec", {}).get("taints", [])
    return Machine(
        meta["name"],
        meta["labels"],
        taints,
        milli(room["cpu"]),
        gibi(room["memory"]) * GIB,
        int(room["pods"]),
    )


def _pod(manifest: Manifest) -> Pod:
    meta, spec = manifest["metadata"], manifest["spec"]
    request = spec["containers"][0]["resources"]["requests"]
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    return Pod(
        key=f"{meta['namespace']}/{meta['name']}",
        index=int(meta["name"].rsplit("-", 1)[1]),
        job=meta["annotations"]["scheduling.k8s.io/group-name"],
        cpu=milli(request["cpu"]),
        memory=gibi(request["memory"]) * GIB,
        labels=meta["labels"],
        selector=spec.get("nodeSelector", {}),
        tolerations=spec.get("tolerations", []),
        preferred=affinity.get("preferredDuringSchedulingIgnoredDuringExecution", []),
        spread=spec.get("topologySpreadConstraints", []),
    )


# -- the comparison


class Comparison(NamedTuple):
    """The same workload on both sides, in seconds of processor time."""

    name: str
    nodes: int
    pods: int
    naive: float
    ours: float
    same: bool


SCALES = {
    "W1-1x10000-1000n": 0.1,
    "W2-500x20-1000n": 0.2,
    "W2-500x20-5000n": 0.1,
    "W5f-fragmented-5000n-500x20": 0.2,
    "W1-1x10000-1000n-mixed": 0.1,
    "W3-10000x1-5000n-mixed": 0.1,
}
"""Workloads, and the part of their size that plain Python can handle in time."""


def compare(repeat: int = 1, sizes: dict[str, float] | None = None) -> list[Comparison]:
    """Both sides on the same work, one after the other."""
    results = []
    for name, scale in (sizes or SCALES).items():
        print(f"{name} at {scale:g}, naively ...", file=sys.stderr, flush=True)
        results.append(compare_one(WORKLOADS[name].scaled(scale), repeat))
    return results


def compare_one(
    workload: Workload, repeat: int = 1, clock: Callable[[], float] = time.process_time
) -> Comparison:
    spent = []
    for _ in range(repeat):
        machines, jobs = read(workload)
        begin = clock()
        bound = cycle(machines, jobs)
        spent.append(clock() - begin)
    runs = measure_apart(workload, repeat, placed=True)
    ours = min(runs, key=lambda run: run.cpu)
    sizes = workload.sizes
    return Comparison(
        workload.name, sizes.nodes, sizes.pending_pods, min(spent), ours.cpu, ours.placed == bound
    )


def report(results: Iterable[Comparison], markdown: bool = False) -> str:
    rows = [["workload (smaller)", "nodes", "pending", "naive s", "ours s", "faster", "same binds"]]
    for comparison in results:
        rows.append(
            [
                comparison.name,
                f"{comparison.nodes:,}",
                f"{comparison.pods:,}",
                seconds(comparison.naive),
                seconds(comparison.ours),
                f"{comparison.naive / comparison.ours:.1f}x",
                "yes" if comparison.same else "NO",
            ]
        )
    title = "The same policy in plain Python, one node at a time (processor time of a whole cycle, best run)"
    note = (
        "The peer only binds; our cycle also writes phases, conditions and events: nearly all it does in W5f."
    )
    return "\n".join([title, *table(rows, markdown), note])
