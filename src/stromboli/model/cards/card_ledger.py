"""Counts what tasks hold of the cards of nodes.

Without a plugin that shares cards (`configure`) it concerns no pod and costs nothing. The cards of a node are read from
its annotations when they change; what a task holds is read from its grant or, once its pod shows it, from the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from stromboli.api import card_names
from stromboli.model.amounts import Amounts, shift
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.cards.pod_cards import limit_names
from stromboli.model.cards.registrations import Models, read_registrations
from stromboli.model.feed import Feed, Topic
from stromboli.model.ledgers import Fact, Ledger, Unsettled
from stromboli.model.status import ALLOCATED_CLASS, Status

if TYPE_CHECKING:
    from stromboli.api.types.node import Node as NodeObject
    from stromboli.api.types.pod import PodSpec
    from stromboli.model.dimensions import Dimensions
    from stromboli.model.job import Job
    from stromboli.model.node_columns import Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task

K = TypeVar("K")
LOCKS = (card_names.VGPU_LOCK, card_names.GPU_LOCK, card_names.NPU_LOCK)


class CardLedger(Ledger):
    """The cards of all nodes."""

    def __init__(self, dims: Dimensions, feed: Feed) -> None:
        self._dims = dims
        self.models: Models | None = None
        """The models of cards that are shared; none: no plugin shares cards."""
        self.nodes: dict[str, dict[str, NodeCards]] = {}
        """By name of the node, then by model."""
        self.problems: dict[str, str] = {}
        """Nodes with an invalid registration, with the reason."""
        self.locks: dict[str, dict[str, str]] = {}
        """Nodes with a lock of a scheduler or a device plugin: its time, by the lock's name."""
        self.registering: set[str] = set()
        """Nodes whose device plugin registers vGPU cards, shared or not."""
        self.changes: Topic[str] = feed.topic()
        """Names of nodes whose cards or grants changed."""
        self.corrections: dict[Job, Amounts] = {}
        """The difference between what jobs hold of vGPUs, card by card, and what their pods request (spec 01 11.5)."""
        self.queue_corrections: dict[Queue, Amounts] = {}
        """The same of all jobs of a queue together."""
        self._corrected: dict[Task, tuple[Job, Amounts]] = {}
        self._resources: frozenset[str] = frozenset()

    # -- configuration

    def configure(self, models: Models, nodes: Mapping[str, Node]) -> bool:
        """Set the shared models of cards; true if they changed, so that other pods are concerned."""
        if models == self.models:
            return False
        self.models = models
        self._resources = frozenset(_resources(models))
        self.nodes.clear()
        self.problems.clear()
        self.locks.clear()
        self.corrections.clear()
        self.queue_corrections.clear()
        self._corrected.clear()
        self.changes.note_everything()
        for node in nodes.values():
            self.register(node)
        return True

    def concerns(self, spec: PodSpec) -> bool:
        return bool(self._resources) and not self._resources.isdisjoint(limit_names(spec))

    # -- nodes

    def node_changed(self, node: Node, before: NodeObject | None) -> None:
        if node.object is not None and card_names.VGPU_REGISTER in node.object.metadata.annotations:
            self.registering.add(node.name)
        else:
            self.registering.discard(node.name)
        if self.models is not None and (
            before is None or node.object is None or _source(before) != _source(node.object)
        ):
            self.register(node)

    def register(self, node: Node) -> None:
        """Read the cards of a node again, and count what its tasks hold of them."""
        models = self.models
        self.problems.pop(node.name, None)
        self.locks.pop(node.name, None)
        known = self.nodes.pop(node.name, None)
        for task in known[card_names.VGPU].tasks if known and card_names.VGPU in known else ():
            self._uncorrect(task)
        if node.object is not None and models is not None:
            registrations, problems = read_registrations(node.object, models)
            factor = models.config.nvidia.memory_factor
            if registrations:
                self.nodes[node.name] = {each.model: NodeCards(each, factor) for each in registrations}
                for task in node.tasks:
                    if self.concerns(task.shape.spec):
                        self.add(task, task.status, node)
            if problems:
                self.problems[node.name] = "; ".join(problems)
            annotations = node.object.metadata.annotations
            if locks := {lock: annotations[lock] for lock in LOCKS if lock in annotations}:
                self.locks[node.name] = locks
        if known or node.name in self.nodes or node.name in self.problems:
            self.changes.note(node.name)

    # -- tasks

    def add(self, task: Task, status: Status, node: Node) -> None:
        known = self.nodes.get(node.name)
        if known and sum(cards.add(task, status is Status.RELEASING) for cards in known.values()):
            self.changes.note(node.name)
            if ALLOCATED_CLASS[status] and card_names.VGPU in known:
                self._correct(task, known[card_names.VGPU])

    def remove(self, task: Task, status: Status, node: Node) -> None:
        known = self.nodes.get(node.name)
        if known and sum(cards.remove(task) for cards in known.values()):
            self.changes.note(node.name)
            self._uncorrect(task)

    # -- queues

    def _correct(self, task: Task, cards: NodeCards) -> None:
        """Record the difference between what a task was given on all cards and its request."""
        if task.job is None or self.models is None:
            return
        nvidia, request = self.models.config.nvidia, task.shape.request
        given = zip((nvidia.memory_name, nvidia.cores_name), cards.given_to(task), strict=True)
        dims = {self._dims.index[name]: 1000 * amount for name, amount in given if name in self._dims.index}
        correction = {dim: amount - request.get(dim, 0) for dim, amount in dims.items()}
        self._corrected[task] = (task.job, correction)
        self._shift_correction(task.job, correction, 1)

    def _uncorrect(self, task: Task) -> None:
        job, correction = self._corrected.pop(task, (None, {}))
        if job is not None:
            self._shift_correction(job, correction, -1)

    def _shift_correction(self, job: Job, correction: Amounts, sign: int) -> None:
        _shift_entry(self.corrections, job, correction, sign)
        if job.queue is not None:
            _shift_entry(self.queue_corrections, job.queue, correction, sign)

    def recharge(self, job: Job, queue: Queue, sign: int) -> None:
        if job in self.corrections:
            _shift_entry(self.queue_corrections, queue, self.corrections[job], sign)

    # -- the consistency check

    def facts(self, unsettled: Unsettled) -> Iterator[Fact]:
        for node in self.nodes.keys() - unsettled.nodes:
            for name, cards in self.nodes[node].items():
                now = cards.now
                taken = [*zip(now.sharers, now.memory, now.cores, strict=True)]
                yield ("Node", f"{node} {name}"), f"shares, memory and cores taken of cards {taken}"


def _shift_entry(totals: dict[K, Amounts], key: K, amounts: Amounts, sign: int) -> None:
    total = totals.pop(key, {})
    shift(total, amounts, sign)
    if total:
        totals[key] = total


def _resources(models: Models) -> Iterable[str]:
    """The resources whose limits request parts of cards."""
    if models.vgpu:
        yield from (models.config.nvidia.count_name, models.config.nvidia.memory_name)
    if models.gpu_share:
        yield from (card_names.GPU_MEMORY, card_names.GPU_NUMBER)
    if models.npus:
        for npu in models.config.npus.configs:
            yield from (npu.resource_name, npu.memory_name)


_READ = frozenset((card_names.VGPU_REGISTER, card_names.GPU_UNHEALTHY, card_names.NPU_NODE_MODE, *LOCKS))


def _source(node: NodeObject) -> tuple[object, ...]:
    """The fields from which cards and locks are read."""
    annotations = {
        key: value
        for key, value in node.metadata.annotations.items()
        if key in _READ or key.startswith(card_names.NPU_REGISTER_PREFIX)
    }
    return annotations, node.status.allocatable, node.status.capacity
