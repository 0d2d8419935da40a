"""A cluster as a workload: what runs goes on where it runs, what waits is submitted at 0.

The pods of a PodGroup are a job; those that differ in more than their names, or of which only some run, are a job for
each kind of them. All other objects are there from the start, pods of other schedulers on their nodes too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.durations import longest
from stromboli.api.errors import InputProblems
from stromboli.api.manifests.manifest_reader import IMPLIED, Item, Manifests, sources_of
from stromboli.api.object_bounds import MAX_QUEUE_DEPTH
from stromboli.api.pods import is_finished
from stromboli.api.resources.pod_requests import pod_request
from stromboli.api.resources.resource_lists import resource_list
from stromboli.api.types.kinds import GROUPS
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.model.intake.native_groups import as_volcano
from stromboli.model.queue import ROOT
from stromboli.model.time_limits import annotated_limit, usable_limit
from stromboli.simulator.cluster_notation import Manifest
from stromboli.simulator.count_sentences import count_sentence, counted
from stromboli.simulator.expansion.workload_expansion import WorkloadExpansion
from stromboli.simulator.workloads.submitted_jobs import SubmittedJob, Workload
from stromboli.simulator.workloads.workload_errors import WorkloadError

_SAID_OTHERWISE = frozenset(
    (
        "schedulerName",
        "nodeName",
        "priority",
        "priorityClassName",
        "preemptionPolicy",
        "containers",
        "initContainers",
        "overhead",
        "schedulingGroup",
    )
)
"""Fields of a pod's spec that a job of a workload has in another form."""
_ENDLESS = (
    "never end{s}: {it} {is} over {its} time limit or {has} none "
    f"(annotation {names.TIME_LIMIT}, or {names.RUN_TIME} of pods); "
    "simulate --assume-run-time 2h lets {them} end"
)
_ASSUMED = "{is} over {its} time limit or {has} none: taken to run for"
_FOREIGN = "of other schedulers, or without a PodGroup"
_NATIVE = "native:"
"""Before the keys of Kubernetes' own groups, which may have the names of others."""
_VERSIONS = {"": "v1", "apps": "apps/v1", "policy": "policy/v1", "resource.k8s.io": "resource.k8s.io/v1"}
_ALPHA = {"nodeinfo.volcano.sh", "shard.volcano.sh", "topology.volcano.sh"}


def read_dump(paths: Sequence[str], now: float, assumed: float | None = None) -> Workload:
    """The workload of a cluster as it was at this moment, in seconds since 1970.

    `assumed`: seconds that jobs run of which nothing else is known, from now or from their start.
    """
    problems = InputProblems(keep_going=True)
    manifests = Manifests(sources_of(paths, problems), problems)
    expansion = WorkloadExpansion(manifests, now)
    cluster = _Cluster(now, assumed)
    for item in expansion.expand(manifests.items(once=True)):
        cluster.take(item)
    left_out = list(problems)
    if not cluster.nodes and not cluster.pods:
        reason = f": {left_out[0]}" if left_out else ""
        raise WorkloadError(", ".join(paths), f"there are neither nodes nor pods in it{reason}")
    notes = [*cluster.notes(), *expansion.notes(lambda _: None)]
    if left_out:
        notes.append(f"{counted(len(left_out), 'object')} left out, the first: {left_out[0]}")
    jobs = tuple(cluster.jobs())
    if cluster.guesses:
        notes.append(count_sentence(cluster.guesses, "job", _ASSUMED, of=len(jobs)) + f" {assumed:g} s")
    if endless := sum(job.run_time == inf for job in jobs):
        notes.append(count_sentence(endless, "job", _ENDLESS, of=len(jobs)))
    return Workload(", ".join(paths), jobs, tuple(cluster.nodes), tuple(cluster.objects), tuple(notes))


@dataclass(slots=True)
class _Cluster:
    now: float
    assumed: float | None = None
    """How long jobs run of which nothing else is known."""
    nodes: list[Manifest] = field(default_factory=list)
    objects: list[Manifest] = field(default_factory=list)
    groups: dict[str, PodGroup] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    pods: dict[str, list[Pod]] = field(default_factory=lambda: defaultdict(list))
    """Those that have not ended, by their group."""
    foreign: int = 0
    """Pods of no job that wait."""
    staying: int = 0
    """Pods of no job on nodes."""
    guesses: int = 0
    """Jobs whose run time is assumed."""

    def take(self, item: Item) -> None:
        """Take in an object."""
        obj = item.object
        if isinstance(obj, Node):
            self.nodes.append(_manifest(obj))
        elif isinstance(obj, PodGroup):
            self.groups[obj.key] = obj
        elif isinstance(obj, NativePodGroup):
            self.groups[_NATIVE + obj.key] = as_volcano(obj)
        elif isinstance(obj, Pod):
            self._take_pod(obj)
        elif item.source is not IMPLIED:
            if isinstance(obj, Queue):
                self.queues[obj.name] = obj
            self.objects.append(_manifest(obj))

    def _take_pod(self, pod: Pod) -> None:
        if is_finished(pod):
            return
        native = _NATIVE if pod.spec.scheduling_group is not None else ""
        if (group := _group_name(pod)) and pod.spec.scheduler_name == names.SCHEDULER_NAME:
            self.pods[f"{native}{pod.namespace}/{group}"].append(pod)
        elif pod.spec.node_name:
            self.staying += 1
            self.objects.append(_manifest(pod))
        else:
            self.foreign += 1

    def notes(self) -> Iterator[str]:
        if self.foreign:
            yield count_sentence(self.foreign, "pod", f"{_FOREIGN}, wait{{s}} and {{is}} left out")
        if self.staying:
            yield count_sentence(self.staying, "pod", f"{_FOREIGN}, stay{{s}} where {{it}} {{is}}")
        if lost := sum(group not in self.groups for group in self.pods):
            yield count_sentence(lost, "job", "{has} no PodGroup: each of {its} pods starts by itself")

    def jobs(self) -> Iterator[SubmittedJob]:
        """What runs first, then what waits, each in the order of their creation."""
        running: list[_Part] = []
        waiting: list[_Part] = []
        for key, pods in self.pods.items():
            for part in self._parts(key, pods):
                (running if part.pods[0].spec.node_name else waiting).append(part)
        used: set[tuple[str, str]] = set()
        for part in sorted(running, key=_age) + sorted(waiting, key=_age):
            job = part.job(self.now, used)
            if self.assumed is not None and job.run_time == inf and not part.runs_for_ever:
                self.guesses += 1
                job = replace(job, run_time=self.assumed)
            yield job

    def _parts(self, key: str, pods: list[Pod]) -> Iterator[_Part]:
        """The pods of a group that are alike, with the minimum that is left for them."""
        alike: dict[tuple[bytes, bool], list[Pod]] = defaultdict(list)
        for pod in pods:
            alike[_likeness(pod), bool(pod.spec.node_name)].append(pod)
        group = self.groups.get(key)
        default = self._default_limit((group.spec.queue if group is not None else "") or names.DEFAULT_QUEUE)
        needed = max(group.spec.min_member, 1) if group is not None else 1
        for (_, runs), same in sorted(alike.items(), key=lambda each: not each[0][1]):
            minimum = min(needed, len(same))
            needed -= minimum
            yield _Part(group, same, minimum if runs or minimum else 1, default)

    def _default_limit(self, name: str) -> float | None:
        """What jobs of a queue run at most that say nothing themselves: by the queue, or the nearest above it."""
        passed: set[str] = set()
        while name not in passed and len(passed) <= MAX_QUEUE_DEPTH:
            passed.add(name)
            queue = self.queues.get(name)
            limit = annotated_limit(queue.metadata.annotations) if queue is not None else None
            if limit is not None:
                return limit
            name = (queue.spec.parent if queue is not None else "") or ROOT
        return None


@dataclass(slots=True)
class _Part:
    """Pods of a group that are alike: all of them run, or all wait."""

    group: PodGroup | None
    pods: list[Pod]
    minimum: int
    default_limit: float | None
    """Of its queue, for pods that say nothing."""

    def job(self, now: float, used: set[tuple[str, str]]) -> SubmittedJob:
        pod = self.pods[0]
        run_time, limit = self._times(now)
        meta = self.group.metadata if self.group is not None else None
        request = pod_request(pod)
        quantities = resource_list(request)
        annotations = {**(meta.annotations if meta is not None else {}), **pod.metadata.annotations}
        return SubmittedJob(
            self._name(used),
            0.0,
            run_time,
            len(self.pods),
            self.minimum,
            {name: quantities[name] for name, amount in request.items() if amount and name != names.PODS},
            limit,
            self.group.spec.queue if self.group is not None else "",
            annotations.get(names.USER, ""),
            pod.namespace,
            pod.spec.priority or 0,
            dict(pod.metadata.labels),
            {
                key: text
                for key, text in annotations.items()
                if key not in (names.GROUP_NAME, names.TIME_LIMIT)
            },
            _rest_of(pod),
            tuple(each.spec.node_name for each in self.pods if each.spec.node_name),
        )

    def _name(self, used: set[tuple[str, str]]) -> str:
        """The name of the group; its later parts have a number."""
        pod = self.pods[0]
        group = _group_name(pod)
        for number in count(1):
            name = group if number == 1 else f"{group}-{number}"
            if (pod.namespace, name) not in used:
                break
        used.add((pod.namespace, name))
        return name

    @property
    def runs_for_ever(self) -> bool:
        """Whether that is said of it."""
        return longest(self.pods[0].metadata.annotations.get(names.RUN_TIME, "")) == inf

    def _times(self, now: float) -> tuple[float, float | None]:
        """How long it still runs, and how much of its limit is left; of one over its limit nobody knows the end."""
        pod = self.pods[0]
        limit = self._limit()
        text = pod.metadata.annotations.get(names.RUN_TIME, "")
        stated = longest(text)
        total = limit if stated is None else stated
        if not pod.spec.node_name:
            return inf if total is None else total, limit
        ages = [now - start.timestamp() for each in self.pods if (start := each.status.start_time)]
        age = max(min(ages, default=0.0), 0.0)
        left = inf if total is None or total <= age else total - age
        return left, limit - age if limit is not None and limit > age else None

    def _limit(self) -> float | None:
        """By the annotation of the group or of a pod, by `activeDeadlineSeconds`, or by the queue."""
        objects: list[Object] = [*self.pods] if self.group is None else [self.group, *self.pods]
        stated = [annotated_limit(each.metadata.annotations) for each in objects]
        deadline = usable_limit(self.pods[0].spec.active_deadline_seconds)
        limit = next((seconds for seconds in stated if seconds is not None), deadline)
        if limit is None:
            return self.default_limit
        return limit if deadline is None else min(limit, deadline)


def _age(part: _Part) -> tuple[float, str]:
    return (part.group or part.pods[0]).metadata.created, part.pods[0].key


def _group_name(pod: Pod) -> str:
    """The group that a pod names, Kubernetes' own or Volcano's; empty if it names none."""
    native = pod.spec.scheduling_group
    return pod.metadata.annotations.get(names.GROUP_NAME, "") if native is None else native.pod_group_name


def _likeness(pod: Pod) -> bytes:
    """All that makes two pods of a group the same, whatever their names and nodes are."""
    labels = {key: value for key, value in pod.metadata.labels.items() if key != names.TASK_INDEX}
    annotations = {key: text for key, text in pod.metadata.annotations.items() if key != names.TASK_INDEX}
    content = (
        sorted(labels.items()),
        sorted(annotations.items()),
        pod_request(pod),
        pod.spec.priority,
        _rest_of(pod),
    )
    return msgspec.msgpack.encode(content)


def _rest_of(pod: Pod) -> dict[str, Any]:
    spec: dict[str, Any] = msgspec.to_builtins(pod.spec)
    rest = {key: value for key, value in spec.items() if key not in _SAID_OTHERWISE}
    return rest | ({"preemptionPolicy": "Never"} if pod.spec.preemption_policy == "Never" else {})


def _manifest(obj: Object) -> Manifest:
    group, kind = _kind_of(type(obj))
    version = _VERSIONS.get(group) or f"{group}/{'v1alpha1' if group in _ALPHA else _stable(group)}"
    content: Manifest = msgspec.to_builtins(obj)
    return {"apiVersion": version, "kind": kind, **content}


def _stable(group: str) -> str:
    return "v1beta1" if group.endswith(".volcano.sh") else "v1"


def _kind_of(type_: type[Object]) -> tuple[str, str]:
    return next((group, type_.__name__) for group, types in GROUPS.items() if type_ in types)
