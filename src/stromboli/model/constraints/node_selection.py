"""Node selectors, node affinity and taints: evaluated once per label value or set of taints, not once per node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api import names
from stromboli.api.selectors import matches_node_term, tolerates, valid_node_term
from stromboli.api.types.node import Taint
from stromboli.api.types.pod import NodeSelectorTerm

if TYPE_CHECKING:
    from stromboli.api.types.meta import Requirement
    from stromboli.api.types.pod import NodeSelector, PodSpec, Toleration
    from stromboli.model.node_columns import Bools, Columns, Ints, Node
    from stromboli.model.task import Task


def selects_nodes(spec: PodSpec) -> bool:
    """Whether a pod has a node selector or required node affinity; an empty nodeSelector does not count."""
    return bool(spec.node_selector) or required_selector(spec) is not None


def required_selector(spec: PodSpec) -> NodeSelector | None:
    """The node affinity that a pod requires; none if it has none."""
    affinity = spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def matching_nodes(columns: Columns, spec: PodSpec) -> Bools:
    """Nodes that have every label of nodeSelector and match one term of the required node affinity."""
    matching = np.ones(len(columns), dtype=bool)
    for key, value in (spec.node_selector or {}).items():
        codes, values = columns.label_codes(key)
        matching &= codes == values.get(value, len(values))
    required = required_selector(spec)
    return matching if required is None else matching & matching_selector(columns, required)


def matching_selector(columns: Columns, selector: NodeSelector) -> Bools:
    """Nodes that match one term of a selector."""
    matching = np.zeros(len(columns), dtype=bool)
    for term in selector.node_selector_terms:
        matching |= matching_term(columns, term)
    return matching


def matching_term(columns: Columns, term: NodeSelectorTerm) -> Bools:
    """Nodes on which all requirements of a term hold; none for a term that is empty or invalid."""
    empty = not term.match_expressions and not term.match_fields
    if empty or not valid_node_term(term):
        return np.zeros(len(columns), dtype=bool)
    matching = np.ones(len(columns), dtype=bool)
    for requirement in term.match_expressions:
        matching &= _matching_labels(columns, requirement)
    for requirement in term.match_fields:
        matching &= _matching_name(columns, requirement)
    return matching


def _matching_labels(columns: Columns, requirement: Requirement) -> Bools:
    codes, values = columns.label_codes(requirement.key)
    match requirement.operator:
        case "Exists":
            return codes >= 0
        case "DoesNotExist":
            return codes < 0
        case "In" | "NotIn":
            listed = np.zeros(len(values) + 1, dtype=bool)  # the last entry is for nodes without the label
            listed[[values[value] for value in requirement.values if value in values]] = True
        case _:
            term = NodeSelectorTerm(match_expressions=(requirement,))
            matches = [matches_node_term(term, {requirement.key: value}, "") for value in values]
            listed = np.array([*matches, False])
    matching: Bools = listed[codes]
    return ~matching if requirement.operator == "NotIn" else matching


def _matching_name(columns: Columns, requirement: Requirement) -> Bools:
    matching = np.zeros(len(columns), dtype=bool)
    row = columns.derived(_rows_by_name).get(requirement.values[0])
    if row is not None:
        matching[row] = True
    return ~matching if requirement.operator == "NotIn" else matching


def _rows_by_name(columns: Columns) -> dict[str, int]:
    return {node.name: row for row, node in enumerate(columns.nodes)}


def selection_remedy(task: Task) -> str:
    """What would help a task whose node selector or node affinity no node matches."""
    selector = task.shape.spec.node_selector
    if selector:
        labels = ", ".join(f"{key}={value}" for key, value in sorted(selector.items()))
        return f"label a node with {labels}, or change the pod's nodeSelector"
    return "no node matches its node affinity"


# -- taints and tolerations


Taints = tuple[Taint, ...]
_HARD_EFFECTS = (names.NO_SCHEDULE, names.NO_EXECUTE)
_CORDONED = Taint(key=names.TAINT_UNSCHEDULABLE, effect=names.NO_SCHEDULE)


def tolerable_nodes(columns: Columns, tolerations: Iterable[Toleration]) -> Bools:
    """Nodes without a NoSchedule or NoExecute taint that the pod does not tolerate."""
    tolerations = tuple(tolerations)

    def tolerated(taints: Taints) -> bool:
        return all(tolerates(tolerations, taint) for taint in taints if taint.effect in _HARD_EFFECTS)

    return _per_set(columns, tolerated) > 0


def untolerated_soft_taints(columns: Columns, tolerations: Iterable[Toleration]) -> Ints:
    """How many PreferNoSchedule taints of each node the pod does not tolerate."""
    soft = tuple(
        toleration for toleration in tolerations if toleration.effect in ("", names.PREFER_NO_SCHEDULE)
    )

    def count(taints: Taints) -> int:
        return sum(
            taint.effect == names.PREFER_NO_SCHEDULE and not tolerates(soft, taint) for taint in taints
        )

    return _per_set(columns, count)


def tolerates_cordon(tolerations: Iterable[Toleration]) -> bool:
    """Whether a pod may run on nodes that are marked unschedulable."""
    return tolerates(tolerations, _CORDONED)


def cordoned_nodes(columns: Columns) -> Bools:
    """Nodes that are marked unschedulable."""
    return columns.derived(_cordoned)


def open_nodes(columns: Columns, tolerations: Iterable[Toleration]) -> Bools:
    """Nodes that a pod with these tolerations may use: neither cordoned nor with a taint that it does not tolerate."""
    tolerations = tuple(tolerations)
    tolerable = tolerable_nodes(columns, tolerations)
    return tolerable if tolerates_cordon(tolerations) else tolerable & ~cordoned_nodes(columns)


def barred_nodes(columns: Columns) -> Mapping[str, Taints]:
    """The taints that keep pods without tolerations off nodes, a cordon included, by the names of these nodes."""
    return columns.derived(_barred)


def _barred(columns: Columns) -> dict[str, Taints]:
    barred = {}
    for node, cordoned in zip(columns.nodes, cordoned_nodes(columns).tolist(), strict=True):
        hard = tuple(taint for taint in _taints(node) if taint.effect in _HARD_EFFECTS)
        if hard or cordoned:
            barred[node.name] = (*hard, _CORDONED) if cordoned else hard
    return barred


def _cordoned(columns: Columns) -> Bools:
    return np.array(
        [bool(node.object and node.object.spec.unschedulable) for node in columns.nodes], dtype=bool
    )


def _per_set(columns: Columns, value: Callable[[Taints], int]) -> Ints:
    """One number per node, from one number per distinct set of taints."""
    codes, sets = columns.derived(_taint_sets)
    column: Ints = np.array([value(taints) for taints in sets], dtype=np.int64)[codes]
    return column


def _taint_sets(columns: Columns) -> tuple[Ints, list[Taints]]:
    known: dict[Taints, int] = {}
    codes = np.fromiter(
        (known.setdefault(_taints(node), len(known)) for node in columns.nodes),
        dtype=np.int64,
        count=len(columns),
    )
    return codes, list(known)


def _taints(node: Node) -> Taints:
    return node.object.spec.taints if node.object else ()
