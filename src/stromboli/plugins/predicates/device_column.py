"""On which nodes devices for some claims can be had: evaluated once, then again only where devices changed hands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import device_messages as messages
from stromboli.model.devices.allocator import DevicesInUse, Shortage, Solution, StepBudget
from stromboli.model.node_columns import Bools, Ints

if TYPE_CHECKING:
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.allocator import Allocation, ClaimSearch
    from stromboli.model.devices.claim_use import ClaimContent
    from stromboli.model.node_columns import Node

NOTHING_IN_USE = DevicesInUse()
WORTH_OF_FIRST = 8
"""Score of the first alternative of a request; the second is worth less by one, and so on."""
DEFAULT_SECONDS = 10
STEPS_PER_SECOND = 5_000
"""Steps of a search that stand for a second of `dynamicresources.filterTimeoutSeconds`."""
MOST_SECONDS = 100
"""Seconds beyond which no search for devices on a node goes, also if the policy sets no limit."""
MOST_STEPS = 1_000_000
"""Steps of all searches for devices in a cycle; nodes that are left are looked at in the next."""


class SearchLimit:
    """How long to look for devices: on a node, and on all nodes together in a cycle."""

    def __init__(self, seconds: int) -> None:
        asked = seconds if seconds >= 0 else DEFAULT_SECONDS
        bounded = min(asked, MOST_SECONDS) if asked else MOST_SECONDS
        self._steps = STEPS_PER_SECOND * bounded
        self._left = MOST_STEPS

    @property
    def is_spent(self) -> bool:
        return self._left <= 0

    def opening(self) -> None:
        """A new cycle."""
        self._left = MOST_STEPS

    def budget(self) -> StepBudget:
        return StepBudget(self._steps)

    def spent(self, budget: StepBudget) -> None:
        self._left -= self._steps - budget.steps


class DeviceColumn:
    """A value per node for claims of some contents; tasks with such claims share it."""

    def __init__(self, cluster: Cluster, contents: tuple[ClaimContent, ...], limit: SearchLimit):
        self._cluster = cluster
        self._contents = contents
        self._limit = limit
        self._state: tuple[int, int, int] | None = None
        self._position = 0
        self._postponed: set[int] = set()
        """Rows that nobody had time for."""

    @property
    def is_unfinished(self) -> bool:
        """Whether there are nodes for which nobody had time."""
        return bool(self._postponed)

    def refresh(self) -> None:
        """Bring all values up to date."""
        ledger, columns = self._cluster.devices, self._cluster.columns
        state = (columns.layout, columns.objects, ledger.objects_version)
        changed = ledger.changes.since(self._position) if state == self._state else None
        self._position = ledger.changes.position
        if changed is None:
            self._state = state
            self._start(len(columns))
            self._evaluate(range(len(columns)))
        elif changed or (self._postponed and not self._limit.is_spent):
            self._evaluate({*ledger.rows_seeing(changed, self._cluster.nodes), *self._postponed})

    def _start(self, count: int) -> None:
        self.now: Bools = np.zeros(count, dtype=bool)
        """Where the devices can be had right now."""
        self.later: Bools = np.zeros(count, dtype=bool)
        """Where they can be had once what is leaving has left."""
        self.scores: Ints = np.zeros(count, dtype=np.int64)
        """What the alternatives are worth that requests would get."""
        self.shortages: dict[int, Shortage] = {}
        """What is short, by row, where they cannot be had."""
        self._ever: dict[int, bool] = {}

    def _evaluate(self, rows: Iterable[int]) -> None:
        ledger, nodes = self._cluster.devices, self._cluster.columns.nodes
        search, self._postponed = self._search(), set()
        weighed = any(content.has_alternatives for content in self._contents)
        for row in rows:
            self._ever.pop(row, None)
            answer = self._answer(search, nodes[row], ledger.in_use)
            self.now[row] = isinstance(answer, Solution)
            if isinstance(answer, Shortage) and ledger.leaving:
                answer = self._answer(search, nodes[row], ledger.staying)
            self.later[row] = isinstance(answer, Solution)
            if isinstance(answer, Shortage):
                self.shortages[row] = answer
                if answer is _NO_TIME:
                    self._postponed.add(row)
            else:
                self.shortages.pop(row, None)
                if weighed:
                    self.scores[row] = _worth(self._contents, answer)

    def _search(self) -> ClaimSearch:
        return self._cluster.devices.allocator.prepare([content.spec for content in self._contents])

    def _answer(self, search: ClaimSearch, node: Node, in_use: DevicesInUse) -> Solution | Shortage:
        if self._limit.is_spent:
            return _NO_TIME
        budget = self._limit.budget()
        answer = search.answer(node, in_use, budget)
        self._limit.spent(budget)
        return answer

    def allocate(self, node: Node, in_use: DevicesInUse, uids: list[str]) -> Allocation | Shortage:
        """Devices on one node for all the claims, which have these uids, or what is short there."""
        return self._search().allocate(node, in_use, uids, self._limit.budget())

    def ever(self) -> Bools:
        """Where the devices could be had if nobody else had any."""
        nodes, search = self._cluster.columns.nodes, self._search()
        column = self.later.copy()
        for row in self.shortages:
            known = self._ever.get(row)
            if known is None:
                known = isinstance(self._answer(search, nodes[row], NOTHING_IN_USE), Solution)
                self._ever[row] = known
            column[row] = known
        return column

    def errors(self) -> Iterator[tuple[str, Bools]]:
        """What is wrong with classes, selectors or pools, and where that is not so."""
        rows: dict[str, list[int]] = {}
        for row, shortage in self.shortages.items():
            if shortage.is_error:
                rows.setdefault(shortage.message, []).append(row)
        for message, failed in rows.items():
            passing = np.ones(len(self.later), dtype=bool)
            passing[failed] = False
            yield message, passing


_NO_TIME = Shortage(messages.NO_TIME, is_error=True)


def _worth(contents: Iterable[ClaimContent], solution: Solution) -> int:
    """The earlier the alternatives that requests got, the more (spec 04 2.12)."""
    worth = 0
    for content, options in zip(contents, solution.options, strict=True):
        for request, option in zip(content.spec.devices.requests, options, strict=True):
            names = [alternative.name for alternative in request.first_available]
            worth += WORTH_OF_FIRST - names.index(option.alternative) if names else 0
    return worth
