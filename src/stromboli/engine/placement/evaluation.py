"""What every node means to one shape of task, kept up while nodes change.

All filters and scores of a shape are evaluated once for all nodes. After that only the nodes that changed are looked
at again. Numbers of a node change mostly because one more task of the same shape was put there, so each node is
evaluated some steps ahead (as it is, with one more, with two more ...); such a change then costs one look-up. The
naive evaluator in the tests is the oracle of all this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stromboli.engine.placement.node_explanation import explain
from stromboli.engine.placement.node_functions import (
    BadAnswer,
    Bools,
    Column,
    Floats,
    NodeFilter,
    Nodes,
    NodeScore,
    checked,
)
from stromboli.engine.placement.verdict import Verdict
from stromboli.model.node_columns import read_only

if TYPE_CHECKING:
    from stromboli.model.amounts import Vector
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.reservations import OwnRoom
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

MAX_STEPS = 16
"""Steps that nodes are evaluated ahead, at most."""
MAX_STEPS_AT_ONCE = 32768
"""How many steps of nodes are evaluated together when there are many."""
FEW_AT_ONCE = 1024
"""The same for the nodes of a domain, which are evaluated because tasks are about to be placed there."""
BUSY_AFTER = 8
"""Placements of a shape, each after another, after which all nodes are evaluated ahead for it."""
MOST_SCORE = 1e100
"""What a score may be at most, above or below zero."""
NEVER = -np.inf


def fits(task: Task, free: Ints) -> Bools:
    """Where a task's request fits into what is free: cpu and memory always, scalars only when named."""
    return fits_amounts(task.shape.request, free, task.shape.dims[1:])


def fits_amounts(request: Vector, free: Ints, dims: Sequence[int] = ()) -> Bools:
    """Where an amount fits into what is free, in some dimensions or in those that it names."""
    fitting: Bools = free[0] >= request.get(0, 0)
    for dim in dims or request:
        fitting &= free[dim] >= request.get(dim, 0)
    return fitting


def slots(shape: Shape, free: Ints) -> Ints:
    """How many tasks of a shape fit into what is free, by node; every task asks for one of the pods at least."""
    asked = [(dim, int(amount)) for dim, amount in shape.request.items() if amount > 0]
    fewest: Ints = np.minimum.reduce([free[dim] // amount for dim, amount in asked])
    return np.maximum(fewest, 0)


def _fits_into(task: Task, free: Ints) -> bool:
    """Whether a task's request fits into what one node has free."""
    request = task.shape.request
    return all(free[dim] >= request.get(dim, 0) for dim in task.shape.dims)


class Passing(NamedTuple):
    """Where all checks of a filter let a task pass: right now, and once what is leaving has left."""

    now: Bools
    later: Bools


def passes(filter: NodeFilter, task: Task, nodes: Nodes) -> Passing:
    """Where all checks of a filter let a task pass; one column for both times where no check tells them apart."""
    later = nodes.all()
    now = later
    try:
        for check in checked(filter, task, nodes):
            if check.now is not None and now is later:
                now = later.copy()
            if now is not later:
                now &= check.passes if check.now is None else check.now
            later &= check.passes
    except BaseException as error:
        filter.raise_attributed(error)
    return Passing(now, later)


def scored(score: NodeScore, task: Task, nodes: Nodes) -> Floats:
    """A plugin's scores, refused if they are not one number per node, or if a number is out of bounds."""
    try:
        return _finite(score.score(task, nodes), nodes)
    except BaseException as error:
        score.raise_attributed(error)


def _finite(column: Any, nodes: Nodes) -> Floats:
    scores = np.asarray(_one_per_node(column, nodes), dtype=np.float64)
    odd = np.flatnonzero(~_within_bounds(scores))
    if len(odd):
        score, node = scores[odd[0]], nodes.name(int(odd[0]))
        steady = "a larger number" if np.isfinite(score) else str(score)
        raise BadAnswer(f"finite scores of at most {MOST_SCORE:g}", f"{score} for {node}", steady)
    return scores


def _within_bounds(scores: Floats) -> Bools:
    """Where a score is a number and so small that the sum of many is one, too."""
    within: Bools = np.abs(scores) <= MOST_SCORE
    return within


def finished(score: NodeScore, task: Task, nodes: Nodes, raw: Column, candidates: Bools) -> Floats:
    """A plugin's scores normalised over the candidates, as `scored`."""
    if score.finish is None:
        return raw
    try:
        return _finite(score.finish(task, nodes, raw, read_only(candidates)), nodes)
    except BaseException as error:
        score.raise_attributed(error)


def _one_per_node(column: Any, nodes: Nodes) -> Column:
    if getattr(column, "shape", None) != (len(nodes),):
        got = f"{column!r:.60} for {len(nodes)} nodes"
        raise BadAnswer("a column of scores, one per node", got, f"a {type(column).__name__:.60}")
    scores: Column = column
    return scores


def _steps(nodes: int, at_once: int = MAX_STEPS_AT_ONCE) -> int:
    """How many steps ahead so many nodes are evaluated."""
    return max(2, min(MAX_STEPS, at_once // max(nodes, 1)))


class LookAhead:
    """What nodes will be worth, and whether a task will fit, with a few more tasks of the same shape on them."""

    __slots__ = ("later", "now", "scores")

    def __init__(self, nodes: int):
        self.now: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self.later: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self.scores: Floats = np.zeros((MAX_STEPS, nodes))

    def put(self, rows: Ints, ahead: int, now: Bools, later: Bools, scores: Floats) -> None:
        self.now[:ahead, rows] = now.reshape(ahead, len(rows))
        self.later[:ahead, rows] = later.reshape(ahead, len(rows))
        self.scores[:ahead, rows] = scores.reshape(ahead, len(rows))


class Evaluation:
    """One shape against all nodes, or some: where it fits now, where it will, and how good each node is.

    What it keeps by node has one place for each of those nodes; outside of it, nodes are known by their rows.
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
        self.shape = task.shape
        self.rows = rows
        """The nodes that are evaluated, ascending; none for all."""
        self.resource_fit = resource_fit
        self.filters = tuple(filters)
        self.scores = tuple(scores)
        self.now: Floats = np.zeros(0)
        """The score of every node the task fits on right now, -inf elsewhere (without volatile scores)."""
        self.later: Floats = np.zeros(0)
        """The same for nodes it fits on once what is leaving has left."""
        self._static_filters = [filter for filter in filters if filter.reads == "static"]
        self._usage_filters = [filter for filter in filters if filter.reads == "usage"]
        self._watched = [filter for filter in filters if filter.reads not in ("static", "usage")]
        self._steady = [
            score for score in scores if score.finish is None and score.reads in ("static", "usage")
        ]
        self._raw = [score for score in scores if score not in self._steady]
        functions: list[NodeFilter | NodeScore] = [*filters, *scores]
        self.is_repeatable = all(function.reads not in ("clock", "external") for function in functions)
        """Whether its answers follow from the cluster alone."""
        self._layout = self._objects = self._clock = -1
        self._verdict: tuple[Any, Verdict] | None = None
        self._reach: tuple[Any, Bools] | None = None
        self._follows_numbers: bool | None = None

    @property
    def allowed(self) -> Bools:
        """Where all filters let the shape in that look at nothing but the node object."""
        return self._allowed

    # -- nodes by their places

    def _pick(self, column: Column) -> Column:
        """Of a column over all nodes, the part that is evaluated."""
        return column if self.rows is None else column[self.rows]

    def _pick_passing(self, passing: Passing) -> Passing:
        later = self._pick(passing.later)
        return Passing(later if passing.now is passing.later else self._pick(passing.now), later)

    def _row(self, place: int) -> int:
        return place if self.rows is None else int(self.rows[place])

    def _place(self, row: int) -> int:
        """The place of a node; -1 if it is not among those that are evaluated."""
        if self.rows is None:
            return row
        place = int(self.rows.searchsorted(row))
        return place if place < len(self.rows) and self.rows[place] == row else -1

    # -- following changes

    def refresh(self, task: Task, cycle: int) -> None:
        """Evaluate again what depends on node objects, other pods or time, where those changed."""
        columns = self.columns
        if columns.layout != self._layout or columns.objects != self._objects:
            self._start(task)
        if self._watched or self._raw:
            self._refresh_watched(task, cycle)

    def catch_up(self, task: Task) -> None:
        """Bring scores and fits up to date with all nodes."""
        if self.columns.clock != self._clock:
            self._catch_up(task)
            self._clock = self.columns.clock

    def _start(self, task: Task) -> None:
        columns = self.columns
        count = len(columns) if self.rows is None else len(self.rows)
        self._layout = -1  # should a plugin raise here, the next call starts afresh
        everything = Nodes(columns, self.rows)
        self._allowed = everything.all()
        for filter in self._static_filters:
            self._allowed &= passes(filter, task, everything).later
        self._static = {
            id(score): scored(score, task, everything) * score.weight
            for score in self._steady
            if score.reads == "static"
        }
        self._look_ahead: LookAhead | None = None
        self._step = np.zeros(count, dtype=np.int64)
        self._ahead = np.zeros(count, dtype=np.int64)
        self._placements = 0
        self._mine = False
        self._scores = np.zeros(count)
        self.now = np.full(count, NEVER)
        self.later = np.full(count, NEVER)
        self._versions: dict[int, Any] = {}
        self._columns: dict[int, Column] = {}
        self._passing: dict[int, Passing] = {}
        self._volatile: list[NodeScore] = []
        self._groups: dict[int, tuple[Column, Bools, Column]] = {}
        self._verdict = self._reach = None
        self._follows_numbers = None
        allowed = np.flatnonzero(self._allowed)
        self._evaluate(task, allowed, 1 if self.rows is None else _steps(len(allowed), FEW_AT_ONCE))
        self._layout, self._objects, self._clock = columns.layout, columns.objects, columns.clock

    def _catch_up(self, task: Task) -> None:
        """Evaluate the nodes that changed: ahead where this shape is placed again and again, else just as they are."""
        columns = self.columns
        row, shape = columns.last
        place = self._place(row)
        mine = columns.clock == self._clock + 1 and shape is self.shape and place >= 0
        steady, self._mine = mine or self._mine, mine
        if mine and self._step[place] + 1 < self._ahead[place]:
            self._advance(place)
            return
        self._placements += mine
        if mine and self._placements == BUSY_AFTER:
            changed = np.flatnonzero(self._allowed)
        else:
            changed = np.flatnonzero((self._pick(columns.version) > self._clock) & self._allowed)
        if len(changed):
            self._evaluate(task, changed, _steps(len(changed)) if steady or self.rows is not None else 1)

    def _evaluate(self, task: Task, places: Ints, ahead: int) -> None:
        """Evaluate some nodes afresh, some steps ahead."""
        rows = places if self.rows is None else self.rows[places]
        nodes = Nodes(self.columns, rows, self.shape, ahead)
        now, later = self._fitting(task, nodes)
        score = self._steady_score(task, nodes, places, ahead)
        count = len(places)
        self.now[places] = np.where(now[:count], score[:count], NEVER)
        self.later[places] = np.where(later[:count], score[:count], NEVER)
        self._scores[places] = score[:count]
        self._step[places] = 0
        self._ahead[places] = ahead
        if ahead > 1:
            if self._look_ahead is None:
                self._look_ahead = LookAhead(len(self._scores))
            self._look_ahead.put(places, ahead, now, later, score)

    def _fitting(self, task: Task, nodes: Nodes) -> tuple[Bools, Bools]:
        """Where a task fits now, and where it will, as far as the numbers of each node tell."""
        if self.resource_fit:
            later = fits(task, nodes.future_idle)
            now = later & fits(task, nodes.idle)
        else:
            now, later = nodes.all(), nodes.all()
        for filter in self._usage_filters:
            passing = passes(filter, task, nodes)
            now &= passing.now
            later &= passing.later
        return now, later

    def _boards(self, task: Task, own: OwnRoom | None) -> tuple[Floats, Floats]:
        """The scores where a task fits now, and where it will; it may use the room that is reserved for it."""
        place = -1 if own is None else self._place(own.row)
        if own is None or place < 0 or not self._allowed[place]:
            return self.now, self.later
        now, later, score = self.now.copy(), self.later.copy(), self._scores[place]
        fits_now, fits_later = self._fits_on(task, own.row, own)
        now[place] = score if fits_now else NEVER
        later[place] = score if fits_later else NEVER
        return now, later

    def _fits_on(self, task: Task, row: int, own: OwnRoom | None) -> tuple[bool, bool]:
        """As `_fitting` for one node, where a task may use the room that is reserved for it."""
        nodes = Nodes(self.columns, np.array([row]), own=own)
        if self.resource_fit and not _fits_into(task, nodes.future_idle[:, 0]):
            return False, False
        passing = [passes(filter, task, nodes) for filter in self._usage_filters]
        if not all(passed.later[0] for passed in passing):
            return False, False
        fits_now = not self.resource_fit or _fits_into(task, nodes.idle[:, 0])
        return fits_now and all(bool(passed.now[0]) for passed in passing), True

    def _steady_score(self, task: Task, nodes: Nodes, places: Ints, ahead: int) -> Floats:
        """Scores that need no normalisation, added as Volcano adds them: one by one, then the batch."""
        single, batch = nodes.zeros(), nodes.zeros()
        try:
            for score in self._steady:
                if score.reads == "static":
                    part = self._static[id(score)][places]
                    part = np.tile(part, ahead) if ahead > 1 else part
                else:
                    part = _one_per_node(score.score(task, nodes), nodes)
                total = batch if score.batch else single
                total += part * score.weight if score.weight != 1 and score.reads != "static" else part
        except BaseException as error:
            score.raise_attributed(error)
        single += batch
        if not _within_bounds(single).all():
            for score in self._steady:
                scored(score, task, nodes)  # finds out whose scores are no numbers
        return single

    def _advance(self, place: int) -> None:
        """One more task of this very shape went there: its next step is known."""
        if self._look_ahead is not None:
            step = self._step[place] = self._step[place] + 1
            score = self._scores[place] = self._look_ahead.scores[step, place]
            self.now[place] = score if self._look_ahead.now[step, place] else NEVER
            self.later[place] = score if self._look_ahead.later[step, place] else NEVER

    # -- what depends on other pods, on time or on the group of candidates

    def _refresh_watched(self, task: Task, cycle: int) -> None:
        watched: list[NodeFilter | NodeScore] = [*self._watched, *self._raw]
        for function in watched:
            version = self._version(function, task, cycle)
            if version is None or self._versions.get(id(function), self) != version:
                if isinstance(function, NodeFilter):
                    self._passing[id(function)] = self._pick_passing(
                        passes(function, task, Nodes(self.columns))
                    )
                else:
                    nodes = Nodes(self.columns, self._rows_for(function))
                    self._columns[id(function)] = read_only(scored(function, task, nodes))
                self._versions[id(function)] = version
                self._volatile = [score for score in self._raw if self._differs(score)]

    def _differs(self, score: NodeScore) -> bool:
        """Whether a score can change the choice: not where it is the same on all nodes."""
        raw = self._columns.get(id(score))
        return raw is not None and len(raw) > 0 and bool((raw != raw[0]).any())

    def _rows_for(self, score: NodeScore) -> Ints | None:
        """The nodes that a score is asked about: all, unless it may be asked about some."""
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
        self, task: Task, groups: Sequence[Bools | None] = (None,), own: OwnRoom | None = None
    ) -> tuple[int, bool, Bools | None]:
        """The best node by row (-1: none), whether the task fits there right now, and of which group it is.

        Of groups that are tried one after the other, any with room now goes before any with room to come.
        """
        self.catch_up(task)
        for board, fits_now in zip(self._boards(task, own), (True, False), strict=True):
            for within in groups:
                place = self._best_of(task, board, within, fits_now)
                if place >= 0:
                    return self._row(place), fits_now, within
        return -1, False, None

    def group(
        self, task: Task, now: bool, within: Bools | None = None, own: OwnRoom | None = None
    ) -> dict[int, float]:
        """The candidates of the moment by row, with their scores: those with room now, or those with room to come."""
        self.catch_up(task)
        board = self._final(task, self._boards(task, own)[0 if now else 1], within, now)
        return {self._row(place): float(board[place]) for place in np.flatnonzero(board > NEVER).tolist()}

    def _best_of(self, task: Task, board: Floats, within: Bools | None, now: bool) -> int:
        if not len(board):
            return -1
        board = self._final(task, board, within, now)
        place = int(board.argmax())
        return place if board[place] > NEVER else -1

    def _final(self, task: Task, board: Floats, within: Bools | None, now: bool) -> Floats:
        if not (self._watched or self._volatile or within is not None):
            return board
        candidates = board > NEVER
        if within is not None:
            candidates &= self._pick(within)
        for filter in self._watched:
            passing = self._passing[id(filter)]
            candidates &= passing.now if now else passing.later
        final = np.where(candidates, board, NEVER) if self._watched or within is not None else board
        if self._volatile and candidates.any():
            for score in self._volatile:
                final = final + self._finished(score, task, candidates)
        return final

    def _finished(self, score: NodeScore, task: Task, candidates: Bools) -> Column:
        """A score normalised over these candidates; mostly the same as in the last call."""
        raw, rows = self._columns[id(score)], self._rows_for(score)
        whole = self.rows is not None and rows is None
        if score.finish is None:
            return (self._pick(raw) if whole else raw) * score.weight
        known = self._groups.get(id(score))
        if known is None or known[0] is not raw or not np.array_equal(known[1], candidates):
            asked = self._among_all(candidates) if whole else candidates
            final = finished(score, task, Nodes(self.columns, rows), raw, asked)
            known = (raw, candidates, (self._pick(final) if whole else final) * score.weight)
            self._groups[id(score)] = known
        return known[2]

    def _among_all(self, places: Bools) -> Bools:
        """A choice of the nodes that are evaluated, as one of all nodes."""
        chosen = np.zeros(len(self.columns), dtype=bool)
        chosen[self.rows] = places
        return chosen

    # -- for actions that evict: nodes on which the task does not fit yet (of an evaluation of all nodes)

    def reachable(self, task: Task) -> Bools:
        """Nodes on which nothing but what an eviction may cure keeps the task out."""
        state = (self._moment(task), [self._versions.get(id(filter)) for filter in self._watched])
        if self._reach is None or self._reach[0] != state or None in state[1]:
            hopeless = explain(Nodes(self.columns), task, self.filters, False, None).hopeless
            self._reach = (state, ~hopeless if hopeless is not None else Nodes(self.columns).all())
        return self._reach[1]

    def _moment(self, task: Task) -> int:
        """Of which numbers the reach is: of any, where one plugin filters and eviction cures all that they cause."""
        if self._follows_numbers is None:
            nodes = Nodes(self.columns)
            self._follows_numbers = len({filter.plugin for filter in self.filters}) > 1 or any(
                not check.curable for filter in self._usage_filters for check in checked(filter, task, nodes)
            )
        return self.columns.clock if self._follows_numbers else 0

    def ranked(self, task: Task, candidates: Bools) -> Iterator[int]:
        """Nodes by score, the best first, whether the task fits there or not."""
        if not candidates.any():
            return
        self.catch_up(task)
        board = np.where(candidates, self._scores, NEVER)
        for score in self._volatile:
            board = board + self._finished(score, task, candidates)
        best = int(board.argmax())
        yield best
        rows = np.flatnonzero(candidates)
        for row in rows[np.argsort(-board[rows], kind="stable")].tolist():
            if row != best:
                yield row

    def admits(self, task: Task, row: int, own: OwnRoom | None = None) -> bool:
        """Whether every filter lets the task onto one node, and it fits there once what is leaving has left."""
        if not self._allowed[row] or self.is_filtered(row):
            return False
        return self._fits_on(task, row, own)[1]

    def is_filtered(self, row: int) -> bool:
        """Whether a filter refuses one node that looks at more than its object and its numbers."""
        return not all(self._passing[id(filter)].later[row] for filter in self._watched)

    # -- explaining

    def verdict(self, task: Task, within: Bools | None = None, own: OwnRoom | None = None) -> Verdict:
        """Why no node takes the task, counted over all nodes that are evaluated (or those within)."""
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
