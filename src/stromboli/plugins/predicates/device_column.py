"""On which nodes devices for some claims can be had: evaluated once, then again only where devices changed hands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import device_messages as messages
from stromboli.model.devices.allocator import DeviceShortage, DevicesInUse, Solution, StepBudget
from stromboli.model.node_columns import Bools, Ints
from stromboli.model.remedy import NO_REMEDY, Problem, Rank, Remedy

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.allocator import Allocation
    from stromboli.model.devices.claim_use import ClaimContent
    from stromboli.model.node_columns import Node

NOTHING_IN_USE = DevicesInUse()
WORTH_OF_FIRST = 8
"""Score of the first alternative of a request; the second is worth less by one, and so on."""
DEFAULT_SECONDS = 10
STEPS_PER_SECOND = 5_000
"""Steps of a search that stand for a second of `dynamicresources.filterTimeoutSeconds`."""
MOST_SECONDS = 50
"""Seconds beyond which no search for devices on a node goes, also if the policy sets no limit."""
MOST_STEPS = 500_000
"""Steps of all searches for devices in a cycle, a few seconds; nodes that are left are looked at in the next."""
MOST_ERRORS = 16
"""Different errors that are told of nodes; others are told without their words."""


class SearchLimit:
    """How long to look for devices: on a node, and on all nodes together in a cycle.

    A namespace takes at most as many steps as it leaves to the others, so that no user's claims keep theirs waiting.
    """

    def __init__(self, seconds: int) -> None:
        asked = seconds if seconds >= 0 else DEFAULT_SECONDS
        bounded = min(asked, MOST_SECONDS) if asked else MOST_SECONDS
        self.steps = STEPS_PER_SECOND * bounded
        """Of a search on one node."""
        self.opening()

    def opening(self) -> None:
        """A new cycle."""
        self._left = MOST_STEPS
        self._spent: dict[str, int] = {}
        """By namespace."""

    def is_spent(self, namespace: str) -> bool:
        return self._spent.get(namespace, 0) >= self._left

    def budget(self, namespace: str) -> StepBudget:
        """The steps of one search; fewer than it may take if the namespace has not as many left."""
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
        """Of the task for which it is evaluated."""
        self._state: tuple[int, int, int] | None = None
        self._position = 0
        self._start(0)

    def _start(self, count: int) -> None:
        self.now: Bools = np.zeros(count, dtype=bool)
        """Where the devices can be had right now."""
        self.later: Bools = np.zeros(count, dtype=bool)
        """Where they can be had once what is leaving has left."""
        self.scores: Ints = np.zeros(count, dtype=np.int64)
        """What the alternatives are worth that requests would get."""
        self._postponed: Bools = np.zeros(count, dtype=bool)
        """Rows that nobody had time for."""
        self._ever = np.full(count, _UNKNOWN, dtype=np.int8)
        """Where they could be had if nobody else had any, as far as that was asked for."""
        self._errors: dict[int, tuple[str, str]] = {}
        """What is wrong with classes, selectors or pools, by row, with what fixes it if that is known."""

    @property
    def is_unfinished(self) -> bool:
        """Whether there are nodes for which nobody had time."""
        return bool(self._postponed.any())

    def refresh(self, namespace: str) -> None:
        """Bring all values up to date for a task of a namespace."""
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
        """Forget the values of rows."""
        listed = list(rows)
        self.now[listed] = self.later[listed] = self._postponed[listed] = False
        self._ever[listed] = _UNKNOWN
        for row in [row for row in self._errors if row in set(listed)] if self._errors else ():
            del self._errors[row]

    def _answer(self, node: Node, in_use: DevicesInUse) -> Solution | DeviceShortage | None:
        """Whether there are devices on a node; none if the steps that are left do not suffice to tell."""
        if self._limit.is_spent(self._namespace):
            return None
        budget = self._limit.budget(self._namespace)
        answer = self._search.answer(node, in_use, budget)
        self._limit.spend(self._namespace, budget.spent)
        gets_further = budget.has_evaluated or budget.limit < self._limit.steps
        return None if budget.is_exceeded and gets_further else answer

    def allocate(self, node: Node, in_use: DevicesInUse, uids: list[str]) -> Allocation | DeviceShortage:
        """Devices on one node for all the claims, which have these uids, or what is short there."""
        budget = StepBudget(self._limit.steps)
        answer = self._search.allocate(node, in_use, uids, budget)
        self._limit.spend(self._namespace, budget.spent)
        return answer

    def ever(self) -> Bools:
        """Where the devices could be had if nobody else had any."""
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

    def errors(self) -> Iterator[tuple[Problem, Bools]]:
        """What is wrong with classes, selectors or pools, or that there was no time, and where that is not so."""
        if self.is_unfinished:
            yield Problem(messages.NO_TIME), ~self._postponed
        for error, _ in Counter(self._errors.values()).most_common(MOST_ERRORS):
            passing = np.ones(len(self.later), dtype=bool)
            passing[[row for row, other in self._errors.items() if other == error]] = False
            message, fix = error
            yield Problem(message, Remedy(fix, rank=Rank.MISTAKE) if fix else NO_REMEDY), passing


_UNKNOWN = -1


def _worth(contents: Iterable[ClaimContent], solution: Solution) -> int:
    """The earlier the alternatives that requests got, the more (spec 04 2.12)."""
    worth = 0
    for content, options in zip(contents, solution.options, strict=True):
        for request, option in zip(content.spec.devices.requests, options, strict=True):
            names = [alternative.name for alternative in request.first_available]
            worth += WORTH_OF_FIRST - names.index(option.alternative) if names else 0
    return worth
