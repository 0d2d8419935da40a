"""Devices by claim: the nodes that can serve the ResourceClaims of a task, and its grants there (spec 04 2.12)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stromboli.api import device_messages as messages
from stromboli.api.types.devices import ConsumerReference, DeviceClaim, ResourceClaimSpec
from stromboli.engine.placement.node_fit import fits_amounts
from stromboli.engine.placement.node_functions import Check, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.placement.scoring import InProportion
from stromboli.model.constraints.node_selection import matching_selector
from stromboli.model.devices.allocator import DeviceShortage, DevicesInUse, Solution, StepBudget
from stromboli.model.devices.binding_conditions import is_unusable
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.devices.extended_resources import ExtendedRequests, asked_resources, extended_requests
from stromboli.model.devices.task_claims import claim_problem, consumer, task_claims
from stromboli.model.node_columns import Bools, Ints
from stromboli.model.remedy import NO_REMEDY, Rank, Remedy, Why
from stromboli.model.status import Status
from stromboli.plugins.predicates.device_remedies import OTHER_NODES, free_devices

if TYPE_CHECKING:
    from stromboli.api.types.devices import AllocationResult
    from stromboli.api.types.pod import NodeSelector
    from stromboli.engine.placement.node_functions import Bools, Column
    from stromboli.engine.session import Session
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.allocator import Allocation
    from stromboli.model.devices.claim_use import ClaimContent, ClaimUse
    from stromboli.model.devices.device_ledger import DeviceLedger
    from stromboli.model.job import Job
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


# -- nodes that can serve some claims: evaluated once, then only where the use of devices changed


NOTHING_IN_USE = DevicesInUse()
WORTH_OF_FIRST = 8
"""Score of the first alternative of a request; each further one scores less by one."""
DEFAULT_SECONDS = 10
STEPS_PER_SECOND = 5_000
"""Steps of a search that count as a second of `dynamicresources.filterTimeoutSeconds`."""
MAX_SECONDS = 50
"""Maximum seconds of a search for devices on a node, even without a limit of the policy."""
MAX_STEPS = 500_000
"""Maximum steps of all searches for devices in a cycle, a few seconds; remaining nodes follow in the next cycle."""
CLAIM_ELSEWHERE = "ClaimElsewhere"
"""Code of the check that fails where the allocated devices of a claim are out of reach."""
MAX_ERRORS = 16
"""Maximum different errors that are reported of nodes; others are reported without their text."""


class SearchLimit:
    """The limit of searches for devices: on a node, and on all nodes together in a cycle.

    A namespace uses at most as many steps as it leaves to others, so that one user's claims do not block theirs.
    """

    def __init__(self, seconds: int) -> None:
        asked = seconds if seconds >= 0 else DEFAULT_SECONDS
        bounded = min(asked, MAX_SECONDS) if asked else MAX_SECONDS
        self.steps = STEPS_PER_SECOND * bounded
        """Of a search on one node."""
        self.opening()

    def opening(self) -> None:
        """Start a cycle."""
        self._left = MAX_STEPS
        self._spent: dict[str, int] = {}
        """By namespace."""

    def is_spent(self, namespace: str) -> bool:
        return self._spent.get(namespace, 0) >= self._left

    def budget(self, namespace: str) -> StepBudget:
        """The steps of one search; fewer than the limit if the namespace has fewer left."""
        return StepBudget(min(self.steps, (self._left - self._spent.get(namespace, 0) + 1) // 2))

    def spend(self, namespace: str, steps: int) -> None:
        self._left -= steps
        self._spent[namespace] = self._spent.get(namespace, 0) + steps


class DeviceColumn:
    """A value per node for claims of some contents; tasks with such claims share it."""

    def __init__(self, cluster: Cluster, contents: tuple[ClaimContent, ...], limit: SearchLimit):
        self._cluster = cluster
        self._contents = contents
        self._search = cluster.devices.allocator.prepare([content.spec for content in contents])
        self._limit = limit
        self._namespace = ""
        """The namespace of the task for which it is evaluated."""
        self._state: tuple[int, int, int] | None = None
        self._position = 0
        self._start(0)

    def _start(self, count: int) -> None:
        self.now: Bools = np.zeros(count, dtype=bool)
        """Nodes on which the devices are available now."""
        self.later: Bools = np.zeros(count, dtype=bool)
        """Nodes on which they are available once leaving tasks have left."""
        self.scores: Ints = np.zeros(count, dtype=np.int64)
        """Scores of the alternatives that requests would get."""
        self._postponed: Bools = np.zeros(count, dtype=bool)
        """Rows that were not evaluated within the limit."""
        self._ever = np.full(count, _UNKNOWN, dtype=np.int8)
        """Nodes on which they would be available if no other claim had devices, computed on demand."""
        self._errors: dict[int, tuple[str, str]] = {}
        """Errors of classes, selectors or pools, by row, with the fix if known."""

    @property
    def is_unfinished(self) -> bool:
        """Whether some nodes were not evaluated within the limit."""
        return bool(self._postponed.any())

    def refresh(self, namespace: str) -> None:
        """Update all values for a task of a namespace."""
        self._namespace = namespace
        ledger, columns = self._cluster.devices, self._cluster.columns
        state = (columns.layout, columns.objects, ledger.objects_version)
        changed = ledger.changes.since(self._position) if state == self._state else None
        self._position = ledger.changes.position
        if changed is None:
            self._state = state
            self._start(len(columns))
            self._evaluate(range(len(columns)))
            return
        rows = ledger.rows_seeing(changed, self._cluster.nodes) if changed else set()
        if not self._limit.is_spent(namespace):
            rows.update(np.flatnonzero(self._postponed).tolist())
        if rows:
            self._evaluate(sorted(rows))

    def _evaluate(self, rows: Sequence[int]) -> None:
        ledger, nodes = self._cluster.devices, self._cluster.columns.nodes
        weighed = any(content.has_alternatives for content in self._contents)
        self._reset(rows)
        for place, row in enumerate(rows):
            if self._limit.is_spent(self._namespace):
                self._postponed[list(rows[place:])] = True
                break
            answer = self._answer(nodes[row], ledger.in_use)
            self.now[row] = isinstance(answer, Solution)
            if isinstance(answer, DeviceShortage) and ledger.leaving:
                answer = self._answer(nodes[row], ledger.staying)
            if isinstance(answer, Solution):
                self.later[row] = True
                if weighed:
                    self.scores[row] = _worth(self._contents, answer)
            elif answer is None:
                self._postponed[row] = True
            elif answer.is_error:
                self._errors[row] = (answer.message, answer.mistake)

    def _reset(self, rows: Sequence[int]) -> None:
        """Drop the values of rows."""
        listed = list(rows)
        self.now[listed] = self.later[listed] = self._postponed[listed] = False
        self._ever[listed] = _UNKNOWN
        for row in [row for row in self._errors if row in set(listed)] if self._errors else ():
            del self._errors[row]

    def _answer(self, node: Node, in_use: DevicesInUse) -> Solution | DeviceShortage | None:
        """Whether a node has the devices; none if the remaining steps do not suffice."""
        if self._limit.is_spent(self._namespace):
            return None
        budget = self._limit.budget(self._namespace)
        answer = self._search.answer(node, in_use, budget)
        self._limit.spend(self._namespace, budget.spent)
        gets_further = budget.has_evaluated or budget.limit < self._limit.steps
        return None if budget.is_exceeded and gets_further else answer

    def allocate(self, node: Node, in_use: DevicesInUse, uids: list[str]) -> Allocation | DeviceShortage:
        """Devices on one node for all the claims with these uids, or what is short there."""
        budget = StepBudget(self._limit.steps)
        answer = self._search.allocate(node, in_use, uids, budget)
        self._limit.spend(self._namespace, budget.spent)
        return answer

    def ever(self) -> Bools:
        """Nodes on which the devices would be available if no other claim had any."""
        nodes = self._cluster.columns.nodes
        unknown = np.flatnonzero(~self.later & ~self._postponed & (self._ever == _UNKNOWN))
        for place, row in enumerate(unknown.tolist()):
            if self._limit.is_spent(self._namespace):
                self._postponed[unknown[place:]] = True
                break
            answer = self._answer(nodes[row], NOTHING_IN_USE)
            if answer is None:
                self._postponed[row] = True
            else:
                self._ever[row] = isinstance(answer, Solution)
        return np.asarray(self.later | (self._ever == 1))

    def errors(self) -> Iterator[tuple[Why, Bools]]:
        """Checks for errors of classes, selectors or pools, and for nodes that were not evaluated."""
        if self.is_unfinished:
            yield Why(messages.NO_TIME), ~self._postponed
        for error, _ in Counter(self._errors.values()).most_common(MAX_ERRORS):
            passing = np.ones(len(self.later), dtype=bool)
            passing[[row for row, other in self._errors.items() if other == error]] = False
            message, fix = error
            yield Why(message, Remedy(fix, rank=Rank.MISTAKE) if fix else NO_REMEDY), passing


_UNKNOWN = -1


def _worth(contents: Iterable[ClaimContent], solution: Solution) -> int:
    """The score of the alternatives that requests got: earlier ones score higher (spec 04 2.12)."""
    worth = 0
    for content, options in zip(contents, solution.options, strict=True):
        for request, option in zip(content.spec.devices.requests, options, strict=True):
            names = [alternative.name for alternative in request.first_available]
            worth += WORTH_OF_FIRST - names.index(option.alternative) if names else 0
    return worth


# -- claims of tasks


MAX_COLUMNS = 64
"""Maximum cached columns; a bound on memory, not on what may be scheduled."""


class Allocated(NamedTuple):
    """What determines where an allocated claim can be used."""

    nodes: NodeSelector | None
    """The nodes that can use it; none: all."""
    promised: bool
    """Whether its devices are still held by a leaving task."""
    unusable: bool
    """Whether a driver failed to prepare its devices."""


class Claims(NamedTuple):
    """What the filter reads of the claims of a task: tasks with equal values share their evaluation."""

    new: tuple[ClaimContent, ...]
    """The requests of claims without devices."""
    allocated: tuple[Allocated, ...]
    """Claims with devices, or with devices granted for another task that shares them."""
    sharers: Sharers | None = None
    """Pending tasks with the same claims."""
    extended: tuple[str, ...] = ()
    """Extended resources that devices may serve."""


class DeviceClaims:
    """Filter, score and grants of tasks with claims."""

    def __init__(self, plugin: str, seconds: int) -> None:
        self._plugin = plugin
        self._limit = SearchLimit(seconds)
        self._columns: dict[tuple[ClaimContent, ...], DeviceColumn] = {}
        """The least recently used first."""
        self._asked: set[DeviceColumn] = set()
        """Those that were used in this cycle."""
        self._retries = 0
        """The number of cycles that continued with nodes left by an earlier one."""

    def opening(self, session: Session) -> None:
        cluster = self._cluster = session.cluster
        self._session = session
        self._limit.opening()
        for contents, column in list(self._columns.items()):
            if column.is_unfinished and column not in self._asked:
                del self._columns[contents]  # no task needs it any more
        self._asked.clear()
        self._retries += self.is_unfinished
        self._shared = SharedClaims(cluster.devices)
        self._extended = ExtendedResources(cluster)
        self.remedy = free_devices(cluster)

    @property
    def is_unfinished(self) -> bool:
        """Whether a search for devices continues in the next cycle."""
        return any(column.is_unfinished for column in self._columns.values())

    def concerns(self, task: Task) -> bool:
        """Whether a task has claims, or extended resources that devices may serve."""
        return bool(task.claims) or bool(self._cluster.devices.extended and self._extended.asked(task))

    def problem(self, task: Task) -> Why | None:
        """Why no node can accept a task because of its claims."""
        if self._cluster.devices.made_for(task):
            return Why(messages.STALE_EXTENDED_CLAIM)
        return claim_problem(self._cluster.devices, self._cluster.objects.device_classes, task)

    def key(self, task: Task) -> Claims:
        """A key that distinguishes tasks of one shape by the current state of their claims."""
        new: list[ClaimUse] = []
        allocated: list[Allocated] = []
        for use in task_claims(self._cluster.devices, task):
            allocation = use.allocation
            if allocation is not None:
                unusable = use.object is not None and is_unusable(use.object, self._session.has_come)
                allocated.append(Allocated(allocation.node_selector, use.is_promised, unusable))
            else:
                new.append(use)
        contents = tuple(use.content for use in new if use.content is not None)
        sharers = self._shared.of(task, new) if new else None
        return Claims(contents, tuple(allocated), sharers, self._extended.asked(task))

    def filters(self, task: Task) -> Iterator[NodeFilter]:
        filter = ClaimFilter(self, self.key(task))
        yield NodeFilter(filter.checks, self._plugin, "pods", self.version)

    def scores(self, task: Task) -> Iterator[NodeScore]:
        claims, name, version = self.key(task), self._plugin, self.version
        if any(content.has_alternatives for content in claims.new):

            def alternatives(task: Task, nodes: Nodes) -> Column:
                return nodes.pick(self.column(task, claims.new).scores)

            yield NodeScore(
                alternatives, name, "pods", version, finish=InProportion(), of_some_nodes=True, batch=True
            )
        sharers = claims.sharers
        if sharers is not None:

            def devices_of_all(task: Task, nodes: Nodes) -> Column:
                return nodes.pick(self.column(task, sharers.contents).later) * float(len(sharers.shapes))

            yield NodeScore(sharers.capacity, name, "usage", weight=WEIGHT)
            yield NodeScore(devices_of_all, name, "pods", version, weight=WEIGHT, of_some_nodes=True)

    def version(self, task: Task) -> Hashable:
        ledger = self._cluster.devices
        return (ledger.changes.position, ledger.objects_version, self._retries)

    def column(self, task: Task, contents: tuple[ClaimContent, ...]) -> DeviceColumn:
        """The nodes on which devices for these contents of a task's claims are available now."""
        column = self._columns.pop(contents, None)
        if column is None:
            column = DeviceColumn(self._cluster, contents, self._limit)
            if len(self._columns) >= MAX_COLUMNS:
                del self._columns[next(iter(self._columns))]
        self._columns[contents] = column
        self._asked.add(column)
        column.refresh(task.namespace)
        return column

    def variants(self, task: Task, claims: Claims) -> Iterator[tuple[Bools, tuple[ClaimContent, ...]]]:
        """What has to be allocated on nodes: if a node lists an extended resource, no device is needed."""
        if not claims.extended:
            if claims.new:
                yield np.ones(len(self._cluster.columns), dtype=bool), claims.new
            return
        for rows, extended in self._extended.variants(task):
            contents = (*claims.new, self._extended.content(extended)) if extended is not None else claims.new
            if contents:
                yield rows, contents

    def usable_on(self, claims: Iterable[Allocated]) -> Bools:
        """Nodes that can use all these allocated claims."""
        columns = self._cluster.columns
        usable = np.ones(len(columns), dtype=bool)
        for claim in claims:
            if claim.unusable:
                usable[:] = False
            elif claim.nodes is not None:
                usable &= matching_selector(columns, claim.nodes)
        return usable

    # -- what a task is given

    def grants(self, task: Task, node: Node, now: bool) -> Iterator[Grant | Refusal]:
        """Devices for each claim without any, and the permission to use all of them."""
        ledger = self._cluster.devices
        uses = task_claims(ledger, task)
        new = [use for use in uses if use.allocation is None]
        allocations = {use: use.allocation for use in uses if use.shown is None}
        extended = self._extended.requests(task, node)
        if new or extended is not None:
            contents = tuple(use.content for use in new if use.content is not None)
            contents += (self._extended.content(extended),) if extended is not None else ()
            uids = [use.object.metadata.uid or use.key for use in new if use.object is not None]
            in_use = ledger.in_use if now else ledger.staying
            if extended is not None:
                uids.append(task.uid)
            answer = self.column(task, contents).allocate(node, in_use, uids)
            if isinstance(answer, DeviceShortage):
                yield Refusal(messages.CANNOT_ALLOCATE, True, self._plugin, self.remedy)
                return
            allocations.update(zip(new, answer.results, strict=False))
            if extended is not None:
                pod = ConsumerReference("", "pods", task.name, task.uid)
                yield ExtendedResourceGrant(task.namespace, pod, *extended, answer.results[-1])
        for use in uses:
            yield _grant(task, use, allocations.get(use))


def _grant(task: Task, use: ClaimUse, allocation: AllocationResult | None) -> ClaimGrant:
    meta = use.object.metadata if use.object is not None else None
    name = use.key.partition("/")[2]
    return ClaimGrant(task.namespace, name, meta.uid if meta else "", consumer(task, use), allocation)


class ClaimFilter:
    """Nodes that can serve the claims of a task."""

    def __init__(self, devices: DeviceClaims, claims: Claims):
        self._devices = devices
        self._claims = claims

    def checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        devices, claims = self._devices, self._claims
        for rows, contents in devices.variants(task, claims):
            column = devices.column(task, contents)
            for problem, passing in column.errors():
                yield Check(nodes.pick(passing | ~rows), problem.message, remedy=problem.remedy)
            ever, remedy = nodes.pick(column.ever() | ~rows), devices.remedy
            yield Check(ever, messages.CANNOT_ALLOCATE, remedy=remedy)
            later, now = nodes.pick(column.later | ~rows), nodes.pick(column.now | ~rows)
            yield Check(later, messages.CANNOT_ALLOCATE, True, now, remedy)
        if claims.allocated:
            usable = nodes.pick(devices.usable_on(claims.allocated))
            promised = any(claim.promised for claim in claims.allocated)
            now = np.zeros_like(usable) if promised else usable
            yield Check(usable, messages.NOT_AVAILABLE, False, now, OTHER_NODES, CLAIM_ELSEWHERE)


# -- which extended resources of a task devices have to serve: on each node those that the node does not list


class ExtendedResources:
    """The requests of shapes, computed once per cycle."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._asked: dict[Shape, tuple[str, ...]] = {}
        self._requests: dict[tuple[Shape, tuple[str, ...]], ExtendedRequests] = {}
        self._contents: dict[ExtendedRequests, ClaimContent] = {}
        self._listed: dict[tuple[str, ...], tuple[tuple[int, int], dict[tuple[bool, ...], Bools]]] = {}

    def asked(self, task: Task) -> tuple[str, ...]:
        """The extended resources of a task that devices may serve, by name."""
        served = self._cluster.devices.extended
        if not served:
            return ()
        known = self._asked.get(task.shape)
        if known is None:
            known = self._asked[task.shape] = tuple(asked_resources(task.shape.spec, served))
        return known

    def requests(self, task: Task, node: Node) -> ExtendedRequests | None:
        """What devices of a node have to serve; none if the node lists all requested resources."""
        return self._requests_for(task, [self._is_listed(node, name) for name in self.asked(task)])

    def _is_listed(self, node: Node, name: str) -> bool:
        dim = self._cluster.dims.index.get(name)
        return dim is not None and node.allocatable.get(dim, 0) > 0

    def _requests_for(self, task: Task, listed: list[bool]) -> ExtendedRequests | None:
        missing = tuple(name for name, has in zip(self.asked(task), listed, strict=True) if not has)
        if not missing:
            return None
        known = self._requests.get((task.shape, missing))
        if known is None:
            known = extended_requests(task.shape.spec, missing, self._cluster.devices.extended)
            self._requests[task.shape, missing] = known
        return known

    def variants(self, task: Task) -> Iterator[tuple[Bools, ExtendedRequests | None]]:
        """Nodes that list the same resources of a task, and what devices have to serve there."""
        for listed, rows in self._groups(self.asked(task)).items():
            yield rows, self._requests_for(task, list(listed))

    def _groups(self, asked: tuple[str, ...]) -> dict[tuple[bool, ...], Bools]:
        """Nodes by the resources that they list."""
        columns = self._cluster.columns
        state = (columns.layout, columns.objects)
        known = self._listed.get(asked)
        if known is None or known[0] != state:
            groups: dict[tuple[bool, ...], Bools] = {}
            for row, node in enumerate(columns.nodes):
                listed = tuple([self._is_listed(node, name) for name in asked])
                if listed not in groups:
                    groups[listed] = np.zeros(len(columns), dtype=bool)
                groups[listed][row] = True
            known = self._listed[asked] = (state, groups)
        return known[1]

    def content(self, requests: ExtendedRequests) -> ClaimContent:
        """The content of a claim with these requests."""
        known = self._contents.get(requests)
        if known is None:
            spec = ResourceClaimSpec(DeviceClaim(requests.requests))
            known = self._contents[requests] = self._cluster.devices.content(spec)
        return known


# -- pods of a job that share a claim without devices: the node that the first one takes has to serve them all


MAX_SHARERS = 64
"""Maximum further pods that must fit a node; a gang that shares a claim is rarely larger than a node."""
WEIGHT = 1e6
"""The score per further pod that fits: more than all other scores together."""


class Sharers(NamedTuple):
    """Pending tasks with the same claim as a task."""

    shapes: tuple[Shape, ...]
    """Their request."""
    contents: tuple[ClaimContent, ...]
    """The requests of all claims of the task and of these without devices."""

    def capacity(self, task: Task, nodes: Nodes) -> Column:
        """The number of them that fit a node together with the task."""
        needed = dict(task.request)
        count = nodes.zeros()
        for shape in self.shapes:
            for dim, amount in shape.request.items():
                needed[dim] = needed.get(dim, 0) + amount
            count += fits_amounts(needed, nodes.future_idle)
        return count


class SharedClaims:
    """The tasks that share claims, within jobs."""

    def __init__(self, ledger: DeviceLedger):
        self._ledger = ledger
        self._users: dict[Job, dict[str, list[Task]]] = {}
        """The tasks of a job that name a claim, by its key."""

    def of(self, task: Task, new: list[ClaimUse]) -> Sharers | None:
        """The other pending tasks with one of these claims; none if there are none."""
        if task.job is None or len(task.job.tasks) < 2:
            return None
        users = self._users_of(task.job)
        others = (
            other
            for use in new
            for other in users.get(use.key, ())
            if other is not task and other.status is Status.PENDING
        )
        waiting = list(dict.fromkeys(islice(others, MAX_SHARERS)))
        if not waiting:
            return None
        claims = {use: None for each in (task, *waiting) for use in self._new(each)}
        return Sharers(
            tuple(other.shape for other in waiting),
            tuple(use.content for use in claims if use.content is not None),
        )

    def _users_of(self, job: Job) -> dict[str, list[Task]]:
        users = self._users.get(job)
        if users is None:
            users = self._users[job] = {}
            for task in job.tasks.values():
                for claim in task.claims:
                    users.setdefault(f"{task.namespace}/{claim.claim}", []).append(task)
        return users

    def _new(self, task: Task) -> Iterator[ClaimUse]:
        return (use for use in task_claims(self._ledger, task) if use.allocation is None)
