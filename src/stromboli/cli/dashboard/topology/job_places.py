"""Where the pods of jobs are and what they ask for, counted as records change, so that no page walks over all pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from stromboli.api import names
from stromboli.cli.live.cluster_records import PODS, Amounts, ClusterRecords, GroupRecord, PodRecord, Record

Size = tuple[tuple[str, int], ...]
"""A request, as something that can be counted."""
Key = TypeVar("Key")


class JobPlaces:
    """The pods of PodGroups that run or wait; follows records as long as they are."""

    def __init__(self, records: ClusterRecords) -> None:
        self._groups = records.groups
        self._of_group = records.of_group
        self._pods: dict[str, PodRecord] = {}
        self._by_node: dict[str, Counter[str]] = {}
        self._waiting: Counter[Size] = Counter()
        self._placed: Counter[Size] = Counter()
        for key, pod in records.pods.items():
            self.follow(PODS, key, pod)
        records.followers.append(self)

    def follow(self, kind: str, key: str, record: Record | None) -> None:
        if kind != PODS:
            return
        before = self._pods.pop(key, None)
        if before is not None:
            self._count(before, -1)
        if isinstance(record, PodRecord) and record.group and not record.finished:
            self._pods[key] = record
            self._count(record, 1)

    def _count(self, pod: PodRecord, sign: int) -> None:
        _add(self._placed if pod.node else self._waiting, tuple(sorted(pod.request.items())), sign)
        if pod.node:
            jobs = self._by_node.setdefault(pod.node, Counter())
            _add(jobs, pod.group, sign)
            if not jobs:
                del self._by_node[pod.node]

    # -- lookups

    def has_job(self, node: str) -> bool:
        """Whether a pod of a job is on a node."""
        return node in self._by_node

    def job_count(self, nodes: Iterable[str]) -> int:
        """How many jobs have a pod on any of these nodes; pods whose PodGroup is not there are of none."""
        jobs: set[str] = set()
        jobs.update(*(self._by_node[node] for node in nodes if node in self._by_node))
        return len(jobs & self._groups.keys())

    def pods_by_job(self, nodes: Iterable[str]) -> Counter[str]:
        """How many pods jobs have on these nodes, by `namespace/name` of their PodGroups."""
        pods: Counter[str] = Counter()
        for node in nodes:
            pods.update(self._by_node.get(node))
        return pods

    def common_waiting_request(self) -> Amounts | None:
        """What most pods ask for that wait, or are to come as their gang has none yet; None if there are none."""
        return _most_common(self._waiting + self._to_come())

    def _to_come(self) -> Counter[Size]:
        """An equal part of what a gang asks for is the size of each of its pods."""
        sizes: Counter[Size] = Counter()
        for key, group in self._groups.items():
            if _is_to_come(group) and key not in self._of_group:
                parts = ((name, amount // group.minimum) for name, amount in group.asks.items())
                sizes[tuple(sorted(part for part in parts if part[1]))] += group.minimum
        return sizes

    def common_placed_request(self) -> Amounts | None:
        """What most pods that have a node ask for."""
        return _most_common(self._placed)


def _is_to_come(group: GroupRecord) -> bool:
    """Whether it is not let in, and says how large its pods will be."""
    return group.phase == names.GROUP_PENDING and group.minimum > 0 and bool(group.asks)


def _add(counts: Counter[Key], key: Key, sign: int) -> None:
    counts[key] += sign
    if not counts[key]:
        del counts[key]


def _most_common(counts: Counter[Size]) -> Amounts | None:
    """Of those that are as common as each other, the first by names and amounts."""
    most = max(counts.values(), default=0)
    return dict(min(size for size, count in counts.items() if count == most)) if most else None
