"""OpenB lists as a workload: nodes with registered cards, pods that ask for parts of them.

A card has 1,000 units of memory, so that a thousandth of a GPU is one of them, for `deviceshare` and for all that is
built on it. Nodes are created in the order of their ranks: so the scheduler's own rule for ties, the oldest node
first, is that of the lists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from stromboli.api import card_names, names
from stromboli.api.go_scalars import timestamp
from stromboli.api.name_rules import dns_label_errors, label_value_errors
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.count_sentences import counted
from stromboli.simulator.workloads.openb_arrivals import MAX_ARRIVALS, ArrivalSequence, arrivals
from stromboli.simulator.workloads.openb_lists import (
    GPU,
    OpenbNode,
    OpenbPod,
    read_openb_nodes,
    read_openb_pods,
)
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.swf_header import kubernetes_name

MODEL_LABEL = "nvidia.com/gpu.product"
_MOST_PODS = 10_000


@dataclass(frozen=True, slots=True)
class OpenbLists:
    """Nodes and pods as they are listed."""

    name: str
    nodes: tuple[OpenbNode, ...]
    pods: tuple[OpenbPod, ...]

    @property
    def gpu_capacity(self) -> int:
        """Of all nodes, in thousandths of a GPU."""
        return GPU * sum(node.gpus for node in self.nodes)


def read_openb(nodes: str, pods: str) -> OpenbLists:
    """Both lists of a trace; the list of pods gives it its name."""
    name = Path(pods).name.removesuffix(".gz").removesuffix(".csv")
    return OpenbLists(name, tuple(read_openb_nodes(nodes)), tuple(read_openb_pods(pods)))


def arriving_workload(lists: OpenbLists, load: float, sequence: ArrivalSequence) -> Workload:
    """Pods arrive one at a time, one in a second, until the load has arrived, and never leave."""
    pods = arrivals(lists.pods, lists.gpu_capacity, load, sequence)
    nodes = sorted(lists.nodes, key=lambda node: node.name)
    ranked = dict(zip(sequence.ranks(len(nodes)), nodes, strict=True))
    jobs = _jobs(pods, [(float(second), inf) for second in range(len(pods))])
    notes = _load_notes(lists, pods, load)
    return Workload(
        lists.name, jobs, _node_manifests([ranked[rank] for rank in range(len(nodes))]), (), notes
    )


def recorded_workload(lists: OpenbLists) -> Workload:
    """Pods arrive when they were created, and run as long as they did; the first one arrives at 0."""
    pods = sorted((pod for pod in lists.pods if pod.created is not None), key=lambda pod: pod.created or 0.0)
    begin = pods[0].created or 0.0 if pods else 0.0
    times = [((pod.created or 0.0) - begin, _run_time(pod)) for pod in pods]
    usable = [index for index, (_, run_time) in enumerate(times) if run_time > 0]
    notes = []
    if left_out := len(lists.pods) - len(usable):
        notes.append(
            f"{left_out} of {len(lists.pods)} pods left out: no creation time, or deleted before they ran"
        )
    jobs = _jobs([pods[index] for index in usable], [times[index] for index in usable])
    nodes = sorted(lists.nodes, key=lambda node: node.name)
    return Workload(lists.name, jobs, _node_manifests(nodes), (), tuple(notes))


def _run_time(pod: OpenbPod) -> float:
    if pod.deleted is None:
        return inf
    return pod.deleted - (pod.created or 0.0 if pod.scheduled is None else pod.scheduled)


def _load_notes(lists: OpenbLists, pods: Sequence[OpenbPod], load: float) -> tuple[str, ...]:
    capacity, demand = lists.gpu_capacity, sum(pod.gpu_demand for pod in pods)
    if not load:
        return ()
    if not capacity or not demand:
        return (f"{'no node has' if not capacity else 'no pod asks for'} a GPU: the list is taken as it is",)
    if len(pods) >= MAX_ARRIVALS > len(lists.pods):
        return (f"a load of {load:g} takes more than {MAX_ARRIVALS} pods: {demand / capacity:.2f} arrive",)
    what = "drawn again" if len(pods) > len(lists.pods) else "left out"
    count = abs(len(pods) - len(lists.pods))
    return (
        f"{counted(count, 'pod')} {what}, so that {demand / capacity:.1%} of the cluster's GPUs are asked for",
    )


# -- pods


def _jobs(pods: Sequence[OpenbPod], times: Sequence[tuple[float, float]]) -> tuple[SubmittedJob, ...]:
    """A job for each pod; those that ask for the same share their requests, as lists are long."""
    shapes: dict[tuple[int, ...], dict[str, int | str]] = {}
    specs: dict[tuple[str, ...], dict[str, Any]] = {}
    jobs = []
    for pod, name, (submit, run_time) in zip(
        pods, _unique_names(pod.name for pod in pods), times, strict=True
    ):
        shape = (pod.cpu_milli, pod.memory_mib, pod.gpus, pod.gpu_milli)
        requests = shapes.get(shape) or shapes.setdefault(shape, _requests(pod))
        models = pod.models if pod.gpus else ()
        if models not in specs:
            specs[models] = _on_models(models)
        jobs.append(SubmittedJob(name, submit, run_time, requests=requests, spec=specs[models]))
    return tuple(jobs)


def _requests(pod: OpenbPod) -> dict[str, int | str]:
    requests: dict[str, int | str] = {names.CPU: f"{pod.cpu_milli}m", names.MEMORY: f"{pod.memory_mib}Mi"}
    if pod.gpus:
        requests |= {card_names.VGPU_NUMBER: pod.gpus, card_names.VGPU_MEMORY: pod.gpu_milli}
    return requests


def _on_models(models: tuple[str, ...]) -> dict[str, Any]:
    """What the spec of a pod says that may run on these models only."""
    if not models:
        return {}
    labels = list(dict.fromkeys(map(model_label, models)))
    terms = [{"matchExpressions": [{"key": MODEL_LABEL, "operator": "In", "values": labels}]}]
    node_affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": node_affinity}}


def model_label(model: str) -> str:
    """The model as the label of a node and within the type of a card."""
    return kubernetes_name(model) if label_value_errors(model) else model


# -- nodes


def _node_manifests(nodes: Sequence[OpenbNode]) -> tuple[Manifest, ...]:
    """In the order of their creation, a second after the other."""
    unique = _unique_names(node.name for node in nodes)
    return tuple(
        _manifest(node, name, second) for second, (node, name) in enumerate(zip(nodes, unique, strict=True))
    )


def _manifest(node: OpenbNode, name: str, second: int) -> Manifest:
    sizes = {
        names.CPU: f"{node.cpu_milli}m",
        names.MEMORY: f"{node.memory_mib}Mi",
        names.PODS: str(_MOST_PODS),
    }
    labels, annotations = {names.HOSTNAME: name}, {}
    if node.gpus:
        labels[MODEL_LABEL] = model_label(node.model)
        annotations[card_names.VGPU_REGISTER] = _registration(node)
        sizes[card_names.VGPU_NUMBER] = str(node.gpus * GPU)
        sizes[card_names.VGPU_MEMORY] = str(node.gpus * GPU)
        sizes[card_names.VGPU_CORES] = str(node.gpus * 100)
    created = timestamp(second)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations,
            "creationTimestamp": created,
        },
        "status": {"allocatable": sizes, "capacity": sizes},
    }


def _registration(node: OpenbNode) -> str:
    """Each card with room for as many pods as it has thousandths."""
    kind = f"{card_names.NVIDIA}-{model_label(node.model)}"
    return "".join(
        f"gpu-{index},{GPU},{GPU},{kind},true,{card_names.HAMI_CORE}:" for index in range(node.gpus)
    )


def _unique_names(listed: Iterable[str]) -> list[str]:
    """Names that Kubernetes takes, no two alike."""
    unique: list[str] = []
    used: Counter[str] = Counter()
    for text in listed:
        name = text if not dns_label_errors(text) else kubernetes_name(text) or "unnamed"
        used[name] += 1
        unique.append(name if used[name] == 1 else f"{name}.{used[name]}")
    return unique
