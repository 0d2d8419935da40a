"""The plugin `deviceshare`: filters and scores nodes by their cards, and grants shares to tasks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import card_names, card_reasons
from stromboli.api import card_reasons as reasons
from stromboli.engine.decisions import Event
from stromboli.engine.placement.node_functions import (
    Bools,
    Check,
    Column,
    NodeFilter,
    Nodes,
    NodeScore,
    Refusal,
)
from stromboli.engine.plugin import Plugin
from stromboli.model.cards.device_config import BUILT_IN, CONFIG_KEY, DeviceConfig, parse_device_config
from stromboli.model.cards.pod_cards import (
    CardGrant,
    CardShare,
    ContainerRequest,
    asked_of_gpu_share,
    container_requests,
    limit_names,
    lock_counts,
    matches_labels,
)
from stromboli.model.cards.registrations import Models
from stromboli.model.requirements.placement_requirement import DEVICE_SHARING
from stromboli.model.requirements.pod_demands import is_vgpu, shares_devices
from stromboli.model.status import Status
from stromboli.plugins.deviceshare.card_fits import (
    CardFits,
    CardRequest,
    CardShortage,
    Fit,
    HeldCards,
    Order,
    Shares,
)
from stromboli.plugins.deviceshare.npu_request import NpuRequest, npu_containers
from stromboli.plugins.deviceshare.share_arguments import ShareArguments
from stromboli.plugins.deviceshare.vgpu_request import (
    MAX_LISTED,
    VgpuRequest,
    card_choice,
    listed_cards,
)

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.cards.node_cards import CardColumns, NodeCards
    from stromboli.model.cluster import Cluster, Dirty
    from stromboli.model.node_columns import Node
    from stromboli.model.shape import LabelSet, Shape
    from stromboli.model.task import Task


MAX_FITS = 256
"""Maximum requests whose fits are cached; a bound on memory, not on what may be scheduled."""


class DeviceShare(Plugin):
    """Assigns parts of GPUs and NPUs, card by card."""

    name = "deviceshare"
    honours = frozenset({DEVICE_SHARING.name})
    Arguments = ShareArguments
    arguments: ShareArguments

    def __init__(self, arguments: ShareArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._rules = arguments.rules
        self._config: tuple[str | None, DeviceConfig] = (None, BUILT_IN)
        """The text of the configuration and its content."""
        self._problems: dict[str, str] = {}
        """The reported problems of nodes."""
        self._fits: OrderedDict[CardRequest, CardFits] = OrderedDict()
        self._matches: dict[LabelSet, frozenset[int]] = {}
        self._asked: dict[Task, tuple[CardRequest, ...]] = {}
        """The requests of tasks in this session."""
        self._containers: dict[Shape, tuple[ContainerRequest, ...]] = {}
        """The GPU requests of a shape's containers, in this session."""
        self._unshared: dict[Shape, str] = {}
        """A resource of each shape that no enabled model shares, in this session; empty: none."""

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        cluster, arguments = session.cluster, self.arguments
        models = Models(
            self._read_config(session),
            arguments.vgpu,
            arguments.gpu_sharing or arguments.gpu_number,
            arguments.npus,
        )
        if dirty.everything or cluster.cards.models != models:
            self._fits.clear()
            self._held = HeldCards(cluster, self._requests)
        cluster.share_cards(models)
        self._matches, self._asked, self._containers, self._unshared = {}, {}, {}, {}
        self._locks = NodeLocks(cluster, session.now) if arguments.node_lock else None
        self._report_problems(session)

    def _read_config(self, session: Session) -> DeviceConfig:
        """The configuration of the ConfigMap, read again if it changed; the built-in one without a valid one."""
        key = f"{self.arguments.config_namespace}/{self.arguments.config_name}"
        config_map = session.cluster.objects.config_maps.get(key)
        text = config_map.data.get(CONFIG_KEY) if config_map is not None else None
        if text != self._config[0]:
            config = parse_device_config(text) if text is not None else BUILT_IN
            if isinstance(config, str):
                self._report(session, "ConfigMap", key, f"{config}; the built-in configuration is used")
                config = BUILT_IN
            self._config = (text, config)
        return self._config[1]

    def _report_problems(self, session: Session) -> None:
        """Report each node whose cards cannot be read in an event, once."""
        problems = session.cluster.cards.problems
        for node in [node for node in self._problems if node not in problems]:
            del self._problems[node]
        for node, problem in problems.items():
            if self._problems.get(node) != problem:
                self._problems[node] = problem
                self._report(session, "Node", node, f"its cards are not shared out: {problem}")

    def _report(self, session: Session, kind: str, key: str, message: str) -> None:
        namespace, _, name = key.rpartition("/")
        session.journal.decisions.append(
            Event(kind, namespace, name, "Warning", card_reasons.EVENT_BAD_CARDS, message)
        )

    # -- requests of tasks

    def _requests(self, task: Task) -> tuple[CardRequest, ...]:
        """The requests of a task for each model of cards; empty for most tasks."""
        if self.session.cluster.cards not in self.session.cluster.ledgers_of(task.shape):
            return ()
        known = self._asked.get(task)
        if known is None:
            known = self._asked[task] = tuple(self._read_requests(task))
        return known

    def _read_requests(self, task: Task) -> list[CardRequest]:
        spec, arguments = task.shape.spec, self.arguments
        requests: list[CardRequest] = []
        config = self._config[1]
        if arguments.vgpu and (containers := self._vgpu_containers(task.shape)):
            rules = self._rules_of(task) if self._rules else frozenset()
            resources = (config.nvidia.memory_name, config.nvidia.cores_name)
            choice = card_choice(task)
            requests.append(
                VgpuRequest(containers, choice, rules, arguments.policy, resources, self._rules_of)
            )
        if arguments.gpu_sharing and (memory := asked_of_gpu_share(spec, card_names.GPU_MEMORY)):
            requests.append(GpuShareRequest(memory=memory))
        if arguments.gpu_number and (number := asked_of_gpu_share(spec, card_names.GPU_NUMBER)):
            requests.append(GpuShareRequest(number=number))
        if arguments.npus:
            by_software = task.annotations.get(card_names.NPU_POD_MODE) == card_names.HAMI_CORE
            for npu in config.npus.configs:
                if asked := npu_containers(spec, npu):
                    requests.append(NpuRequest(npu, asked, by_software, arguments.policy))
        return requests

    def _vgpu_containers(self, shape: Shape) -> tuple[ContainerRequest, ...]:
        """The GPU requests of a shape's containers."""
        known = self._containers.get(shape)
        if known is None:
            known = self._containers[shape] = container_requests(shape.spec, self._config[1].nvidia)
        return known

    def _rules_of(self, task: Task) -> frozenset[int]:
        """The exclusive rules that a task matches."""
        label_set = task.label_set
        known = self._matches.get(label_set)
        if known is None:
            matching = (i for i, rule in enumerate(self._rules) if matches_labels(label_set.labels, rule))
            known = self._matches[label_set] = frozenset(matching)
        return known

    def _fits_of(self, request: CardRequest) -> CardFits:
        fits = self._fits.get(request)
        if fits is None:
            fits = self._fits[request] = CardFits(self.session.cluster, request, self._held)
            if len(self._fits) > MAX_FITS:
                self._fits.popitem(last=False)
        else:
            self._fits.move_to_end(request)
        return fits

    def shape_key(self, task: Task) -> Hashable:
        return self._requests(task)

    # -- nodes

    def prefilter(self, task: Task) -> Refusal | None:
        """Refuse pods for which no enabled model shares cards: they would start without a card."""
        for demand in task.shape.demands:
            if demand.requirement is DEVICE_SHARING and (resource := self._not_shared(task.shape)):
                return self._not_shared_refusal(resource)
        if self._requests(task) and (count := listed_cards(task)) > MAX_LISTED:
            text = card_reasons.LONG_LISTS.format(count=count, most=MAX_LISTED)
            return Refusal(text, plugin=self.name)
        return None

    def _not_shared(self, shape: Shape) -> str:
        """A requested resource that no enabled model shares."""
        known = self._unshared.get(shape)
        if known is None:
            known = self._unshared[shape] = self._find_unshared(shape)
        return known

    def _find_unshared(self, shape: Shape) -> str:
        arguments, config = self.arguments, self._config[1]
        shared = {
            *(
                npu
                for each in config.npus.configs
                if arguments.npus
                for npu in (each.resource_name, each.memory_name)
            ),
            *((card_names.GPU_MEMORY,) if arguments.gpu_sharing else ()),
            *((card_names.GPU_NUMBER,) if arguments.gpu_number else ()),
        }
        registered = bool(self.session.cluster.cards.registering)
        vgpu = bool(self._vgpu_containers(shape)) if arguments.vgpu else not registered
        for resource in limit_names(shape.spec):
            if shares_devices(resource) and resource not in shared and not (vgpu and is_vgpu(resource)):
                return resource
        return ""

    def _not_shared_refusal(self, resource: str) -> Refusal:
        if self.arguments.vgpu and is_vgpu(resource):
            nvidia = self._config[1].nvidia
            text = card_reasons.NO_CARD_ASKED.format(
                resource=resource, count=nvidia.count_name, memory=nvidia.memory_name
            )
            return Refusal(text, plugin=self.name, remedy=card_reasons.LIMIT_CARDS)
        text = card_reasons.NOT_SHARED.format(resource=resource)
        return Refusal(text, plugin=self.name, remedy=card_reasons.SHARE_IT)

    def node_filters(self, task: Task) -> Iterator[NodeFilter]:
        for request in self._requests(task):
            fits = self._fits_of(request)
            yield NodeFilter(fits.checks, self.name, "pods", self._version)
            if self.arguments.node_lock and request.lock:
                yield NodeFilter(
                    partial(self._lock_check, request.lock), self.name, "pods", self._lock_version
                )

    def _version(self, task: Task) -> Hashable:
        cluster = self.session.cluster
        reservations = cluster.reservations
        own = task.uid if task.uid in reservations else None
        return (cluster.cards.changes.position, cluster.columns.layout, reservations.version, own)

    def _lock_version(self, task: Task) -> Hashable:
        return (self._version(task), self._locks, task.job and task.job.id)

    def _lock_check(self, lock: str, task: Task, nodes: Nodes) -> Iterator[Check]:
        if self._locks is not None:
            yield self._locks.check(lock, task, nodes)

    def node_scores(self, task: Task) -> Iterator[NodeScore]:
        if self.arguments.weight > 0 and (requests := self._requests(task)):
            fits = [self._fits_of(request) for request in requests]
            yield NodeScore(
                partial(_score, fits), self.name, "pods", self._version, float(self.arguments.weight)
            )

    def grants(self, task: Task, node: Node, now: bool) -> Iterator[CardGrant | Refusal]:
        for request in self._requests(task):
            lock = request.lock if self.arguments.node_lock else ""
            if self._locks is not None and lock and now and self._locks.is_locked(task, node, lock):
                yield Refusal(card_reasons.NODE_LOCKED.format(node=node.name), plugin=self.name)
                return
            cards = self.session.cluster.cards.nodes.get(node.name, {}).get(request.model)
            if cards is None:
                yield Refusal(card_reasons.GONE.format(model=request.model, node=node.name), plugin=self.name)
                return
            order = self._card_order(task, node, cards)
            answer = self._fits_of(request).answer(node, cards, now, task, order)
            if isinstance(answer, CardShortage):
                yield Refusal(answer.text, answer.reason.curable, self.name, answer.remedy)
                return
            annotations = request.annotations(answer.shares, node.name, self.session.now)
            yield CardGrant(request.model, answer.shares, tuple(annotations.items()), lock)

    def _card_order(self, task: Task, node: Node, cards: NodeCards) -> Order:
        """The cards that another plugin prefers, each once; none: no plugin does."""
        order = self.session.rules.card_order(task, node, cards)
        return (
            None if order is None else [card for card in dict.fromkeys(order) if 0 <= card < len(cards.cards)]
        )


def _score(fits: list[CardFits], task: Task, nodes: Nodes) -> Column:
    """The sum over models, rounded half up."""
    total = np.zeros(len(nodes))
    for each in fits:
        each.update()
        total += nodes.pick(each.scores)
    return np.floor(total + 0.5)


# -- requests by `volcano.sh/gpu-memory` or `volcano.sh/gpu-number`, and the cards for them (spec 04 10.4)


@dataclass(frozen=True, slots=True)
class GpuShareRequest:
    """Memory on one card, or a number of unused cards."""

    memory: int = 0
    number: int = 0

    @property
    def model(self) -> str:
        return card_names.GPU_SHARE

    @property
    def lock(self) -> str:
        return card_names.GPU_LOCK if self.memory else ""

    def fit(self, cards: NodeCards, taken: CardColumns, order: Order = None) -> Fit | CardShortage:
        ordered = cards.cards if order is None else [cards.cards[index] for index in order]
        healthy = [card for card in ordered if card.healthy]
        if not healthy:
            return CardShortage(reasons.UNHEALTHY)
        if self.number:
            return self._idle_cards([card.index for card in healthy if not taken.sharers[card.index]])
        for card in healthy:
            if card.memory - taken.memory[card.index] >= self.memory:
                return Fit(((CardShare(card.uuid, self.memory),),))
        return CardShortage(reasons.MEMORY, f"{self.memory} of {card_names.GPU_MEMORY}")

    def _idle_cards(self, idle: list[int]) -> Fit | CardShortage:
        if len(idle) < self.number:
            return CardShortage(reasons.IDLE_CARDS, f"{self.number} of {card_names.GPU_NUMBER}")
        return Fit((tuple(CardShare(str(index)) for index in idle[: self.number]),))

    def plain_answer(self, cards: NodeCards, taken: CardColumns) -> Fit | CardShortage | None:
        return None

    def annotations(self, shares: Shares, node: str, now: float) -> dict[str, str]:
        indices = ",".join(share.card for container in shares for share in container)
        return {card_names.PREDICATE_TIME: str(int(now * 10**9)), card_names.GPU_INDEX: indices}


# -- locks of nodes whose device plugin is still serving another pod (spec 04 10.7)


_BEFORE_BIND = (Status.ALLOCATED, Status.BINDING)


class NodeLocks:
    """The locks of a session: valid ones on nodes, and those that its own binds will take."""

    def __init__(self, cluster: Cluster, now: float):
        self._cluster = cluster
        self.held = frozenset(
            (node, lock)
            for node, locks in cluster.cards.locks.items()
            for lock, since in locks.items()
            if lock_counts(since, now)
        )
        """Node and name of the locks that are set and not stale."""
        self._free: dict[str, tuple[Bools, int]] = {}
        """The nodes on which each lock is free, at a position of the ledger."""

    def is_locked(self, task: Task, node: Node, lock: str) -> bool:
        """Whether a pod of another job has or will take the lock of a node; the pods of a gang share it."""
        if (node.name, lock) in self.held:
            return True
        return any(other.job is not task.job for other in self._takers(node, lock))

    def _takers(self, node: Node, lock: str) -> Iterator[Task]:
        """The tasks that take a lock of a node with their binds."""
        for cards in self._cluster.cards.nodes.get(node.name, {}).values():
            for task in cards.tasks:
                if task.status in _BEFORE_BIND and any(
                    isinstance(grant, CardGrant) and grant.lock == lock for grant in task.grants
                ):
                    yield task

    def check(self, lock: str, task: Task, nodes: Nodes) -> Check:
        """The nodes that are free for a task."""
        free, job = self._unlocked(lock), task.job
        siblings = (sibling for status in _BEFORE_BIND for sibling in job.by_status[status]) if job else ()
        shared = {sibling.node for sibling in siblings if sibling.node is not None and sibling.node.row >= 0}
        if shared:
            free = free.copy()
            for node in shared:
                free[node.row] = not self.is_locked(task, node, lock)
        return Check(nodes.pick(free), reasons.LOCKED.of(), remedy=reasons.LOCKED.remedy)

    def _unlocked(self, lock: str) -> Bools:
        """Nodes without a lock, and without a bind that will take it."""
        columns, ledger = self._cluster.columns, self._cluster.cards
        free, version = self._free.get(lock, (None, 0))
        changed = ledger.changes.since(version)
        if free is None or changed is None or len(free) != len(columns):
            free = np.ones(len(columns), dtype=bool)
            changed = set(ledger.nodes)
        for name in changed:
            node = self._cluster.nodes.get(name)
            if node is not None and node.row >= 0:
                taken = (name, lock) in self.held or any(self._takers(node, lock))
                free[node.row] = not taken
        self._free[lock] = (free, ledger.changes.position)
        return free
