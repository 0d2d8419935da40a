"""Filters and scores of all nodes for one shape of task, kept up to date while nodes change, and the choice of a node.

Functions that read the node alone are in `usage_evaluation.py`. This module adds those that depend on other pods, on
time or on the set of candidates. The naive evaluator in the tests is the oracle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.api import names
from stromboli.engine.placement.node_functions import (
    Bools,
    Check,
    Column,
    Floats,
    NodeFilter,
    Nodes,
    NodeScore,
    Passing,
    checked,
    finished,
    passes,
    scored,
)
from stromboli.engine.placement.usage_evaluation import NEVER, UsageEvaluation
from stromboli.engine.placement.verdict import FIT, INSUFFICIENT, Reason, Verdict
from stromboli.model.node_columns import read_only

if TYPE_CHECKING:
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.reservations import OwnReservation
    from stromboli.model.task import Task


class Evaluation:
    """One shape against all nodes, or some: where it fits now, where it will, and how good each node is.

    Its columns have one place for each of those nodes. Callers know nodes by their rows.
    """

    def __init__(
        self,
        columns: Columns,
        task: Task,
        filters: Sequence[NodeFilter],
        scores: Sequence[NodeScore],
        resource_fit: bool = True,
        rows: Ints | None = None,
    ):
        self.columns = columns
        self.rows = rows
        """The nodes that are evaluated, ascending; none for all."""
        self.resource_fit = resource_fit
        self.filters = tuple(filters)
        self._watched = [filter for filter in filters if filter.reads not in ("static", "usage")]
        steady = [score for score in scores if score.finish is None and score.reads in ("static", "usage")]
        self._raw = [score for score in scores if score not in steady]
        self.usage = UsageEvaluation(columns, task.shape, filters, steady, resource_fit, rows)
        """The part of it that reads nodes alone."""
        functions: list[NodeFilter | NodeScore] = [*filters, *scores]
        self.is_repeatable = all(function.reads not in ("clock", "external") for function in functions)
        """Whether its answers follow from the cluster alone."""
        self.counted = 0
        """The memory that it took when it was last counted."""
        self._layout = self._objects = -1
        self._verdict: tuple[Any, Verdict] | None = None
        self._reach: tuple[Any, Bools] | None = None
        self._follows_numbers: bool | None = None
        self._totals: Floats | None = None
        """The total score of nodes on which the task fits now, by all scores and filters; none: to be computed."""
        self._addends: list[Column] = []
        """What was added to it for each score that depends on more than the node."""

    def count(self) -> int:
        """Count the memory that it takes now; returns the change."""
        before, self.counted = self.counted, self.usage.bytes
        return self.counted - before

    @property
    def allowed(self) -> Bools:
        """The nodes that pass all filters that read the node object alone."""
        return self.usage.allowed

    # -- following changes

    def refresh(self, task: Task, cycle: int) -> None:
        """Evaluate again what depends on node objects, other pods or time, where those changed."""
        feed = self.columns.feed
        if feed.layout.generation != self._layout or feed.nodes.generation != self._objects:
            self._start(task)
        if self._watched or self._raw:
            self._refresh_watched(task, cycle)

    @property
    def goes_by_numbers(self) -> bool:
        """Whether every filter reads a node's own object and numbers alone."""
        return not self._watched

    def catch_up(self, task: Task) -> None:
        """Bring scores and fits up to date with all nodes."""
        self.usage.catch_up(task)

    def _start(self, task: Task) -> None:
        self._layout = -1  # if a plugin raises, the next call evaluates everything again
        self._versions: dict[int, Any] = {}
        self._columns: dict[int, Column] = {}
        self._passing: dict[int, Passing] = {}
        self._differing: dict[int, bool] = {}
        self._volatile: list[NodeScore] = []
        self._groups: dict[int, tuple[Column, Bools, Column]] = {}
        self._verdict = self._reach = self._totals = None
        self._follows_numbers = None
        self.usage.start(task)
        self._layout, self._objects = self.columns.layout, self.columns.objects

    def _boards(self, task: Task, own: OwnReservation | None) -> tuple[Floats, Floats]:
        """The scores where a task fits now, and where it will; it may use the resources reserved for it."""
        usage = self.usage
        place = -1 if own is None else usage.place(own.row)
        if own is None or place < 0 or not usage.allowed[place]:
            return usage.now, usage.later
        now, later, score = usage.now.copy(), usage.later.copy(), usage.scores[place]
        fits_now, fits_later = usage.fits_on(task, own.row, own)
        now[place] = score if fits_now else NEVER
        later[place] = score if fits_later else NEVER
        return now, later

    # -- what depends on other pods, on time or on the group of candidates

    def _refresh_watched(self, task: Task, cycle: int) -> None:
        watched: list[NodeFilter | NodeScore] = [*self._watched, *self._raw]
        for function in watched:
            version = self._version(function, task, cycle)
            if version is None or self._versions.get(id(function), self) != version:
                if isinstance(function, NodeFilter):
                    self._passing[id(function)] = self._picked(passes(function, task, Nodes(self.columns)))
                else:
                    nodes = Nodes(self.columns, self._rows_for(function))
                    self._columns[id(function)] = read_only(scored(function, task, nodes))
                    self._differing[id(function)] = self._differs(function)
                    self._volatile = [score for score in self._raw if self._differing.get(id(score))]
                self._versions[id(function)] = version
                self._totals = None

    def _picked(self, passing: Passing) -> Passing:
        later = self.usage.pick(passing.later)
        return Passing(later if passing.now is passing.later else self.usage.pick(passing.now), later)

    def _differs(self, score: NodeScore) -> bool:
        """Whether a score can change the choice: not where it is the same on all nodes."""
        raw = self._columns[id(score)]
        return len(raw) > 0 and bool((raw != raw[0]).any())

    def _rows_for(self, score: NodeScore) -> Ints | None:
        """The nodes for which a score is called: all, unless it supports some."""
        return self.rows if score.of_some_nodes else None

    def _version(self, function: NodeFilter | NodeScore, task: Task, cycle: int) -> Any:
        if function.reads == "static":
            return self._objects
        if function.reads == "pods" and function.version is not None:
            try:
                return (function.version(task), self._objects)
            except BaseException as error:
                function.raise_attributed(error)
        if function.reads in ("usage", "pods"):
            return self.columns.clock
        return cycle if function.reads == "clock" else None

    # -- choosing

    def best(
        self, task: Task, groups: Sequence[Bools | None] = (None,), own: OwnReservation | None = None
    ) -> tuple[int, bool, Bools | None]:
        """After `catch_up`, the best node by row (-1: none), whether the task fits there now, and the node's group.

        Groups are tried in order, and all groups with free resources now before any with resources to be released.
        """
        if own is None and groups[0] is None:
            totals = self._follow_totals(task)
            place = int(totals.argmax()) if len(totals) else -1
            if place >= 0 and totals[place] > NEVER:
                return self.usage.row(place), True, None
        for board, fits_now in zip(self._boards(task, own), (True, False), strict=True):
            for within in groups:
                place = self._best_of(task, board, within, fits_now)
                if place >= 0:
                    return self.usage.row(place), fits_now, within
        return -1, False, None

    def _follow_totals(self, task: Task) -> Floats:
        """The total scores: summed again for nodes that changed, for all nodes if the candidates changed."""
        usage = self.usage
        if not (self._watched or self._volatile):
            usage.changed = None
            return usage.now
        if self._totals is None or usage.changed is None or not self._add_up(self._totals, usage.changed):
            self._totals, self._addends = self._final(task, usage.now, None, True)
            usage.changed = []
        return self._totals

    def _add_up(self, totals: Floats, changed: list[int]) -> bool:
        """Sum the scores of some nodes again; false if one of them became or ceased to be a candidate."""
        passing = [self._passing[id(filter)].now for filter in self._watched]
        for place in changed:
            total = self.usage.now[place]
            for column in passing:
                if not column[place]:
                    total = NEVER
            if (total > NEVER) != (totals[place] > NEVER):
                return False
            for addend in self._addends:
                total = total + addend[place]
            totals[place] = total
        changed.clear()
        return True

    def group(
        self, task: Task, now: bool, within: Bools | None = None, own: OwnReservation | None = None
    ) -> dict[int, float]:
        """The candidates by row, with their scores: nodes where the task fits now, or where it will fit."""
        self.catch_up(task)
        board, _ = self._final(task, self._boards(task, own)[0 if now else 1], within, now)
        return {
            self.usage.row(place): float(board[place]) for place in np.flatnonzero(board > NEVER).tolist()
        }

    def _best_of(self, task: Task, board: Floats, within: Bools | None, now: bool) -> int:
        if not len(board):
            return -1
        board, _ = self._final(task, board, within, now)
        place = int(board.argmax())
        return place if board[place] > NEVER else -1

    def _final(
        self, task: Task, board: Floats, within: Bools | None, now: bool
    ) -> tuple[Floats, list[Column]]:
        """Scores with all that depends on more than the node, and what was added for each such score."""
        if not (self._watched or self._volatile or within is not None):
            return board, []
        candidates = board > NEVER
        if within is not None:
            candidates &= self.usage.pick(within)
        for filter in self._watched:
            passing = self._passing[id(filter)]
            candidates &= passing.now if now else passing.later
        final = np.where(candidates, board, NEVER)
        addends = [self._finished(score, task, candidates) for score in self._volatile if candidates.any()]
        for addend in addends:
            np.add(final, addend, out=final)
        return final, addends

    def _finished(self, score: NodeScore, task: Task, candidates: Bools) -> Column:
        """A score normalised over these candidates; mostly the same as in the last call."""
        raw, rows = self._columns[id(score)], self._rows_for(score)
        whole = self.rows is not None and rows is None
        if score.finish is None:
            return (self.usage.pick(raw) if whole else raw) * score.weight
        known = self._groups.get(id(score))
        if known is None or known[0] is not raw or not np.array_equal(known[1], candidates):
            asked = self._among_all(candidates) if whole else candidates
            final = finished(score, task, Nodes(self.columns, rows), raw, asked)
            known = (raw, candidates, (self.usage.pick(final) if whole else final) * score.weight)
            self._groups[id(score)] = known
        return known[2]

    def _among_all(self, places: Bools) -> Bools:
        """Some of the evaluated nodes, as a mask over all nodes."""
        chosen = np.zeros(len(self.columns), dtype=bool)
        chosen[self.rows] = places
        return chosen

    # -- for actions that evict: nodes on which the task does not fit yet (of an evaluation of all nodes)

    def reachable(self, task: Task) -> Bools:
        """Nodes that refuse the task only for reasons that an eviction may cure."""
        state = (self._moment(task), [self._versions.get(id(filter)) for filter in self._watched])
        if self._reach is None or self._reach[0] != state or None in state[1]:
            hopeless = explain(Nodes(self.columns), task, self.filters, False, None).hopeless
            self._reach = (state, ~hopeless if hopeless is not None else Nodes(self.columns).all())
        return self._reach[1]

    def _moment(self, task: Task) -> int:
        """The version of the numbers behind `reachable`; 0 if evictions cure all refusals of the one plugin."""
        if self._follows_numbers is None:
            nodes = Nodes(self.columns)
            self._follows_numbers = len({filter.plugin for filter in self.filters}) > 1 or any(
                not check.curable
                for filter in self.usage.usage_filters
                for check in checked(filter, task, nodes)
            )
        return self.columns.clock if self._follows_numbers else 0

    def ranked(self, task: Task, candidates: Bools) -> Iterator[int]:
        """Nodes by score, the best first, whether the task fits there or not."""
        if not candidates.any():
            return
        self.catch_up(task)
        board = np.where(candidates, self.usage.scores, NEVER)
        for score in self._volatile:
            board = board + self._finished(score, task, candidates)
        best = int(board.argmax())
        yield best
        rows = np.flatnonzero(candidates)
        for row in rows[np.argsort(-board[rows], kind="stable")].tolist():
            if row != best:
                yield row

    def admits(self, task: Task, row: int, own: OwnReservation | None = None) -> bool:
        """Whether one node passes every filter, and the task fits there once leaving tasks have left."""
        if not self.usage.allowed[row] or self.is_filtered(row):
            return False
        return self.usage.fits_on(task, row, own)[1]

    def is_filtered(self, row: int) -> bool:
        """Whether a filter that reads more than a node's object and numbers refuses one node."""
        return not all(self._passing[id(filter)].later[row] for filter in self._watched)

    # -- explaining

    def verdict(self, task: Task, within: Bools | None = None, own: OwnReservation | None = None) -> Verdict:
        """Why no node accepts the task, counted over all evaluated nodes (or those within)."""
        if self.rows is not None:
            inside = self._among_all(np.ones(len(self.rows), dtype=bool))
            within = inside if within is None else inside & within
        if within is not None or own is not None:
            return explain(Nodes(self.columns, own=own), task, self.filters, self.resource_fit, within)
        state = (self.columns.clock, [self._versions.get(id(filter)) for filter in self._watched])
        if self._verdict is None or self._verdict[0] != state or None in state[1]:
            verdict = explain(Nodes(self.columns), task, self.filters, self.resource_fit, None)
            self._verdict = (state, verdict)
        return self._verdict[1]


# -- why no node accepts a task: reasons counted by node, as Kubernetes does


def explain(
    nodes: Nodes, task: Task, filters: Sequence[NodeFilter], resource_fit: bool, within: Bools | None
) -> Verdict:
    """Count the reasons over all nodes, or those within."""
    counts = _ReasonCounts(nodes, task, within)
    if resource_fit:
        counts.add_resources()
    for plugin in dict.fromkeys(filter.plugin for filter in filters):
        counts.add_plugin(plugin, [filter for filter in filters if filter.plugin == plugin])
    return counts.verdict()


class _ReasonCounts:
    """Reasons of the fit test, then of each plugin; a node counts for the first that refuses it."""

    def __init__(self, nodes: Nodes, task: Task, within: Bools | None):
        self._nodes = nodes
        self._task = task
        self._asked = nodes.all() if within is None else within
        self._open = self._asked.copy()
        self._hopeless = np.zeros(len(nodes), dtype=bool)
        self._reasons: list[Reason] = []

    def add_resources(self) -> None:
        """Count the first resource that is short on a node, even once all leaving tasks have left."""
        shape, dims = self._task.shape, self._nodes.columns.dims
        for dim in dims.ordered(shape.dims):
            short = self._open & (self._nodes.future_idle[dim] < shape.request.get(dim, 0))
            reason = names.INSUFFICIENT.format(dims.names[dim])
            if count := int(np.count_nonzero(short)):
                self._reasons.append(Reason(reason, count, FIT, True, dim=dim, code=INSUFFICIENT))
            self._open &= ~short

    def add_plugin(self, plugin: str, filters: Sequence[NodeFilter]) -> None:
        """Count one plugin's filters in order: curable reasons of a node add up, until an incurable one."""
        passing, asking = self._nodes.all(), self._open.copy()
        for filter in filters:
            undecided = asking.copy()
            for check in checked(filter, self._task, self._nodes):
                failed = undecided & ~check.passes
                self._count(check, plugin, failed)
                undecided &= ~failed
                passing &= ~failed
                if not check.curable:
                    asking &= ~failed
        self._open &= passing

    def _count(self, check: Check, plugin: str, failed: Bools) -> None:
        if count := int(np.count_nonzero(failed)):
            self._reasons.append(
                Reason(check.reason, count, plugin, check.curable, check.remedy, code=check.code)
            )
        if not check.curable:
            self._hopeless |= failed

    def verdict(self) -> Verdict:
        return Verdict(int(np.count_nonzero(self._asked)), tuple(self._reasons), hopeless=self._hopeless)
