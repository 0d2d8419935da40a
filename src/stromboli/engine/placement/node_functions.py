"""Filters and scores as functions of nodes: given a task and a view of some nodes, one value per node.

A node function evaluates each node by itself. So the engine may call it for all nodes, for the two that changed, or for
nodes as they would be with a few more tasks of the same shape. It declares what it reads:

    static    the node object: labels, taints, sizes
    usage     that node's numbers in the view
    pods      other pods anywhere; recomputed if `version` changes (without one: whenever anything moved)
    clock     the session's time; recomputed every cycle
    external  anything else; never cached
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from stromboli.engine.attribution import raise_attributed
from stromboli.model.node_columns import (
    ALLOCATABLE,
    IDLE,
    PIPELINED,
    RELEASING,
    USED,
    VIEW_ALLOCATABLE,
    VIEW_USED,
    Ints,
    read_only,
)
from stromboli.model.remedy import NO_REMEDY, Remedy, RemedyText, remedy_of

if TYPE_CHECKING:
    from stromboli.model.node_columns import Columns, Node
    from stromboli.model.reservations import OwnReservation
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


Column = NDArray[Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
READS = ("static", "usage", "pods", "clock", "external")
F = TypeVar("F", bound=Callable[..., Any])


def reads(what: str) -> Callable[[F], F]:
    """Declare what a `filter_nodes` or `score_nodes` reads; without it, results are not cached."""
    if what not in READS:
        raise ValueError(f"reads({what!r}): expected one of {', '.join(READS)}")

    def mark(method: F) -> F:
        method.__reads__ = what  # type: ignore[attr-defined]
        return method

    return mark


class BadAnswer(ValueError):
    """A plugin's node function returned an invalid result."""

    def __init__(self, expected: str, got: str, steady: str = ""):
        super().__init__(f"expected {expected}, got {got}")
        self.summary = f"expected {expected}, got {steady or got}"
        """The same, short and equal in every cycle: without numbers that change."""


class _RefusalFields(NamedTuple):
    reason: str
    """The text for users, such as `node(s) had no fast disk`."""
    curable: bool = False
    """Whether evicting pods could change it."""
    plugin: str = ""
    """The plugin that refuses, as in the configuration file."""
    remedy: Remedy = NO_REMEDY
    """What would help the task: a text, a function of the task that makes one, or a `Remedy`."""
    code: str = ""
    """One word for programs, such as `Cordoned`."""


class Refusal(_RefusalFields):
    """Why a node is excluded: the text for users, whether evictions could help, and the remedy."""

    __slots__ = ()

    def __new__(
        cls,
        reason: str,
        curable: bool = False,
        plugin: str = "",
        remedy: RemedyText | Remedy = "",
        code: str = "",
        *,
        way_out: RemedyText = "",
    ) -> Refusal:
        return super().__new__(cls, reason, curable, plugin, remedy_of(remedy or way_out), code)


class _CheckFields(NamedTuple):
    passes: Column
    """True for each node that passes."""
    reason: str
    """The reason for users on all other nodes: `node(s) had no fast disk`."""
    curable: bool = False
    """Whether evicting pods could change it."""
    now: Column | None = None
    """Where it passes now, if on some nodes it passes only once tasks have left; none: where it passes."""
    remedy: Remedy = NO_REMEDY
    """What would help the task: a text, a function of the task that makes one, or a `Remedy`."""
    code: str = ""
    """One word for programs, such as `Cordoned`."""


class Check(_CheckFields):
    """One test over nodes: where it passes, and the reason and the remedy where it does not."""

    __slots__ = ()

    def __new__(
        cls,
        passes: Column,
        reason: str,
        curable: bool = False,
        now: Column | None = None,
        remedy: RemedyText | Remedy = "",
        code: str = "",
        *,
        way_out: RemedyText = "",
    ) -> Check:
        return super().__new__(cls, passes, reason, curable, now, remedy_of(remedy or way_out), code)


CORDONED, TAINTED, NOT_SELECTED = "Cordoned", "Tainted", "NotSelected"
"""Codes of checks that fail for what a node says of itself: `stromboli explain` tries to change that."""
_NO_MORE = Check(np.zeros(0, dtype=bool), "")
"""Marks the end of a filter's checks."""
Version = Callable[["Task"], Any]


@dataclass(frozen=True, slots=True)
class NodeFilter:
    """A filter, and what the engine must know to call it only when needed."""

    checks: Callable[[Task, Nodes], Iterable[Check]]
    """The filter itself: as `filter_nodes`."""
    plugin: str
    """The plugin's name, for reasons and errors."""
    reads: str = "external"
    """What it reads: as `@reads`."""
    version: Version | None = None
    """With `pods`: a value that changes whenever the result may."""

    def raise_attributed(self, error: BaseException) -> NoReturn:
        """Raise an error again, attributed to this filter's plugin."""
        raise_attributed(error, self.plugin, _simple_form(self.checks, "filter_nodes") or "node_filters")


Finish = Callable[["Task", "Nodes", Column, Column], Column]
"""Turns raw scores into final ones over the group of candidates: (task, nodes, raw, candidates) -> scores."""


@dataclass(frozen=True, slots=True)
class NodeScore:
    """A score, and what the engine must know to call it only when needed."""

    score: Callable[[Task, Nodes], Column]
    """The score itself: as `score_nodes`."""
    plugin: str
    """The plugin's name, for errors."""
    reads: str = "external"
    """What it reads: as `@reads`."""
    version: Version | None = None
    """With `pods`: a value that changes whenever the result may."""
    weight: float = 1.0
    """The factor by which each score is multiplied before it is added to others."""
    finish: Finish | None = None
    """Normalisation over the candidates; not called if all raw scores are equal."""
    of_some_nodes: bool = False
    """Whether it may be called for some nodes, such as those below one switch, if it reads `pods` or more.

    Otherwise `score` and `finish` are called for all nodes.
    """
    batch: bool = False
    """Whether it is added after all other scores: Volcano's order of addition, to the last bit."""

    def raise_attributed(self, error: BaseException) -> NoReturn:
        """Raise an error again, attributed to this score's plugin."""
        raise_attributed(error, self.plugin, _simple_form(self.score, "score_nodes") or "node_scores")


def checked(filter: NodeFilter, task: Task, nodes: Nodes) -> Iterator[Check]:
    """A filter's checks, one after the other; what it raises is attributed to its plugin."""
    checks: Iterator[Check] | None = None
    while True:
        try:
            checks = iter(filter.checks(task, nodes)) if checks is None else checks
            check = next(checks, _NO_MORE)
            if check is not _NO_MORE and not isinstance(check, Check):
                raise BadAnswer(
                    "`yield Check(passes, reason)`", f"{check!r:.60}", f"a {type(check).__name__:.60}"
                )
        except BaseException as error:
            filter.raise_attributed(error)
        if check is _NO_MORE:
            return
        yield check


def _simple_form(function: Callable[..., Any], name: str) -> str:
    """The name of a plugin's method, if the function is that method."""
    return name if getattr(function, "__name__", "") == name else ""


class Nodes:
    """Some nodes, side by side: the numbers node functions read, one place per node.

    With `steps` > 1 every node has several places: as it is, with one more task of the given shape, with two more, and
    so on. What is reserved for the task (`own`) is not counted as promised. A function that only reads these numbers
    can ignore both.
    """

    def __init__(
        self,
        columns: Columns,
        rows: Ints | None = None,
        shape: Shape | None = None,
        steps: int = 1,
        own: OwnReservation | None = None,
    ):
        self._columns = columns
        self._rows = rows
        self._shape = shape
        self._steps = steps
        self._own = own
        self._gather()

    @property
    def columns(self) -> Columns:
        """The columns of all nodes."""
        return self._columns

    def __len__(self) -> int:
        """How many places there are."""
        return (len(self._columns) if self._rows is None else len(self._rows)) * self._steps

    def zeros(self) -> NDArray[np.float64]:
        """An initial score: 0 for each node."""
        return np.zeros(len(self))

    def all(self) -> NDArray[np.bool_]:
        """An initial check: true for each node."""
        return np.ones(len(self), dtype=bool)

    def pick(self, column: Column) -> Column:
        """The part of a whole column (one value per node of the cluster) that belongs to these nodes."""
        part = column if self._rows is None else column[self._rows]
        return part if self._steps == 1 else np.tile(part, self._steps)

    def each(self, value: Callable[[Node], Any], dtype: Any = np.int64) -> Column:
        """One value per node from plain Python, given the `Node`: for what changes rarely (`@reads("static")`)."""
        nodes = self.columns.nodes
        chosen = nodes if self._rows is None else [nodes[row] for row in self._rows]
        column = np.array([value(node) for node in chosen], dtype=dtype)
        return column if self._steps == 1 else np.tile(column, self._steps)

    def name(self, place: int) -> str:
        """The name of the node at one of these places."""
        count = len(self) // self._steps
        row = place % count if self._rows is None else int(self._rows[place % count])
        return self.columns.nodes[row].name

    def label(self, key: str) -> tuple[Ints, dict[str, int]]:
        """The codes of one label's values (-1: no such label), and which value has which code."""
        codes, values = self.columns.label_codes(key)
        return self.pick(codes), values

    # -- numbers, one row per dimension

    @property
    def future_idle(self) -> Ints:
        """What will be free once releasing tasks have left and pipelined tasks have started."""
        return self.idle + self.releasing - self.pipelined

    def _gather(self) -> None:
        """Copy the numbers of these nodes, once per step, with what the steps add."""
        columns, rows, shape, steps = self._columns, self._rows, self._shape, self._steps
        amounts, views = columns.amounts, columns.views
        if rows is not None:
            amounts, views = amounts[:, :, rows], views[:, :, rows]
        elif self._own is not None:
            amounts = amounts.copy()
        if self._own is not None:
            here = [self._own.row] if rows is None else rows == self._own.row
            amounts[PIPELINED][:, here] -= self._own.amount[:, None]
        if steps > 1 and shape is not None:
            more = np.repeat(np.arange(steps), amounts.shape[2])
            amounts, views = np.tile(amounts, steps), np.tile(views, steps)
            asked = shape.dense(amounts.shape[1])[:, None] * more
            amounts[IDLE] -= asked
            amounts[USED] += asked
            views[VIEW_USED] += shape.view[:, None] * more
        amounts.flags.writeable = views.flags.writeable = False  # all plugins read the same numbers
        self.allocatable: Ints = amounts[ALLOCATABLE]
        """What the scheduler may allocate on each node: `nodes.allocatable[CPU]`."""
        self.used: Ints = amounts[USED]
        """What tasks on each node hold, including releasing tasks."""
        self.idle: Ints = amounts[IDLE]
        """What is free on each node now: allocatable less used."""
        self.releasing: Ints = amounts[RELEASING]
        """What releasing tasks on each node hold."""
        self.pipelined: Ints = amounts[PIPELINED]
        """What is promised to pipelined tasks on each node."""
        self.view: Ints = views[VIEW_USED]
        """The pod view: pods, nonzero cpu and memory, cpu, memory, gpu (rows VIEW_* of model.shape)."""
        self.view_allocatable: Ints = views[VIEW_ALLOCATABLE]
        """The node status in the rows of the pod view."""


# -- results of plugins, checked: one value per node, finite scores


MAX_SCORE = 1e100
"""The largest absolute value of a score."""


class Passing(NamedTuple):
    """Where a task passes all checks of a filter: now, and once leaving tasks have left."""

    now: Bools
    later: Bools


def passes(filter: NodeFilter, task: Task, nodes: Nodes) -> Passing:
    """Where a task passes all checks of a filter; one column for both times if no check distinguishes them."""
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
    scores = np.asarray(one_per_node(column, nodes), dtype=np.float64)
    if not within_bounds(scores):
        odd = int(np.flatnonzero(~(np.abs(scores) <= MAX_SCORE))[0])
        steady = "a larger number" if np.isfinite(scores[odd]) else str(scores[odd])
        got = f"{scores[odd]} for {nodes.name(odd)}"
        raise BadAnswer(f"finite scores of at most {MAX_SCORE:g}", got, steady)
    return scores


def within_bounds(scores: Floats) -> bool:
    """Whether all scores are finite, and small enough that the sum of many is finite, too."""
    return not len(scores) or bool(scores.min() >= -MAX_SCORE and scores.max() <= MAX_SCORE)


def finished(score: NodeScore, task: Task, nodes: Nodes, raw: Column, candidates: Bools) -> Floats:
    """A plugin's scores normalised over the candidates, as `scored`."""
    if score.finish is None:
        return raw
    try:
        return _finite(score.finish(task, nodes, raw, read_only(candidates)), nodes)
    except BaseException as error:
        score.raise_attributed(error)


def one_per_node(column: Any, nodes: Nodes) -> Column:
    if getattr(column, "shape", None) != (len(nodes),):
        got = f"{column!r:.60} for {len(nodes)} nodes"
        raise BadAnswer("a column of scores, one per node", got, f"a {type(column).__name__:.60}")
    scores: Column = column
    return scores
