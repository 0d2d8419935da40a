"""Results of plugins' filters and scores, checked: one value per node, finite numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

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
from stromboli.model.node_columns import read_only

if TYPE_CHECKING:
    from stromboli.model.task import Task

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
