"""Node selectors and node affinity: evaluated once per distinct label value, not once per node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.selectors import matches_node_term, valid_node_term
from stromboli.api.types.pod import NodeSelectorTerm

if TYPE_CHECKING:
    from stromboli.api.types.meta import Requirement
    from stromboli.api.types.pod import NodeSelector, PodSpec
    from stromboli.model.node_columns import Bools, Columns
    from stromboli.model.task import Task


def selects_nodes(spec: PodSpec) -> bool:
    """Whether a pod has a node selector or required node affinity; an empty nodeSelector does not count."""
    return bool(spec.node_selector) or required_selector(spec) is not None


def required_selector(spec: PodSpec) -> NodeSelector | None:
    """The node affinity that a pod requires, if any."""
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
