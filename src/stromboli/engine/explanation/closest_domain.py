"""The domain with capacity for most pods of a gang, what it lacks, and the jobs that hold that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from stromboli.engine.explanation.quantities import quantity
from stromboli.engine.placement.node_fit import SlotCount, TaskSlots, asked_amounts, slots_of
from stromboli.model.status import WEIGHT, Status
from stromboli.model.topology.domain import LABEL_TIER
from stromboli.model.topology.domain_sums import RowGroups

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.model.amounts import Amounts
    from stromboli.model.node_columns import Bools, Ints
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


SHOWN_HOLDERS = 3
ELSEWHERE = "a job in another namespace"
"""In place of the name of a holder, for readers of one namespace."""


class DomainHolder(NamedTuple):
    """A job that holds some of what a domain lacks."""

    job: str
    resource: str
    amount: str


class ClosestDomain(Struct, frozen=True):
    """The domain with capacity for most of the pods that a gang needs to start."""

    name: str
    """The name of a HyperNode, or a label with its value: `rack=r1`."""
    title: str
    """The display name: the value of a label instead of a generated name."""
    tier: int | None
    """None for a label."""
    fits: int
    """The number of pods for which it has capacity."""
    needed: int
    lacks: dict[str, str]
    """What is missing for the others, by resource."""
    holders: tuple[DomainHolder, ...]
    """The jobs that hold most of what it lacks."""
    nodes: int = 0
    unusable: tuple[str, ...] = ()
    """Its nodes that the pods cannot use."""
    namespaces: tuple[str, ...] | UnsetType = UNSET
    """The namespace of each holder; unset in a copy for a reader."""

    def for_reader(self, namespace: str) -> ClosestDomain:
        """A copy for a reader of one namespace, without names of jobs elsewhere; empty: of all namespaces."""
        if isinstance(self.namespaces, UnsetType):
            return self
        holders = tuple(
            holder if namespace in ("", of_holder) else holder._replace(job=ELSEWHERE)
            for holder, of_holder in zip(self.holders, self.namespaces, strict=True)
        )
        return replace(self, holders=holders, namespaces=UNSET)

    @property
    def text(self) -> str:
        """`HyperNode s3 (tier 1) has capacity for 12 of 16 pods and lacks cpu 8, held there by default/a (cpu 24)`."""
        where = self.name if self.tier is None else f"HyperNode {self.title} (tier {self.tier})"
        text = f"{where} has capacity for {self.fits} of {pods(self.needed)}"
        if self.lacks:
            text += f" and lacks {', '.join(f'{name} {amount}' for name, amount in self.lacks.items())}"
        if self.holders:
            held = ", ".join(f"{each.job} ({each.resource} {each.amount})" for each in self.holders)
            text += f", held there by {held}"
        if self.unusable:
            text += f"; {len(self.unusable)} of its {self.nodes} nodes are unusable ({_first(self.unusable)})"
        return text


class DomainSearch:
    """Capacity in domains for the pods that a gang needs, after the actions have run, or with `empty` nodes.

    Nodes that the pods cannot use have none, except with `every_node`.
    """

    def __init__(
        self, session: Session, tasks: Sequence[Task], empty: bool = False, every_node: bool = False
    ):
        self._session = session
        self._cluster = session.cluster
        self._job = tasks[0].job if tasks else None
        self.needed = len(tasks)
        self._idle = self._cluster.columns.allocatable if empty else self._idle_without_others(tasks)
        self._usable: Bools = np.zeros(len(self._cluster.columns), dtype=bool)
        last = {task.shape: task for task in tasks}
        kinds = []
        for shape, number in Counter(task.shape for task in tasks).items():
            usable = None
            with session.reporting():
                if not every_node:
                    usable = session.reachable(last[shape], confined=False)
                    self._usable |= usable
            kinds.append((SlotCount(asked_amounts(shape), self._idle, usable), number))
        self._slots = TaskSlots(kinds)

    def _idle_without_others(self, tasks: Sequence[Task]) -> Ints:
        """The free amounts of nodes, less those that other tasks of the job had when it was last tried."""
        idle = self._session.attempts.uncommitted.idle
        free: Ints = (self._cluster.columns.idle if idle is None else idle).copy()
        for other in self._job.by_status[Status.PENDING] if self._job is not None else ():
            tried = self._session.attempts.tentative.get(other)
            if tried is not None and tried.node.row >= 0 and other not in tasks:
                free[:, tried.node.row] -= other.shape.dense(len(free))
        return np.maximum(free, 0)

    def fits(self, domains: Sequence[Domain]) -> Ints:
        """For how many of the pods each domain has capacity."""
        rows = [domain.rows for domain in domains]
        return self._slots.within(RowGroups(rows, len(self._cluster.columns)))

    def closest(self, domains: Sequence[Domain]) -> ClosestDomain | None:
        """The domain with capacity for most of the pods, the lowest of them; none if there is no domain."""
        if not domains:
            return None
        fits = self.fits(domains)
        place = min(range(len(domains)), key=lambda place: (-fits[place], domains[place].tier, place))
        domain, lacks = domains[place], self.lacking(domains[place])
        dims = self._cluster.dims
        holders = self._holders(domain, dims.ordered(lacks))
        return ClosestDomain(
            domain.name,
            domain.title,
            None if domain.tier == LABEL_TIER else domain.tier,
            int(fits[place]),
            self.needed,
            {dims.names[dim]: quantity(self._cluster, dim, lacks[dim]) for dim in dims.ordered(lacks)},
            tuple(holders),
            len(domain.rows),
            tuple(self._cluster.columns.nodes[row].name for row in domain.rows if not self._usable[row]),
            tuple(holders.values()),
        )

    def lacking(self, domain: Domain) -> Amounts:
        """The requests of the pods without capacity, of resources that are short by themselves, else of all."""
        alone: Amounts = {}
        together: Amounts = {}
        for slots, number in self._slots.kinds:
            missing = max(number - slots.on(domain.rows), 0)
            for dim, asked in slots.request.items():
                fitting = int(slots_of({dim: asked}, self._idle[:, domain.rows]).sum())
                alone[dim] = alone.get(dim, 0) + max(number - fitting, 0) * asked
                together[dim] = together.get(dim, 0) + missing * asked
        short = {dim: amount for dim, amount in alone.items() if amount > 0}
        return short or {dim: amount for dim, amount in together.items() if amount > 0}

    def _holders(self, domain: Domain, dims: Iterable[int]) -> dict[DomainHolder, str]:
        """Which other jobs hold most of the first of these resources that others hold there, with their namespaces."""
        cluster = self._cluster
        for dim in dims:
            held: Counter[tuple[str, str]] = Counter()
            for row in domain.rows:
                for task in cluster.columns.nodes[row].tasks:
                    if WEIGHT[task.status].used and (task.job is None or task.job is not self._job):
                        key = task.job.key if task.job else f"pod {task.key}"
                        held[key, task.namespace] += int(task.request.get(dim, 0))
            most = [(holder, amount) for holder, amount in held.most_common(SHOWN_HOLDERS) if amount > 0]
            if most:
                name = cluster.dims.names[dim]
                return {
                    DomainHolder(key, name, quantity(cluster, dim, amount)): namespace
                    for (key, namespace), amount in most
                }
        return {}


def pods(count: int) -> str:
    """`16 pods`, or `1 pod`."""
    return "1 pod" if count == 1 else f"{count} pods"


def _first(nodes: Sequence[str]) -> str:
    """The first few names."""
    return ", ".join([*nodes[:SHOWN_HOLDERS], *(["..."] if len(nodes) > SHOWN_HOLDERS else [])])
