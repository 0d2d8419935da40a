"""Filters and scores of one shape of task that read node objects and node numbers alone.

All nodes are evaluated once, as arrays. Later, only nodes that changed are evaluated again, in one of three ways:
by a look-up, if one more task of this shape was placed on a node that was evaluated ahead (`LookAhead`); by a compiled
program, if few nodes changed (`node_program.py`); else as arrays. The naive evaluator in the tests is the oracle.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.attribution import take_attribution
from stromboli.engine.placement.node_fit import fits, fits_into
from stromboli.engine.placement.node_functions import (
    MAX_SCORE,
    Bools,
    Column,
    Floats,
    NodeFilter,
    Nodes,
    NodeScore,
    one_per_node,
    passes,
    scored,
    within_bounds,
)
from stromboli.engine.placement.node_program import Program, RecordedNodes, Recorder

if TYPE_CHECKING:
    from stromboli.model.node_columns import Columns, Ints
    from stromboli.model.reservations import OwnReservation
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task

log = logging.getLogger(__name__)

BUSY_AFTER = 8
"""Consecutive placements of a shape after which all nodes are evaluated ahead for it."""
AGAIN_AFTER, STEPS_PER_PLACEMENT = 64, 16
"""They are evaluated again after this many placements beyond these steps, or one per so many steps if that is more."""
FEW = 64
"""Nodes that are evaluated one by one, at most."""
COMPILED_AFTER = 32
"""Evaluations of few nodes as arrays before a program is compiled, which costs about as much."""
NEVER = -np.inf
BASE_BYTES, NODE_BYTES, AHEAD_BYTES = 8192, 80, 176
"""Memory of an evaluation, more for each node, as measured, and more for each node that is evaluated ahead."""


class UsageEvaluation:
    """Filters and scores of a shape that read nodes alone, evaluated for all nodes, or some.

    Its columns have one place for each of those nodes. Callers know nodes by their rows.
    """

    def __init__(
        self,
        columns: Columns,
        shape: Shape,
        filters: Sequence[NodeFilter],
        scores: Sequence[NodeScore],
        resource_fit: bool,
        rows: Ints | None,
    ):
        self.columns = columns
        self.rows = rows
        """The nodes that are evaluated, ascending; none for all."""
        self._shape = shape
        self._resource_fit = resource_fit
        self._static_filters = [filter for filter in filters if filter.reads == "static"]
        self.usage_filters = [filter for filter in filters if filter.reads == "usage"]
        self._functions = scores
        self.now: Floats = np.zeros(0)
        """The score of every node on which the task fits now, -inf elsewhere."""
        self.later: Floats = np.zeros(0)
        """The same for nodes on which it fits once leaving tasks have left."""
        self.allowed: Bools = np.zeros(0, dtype=bool)
        """The nodes that pass all filters that read the node object alone."""
        self.scores: Floats = np.zeros(0)
        """The score of every allowed node, whether the task fits there or not."""
        self.changed: list[int] | None = None
        """The places that changed since the reader cleared the list; none: many or unknown places changed."""
        self.bytes = 0
        """Roughly the memory that the whole evaluation takes."""
        self._look_ahead: LookAhead | None = None
        self._clock = self._position = 0

    # -- nodes by their places

    def pick(self, column: Column) -> Column:
        """The part of a column over all nodes that is evaluated."""
        return column if self.rows is None else column[self.rows]

    def row(self, place: int) -> int:
        return place if self.rows is None else int(self.rows[place])

    def place(self, row: int) -> int:
        """The place of a node; -1 if it is not among those that are evaluated."""
        if self.rows is None:
            return row
        place = int(self.rows.searchsorted(row))
        return place if place < len(self.rows) and self.rows[place] == row else -1

    # -- following changes

    def start(self, task: Task) -> None:
        """Evaluate all nodes: node objects changed."""
        columns = self.columns
        everything = Nodes(columns, self.rows)
        self.allowed = everything.all()
        for filter in self._static_filters:
            self.allowed &= passes(filter, task, everything).later
        self._is_allowed = self.allowed.tobytes()
        self._static = {
            id(score): scored(score, task, everything) * score.weight
            for score in self._functions
            if score.reads == "static"
        }
        count = len(self.allowed)
        self.bytes = BASE_BYTES + NODE_BYTES * count
        self._look_ahead = None
        self._program: Program | None = None
        self._may_compile = True
        self._few_evaluated = self._placements = 0
        self._busy_after = BUSY_AFTER
        self._mine = False
        self.changed = None
        self.scores = np.zeros(count)
        self.now = np.full(count, NEVER)
        self.later = np.full(count, NEVER)
        allowed = np.flatnonzero(self.allowed)
        self._evaluate(task, allowed, 1 if self.rows is None else steps_ahead(len(allowed), FEW_AT_ONCE))
        self._clock, self._position = columns.clock, columns.changes.position

    def catch_up(self, task: Task) -> None:
        """Bring scores and fits up to date with all nodes."""
        columns, changes = self.columns, self.columns.changes
        if changes.position == self._position:
            return
        row, shape = columns.last
        alone = changes.position == self._position + 1
        mine = shape is self._shape and alone and (place := self.place(row)) >= 0
        steady, self._mine = mine or self._mine, mine
        known = self._look_ahead.advance(place) if mine and self._look_ahead is not None else None
        if known is not None:
            self._put(place, *known)
        else:
            self._placements += mine
            if mine and self._placements == self._busy_after:
                self._evaluate_ahead(task)
            else:
                self._follow(task, steady)
        if self.changed is not None and len(self.changed) > FEW:
            self.changed = None
        self._clock, self._position = changes.generation, changes.position

    def _put(self, place: int, now: bool, later: bool, score: float) -> None:
        self.scores[place] = score
        self.later[place] = score if later else NEVER
        self.now[place] = score if now else NEVER
        if self.changed is not None:
            self.changed.append(place)

    def _evaluate_ahead(self, task: Task) -> None:
        """Evaluate all nodes some steps ahead, and again once enough placements exceeded these steps."""
        places = np.flatnonzero(self.allowed)
        steps = steps_ahead(len(places))
        self._evaluate(task, places, steps)
        self._placements = 0
        self._busy_after = max(AGAIN_AFTER, len(places) * steps // STEPS_PER_PLACEMENT)

    def _follow(self, task: Task, steady: bool) -> None:
        """Evaluate the nodes that changed: ahead if this shape is placed repeatedly, else only as they are."""
        if self._program is not None and self._follow_few(self._program):
            return
        changed = np.flatnonzero((self.pick(self.columns.version) > self._clock) & self.allowed)
        if len(changed):
            self._evaluate(task, changed, steps_ahead(len(changed)) if steady or self.rows is not None else 1)
        if 0 < len(changed) <= FEW and self._may_compile:
            self._few_evaluated += 1
            if self._few_evaluated == COMPILED_AFTER:
                self._compile(task, int(changed[0]))

    def _follow_few(self, program: Program) -> bool:
        """Evaluate nodes one by one; false if many changed, a number is too large, or a result is undefined."""
        changes = self.columns.changes
        rows = changes.since(self._position) if changes.position - self._position <= FEW else None
        if rows is None:
            return False
        allowed, numbers_of, look_ahead = self._is_allowed, self.columns.numbers, self._look_ahead
        for row in rows:
            place = row if self.rows is None else self.place(row)
            if place < 0 or not allowed[place]:
                continue
            numbers = numbers_of(row)
            if numbers is None:
                return False
            try:
                now, later, score = program(numbers, place)
            except (ArithmeticError, ValueError):
                return False
            if not -MAX_SCORE <= score <= MAX_SCORE:
                return False
            self._put(place, now, later, score)
            if look_ahead is not None:
                look_ahead.forget(place)
        return True

    def _compile(self, task: Task, place: int) -> None:
        """Compile all functions into one program, if they can be recorded and it agrees with arrays."""
        recorder = Recorder()
        self._may_compile = False
        try:
            with np.errstate(all="ignore"):
                nodes = RecordedNodes(recorder, self.columns, self.row(place))
                static = {id: recorder.static(column, place) for id, column in self._static.items()}
                program = recorder.program([*self._fitting(task, nodes), self._score(task, nodes, static)])
            if program is not None and self._agrees(program):
                self._program = program
        except Exception as error:  # a function may do anything with a column that is not an array
            take_attribution(error)
            log.debug("the filters and scores of %r cannot be compiled", self._shape, exc_info=True)

    def _agrees(self, program: Program) -> bool:
        """Whether a program and arrays agree on some nodes: not if a node function depends on anything else."""
        for place in np.flatnonzero(self.allowed)[:FEW].tolist():
            numbers = self.columns.numbers(self.row(place))
            if numbers is None:
                continue
            try:
                now, later, score = program(numbers, place)
            except (ArithmeticError, ValueError):
                continue  # such a node is evaluated as arrays
            fits = (self.now[place] > NEVER, self.later[place] > NEVER)
            if (now, later) != fits or score != self.scores[place]:
                return False
        return True

    def _evaluate(self, task: Task, places: Ints, ahead: int) -> None:
        """Evaluate some nodes again, some steps ahead."""
        nodes = Nodes(self.columns, places if self.rows is None else self.rows[places], self._shape, ahead)
        now, later = self._fitting(task, nodes)
        static = {id: _repeated(column[places], ahead) for id, column in self._static.items()}
        score = self._score(task, nodes, static)
        if not within_bounds(score):
            for function in self._functions:
                scored(function, task, nodes)  # raises the error of the plugin whose scores are not finite
        count = len(places)
        self.now[places] = np.where(now[:count], score[:count], NEVER)
        self.later[places] = np.where(later[:count], score[:count], NEVER)
        self.scores[places] = score[:count]
        if self.changed is not None:
            self.changed += places[: FEW + 1].tolist()
        if ahead > 1:
            if self._look_ahead is None:
                self._look_ahead = LookAhead(len(self.scores))
                self.bytes += AHEAD_BYTES * len(self.scores)
            self._look_ahead.put(places, ahead, now, later, score)
        elif self._look_ahead is not None:
            self._look_ahead.forget(places)

    # -- filters and scores

    def _fitting(self, task: Task, nodes: Any) -> tuple[Bools, Bools]:
        """Where a task fits now, and where it will, by the numbers of each node."""
        if self._resource_fit:
            later = fits(task, nodes.future_idle)
            now = later & fits(task, nodes.idle)
        else:
            now, later = nodes.all(), nodes.all()
        for filter in self.usage_filters:
            passing = passes(filter, task, nodes)
            now &= passing.now
            later &= passing.later
        return now, later

    def _score(self, task: Task, nodes: Any, static: dict[int, Any]) -> Floats:
        """Scores that need no normalisation, added as Volcano adds them: one by one, then the batch."""
        single: Floats = nodes.zeros()
        batch: Floats = nodes.zeros()
        try:
            for score in self._functions:
                total = batch if score.batch else single
                if score.reads == "static":
                    total += static[id(score)]
                else:
                    part = one_per_node(score.score(task, nodes), nodes)
                    total += part * score.weight if score.weight != 1 else part
        except BaseException as error:
            score.raise_attributed(error)
        single += batch
        return single

    def fits_on(self, task: Task, row: int, own: OwnReservation | None) -> tuple[bool, bool]:
        """Whether a task fits on one node now, and whether it will; it may use the resources reserved for it."""
        nodes = Nodes(self.columns, np.array([row]), own=own)
        if self._resource_fit and not fits_into(task, nodes.future_idle[:, 0]):
            return False, False
        passing = [passes(filter, task, nodes) for filter in self.usage_filters]
        if not all(passed.later[0] for passed in passing):
            return False, False
        fits_now = not self._resource_fit or fits_into(task, nodes.idle[:, 0])
        return fits_now and all(bool(passed.now[0]) for passed in passing), True


def _repeated(column: Floats, times: int) -> Floats:
    return column if times == 1 else np.tile(column, times)


# -- nodes with some more tasks of one shape


MAX_STEPS = 16
"""Maximum steps that nodes are evaluated ahead."""
MAX_STEPS_AT_ONCE = 32768
"""Steps times nodes that are evaluated together, if there are many nodes."""
FEW_AT_ONCE = 1024
"""The same for the nodes of a domain, which are evaluated because tasks are about to be placed there."""


def steps_ahead(nodes: int, at_once: int | None = None) -> int:
    """The number of steps that some nodes are evaluated ahead."""
    return max(2, min(MAX_STEPS, (at_once or MAX_STEPS_AT_ONCE) // max(nodes, 1)))


class LookAhead:
    """Scores of nodes, and whether a task fits, with a few more tasks of the same shape on them."""

    def __init__(self, nodes: int):
        self._now: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self._later: Bools = np.zeros((MAX_STEPS, nodes), dtype=bool)
        self._scores: Floats = np.zeros((MAX_STEPS, nodes))
        self._steps = np.zeros(nodes, dtype=np.int64)
        """Tasks placed on each node since it was evaluated."""
        self._ahead = np.zeros(nodes, dtype=np.int64)
        """Tasks for which it was evaluated; 0: something else changed on it since."""

    def put(self, places: Ints, ahead: int, now: Bools, later: Bools, scores: Floats) -> None:
        """Store nodes as they are and for the steps that follow; one after the other in each column."""
        self._now[:ahead, places] = now.reshape(ahead, len(places))
        self._later[:ahead, places] = later.reshape(ahead, len(places))
        self._scores[:ahead, places] = scores.reshape(ahead, len(places))
        self._steps[places] = 0
        self._ahead[places] = ahead

    def forget(self, place: int | Ints) -> None:
        """Forget some nodes: something else changed on them."""
        self._ahead[place] = 0

    def advance(self, place: int) -> tuple[bool, bool, float] | None:
        """A node with one more task, if known: whether the next task fits now, or later, and the score."""
        step = self._steps[place] + 1
        if step >= self._ahead[place]:
            return None
        self._steps[place] = step
        return self._now[step, place], self._later[step, place], self._scores[step, place]
