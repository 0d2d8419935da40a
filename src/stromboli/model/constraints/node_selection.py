"""Which nodes a pod asks for by label and name: selectors evaluated over distinct values, not over nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.selectors import matches_node_term, valid_node_term
from stromboli.api.types.pod import NodeSelectorTerm

if TYPE_CHECKING:
    from stromboli.api.types.meta import Requirement
    from stromboli.api.types.pod import NodeSelector, PodSpec
    from stromboli.model.cluster import Cluster
    from stromboli.model.node_columns import Bools, Columns


def selects_nodes(spec: PodSpec) -> bool:
    """Whether a pod asks for certain nodes at all; an empty nodeSelector does not."""
    return bool(spec.node_selector) or required_selector(spec) is not None


def required_selector(spec: PodSpec) -> NodeSelector | None:
    """The node affinity that a pod requires, if any."""
    affinity = spec.affinity
    return affinity.node_affinity.required if affinity and affinity.node_affinity else None


def wanted_nodes(cluster: Cluster, spec: PodSpec) -> Bools:
    """Nodes that carry every pair of nodeSelector and match one term of the required node affinity."""
    columns = cluster.columns
    wanted = np.ones(len(columns), dtype=bool)
    for key, value in (spec.node_selector or {}).items():
        codes, values = columns.label_codes(key)
        wanted &= codes == values.get(value, len(values))
    required = required_selector(spec)
    if required is not None:
        alternatives = np.zeros(len(columns), dtype=bool)
        for term in required.node_selector_terms:
            alternatives |= matching_term(cluster, term)
        wanted &= alternatives
    return wanted


def matching_term(cluster: Cluster, term: NodeSelectorTerm) -> Bools:
    """Nodes on which all requirements of a term hold; none for a term that is empty or invalid."""
    columns = cluster.columns
    empty = not term.match_expressions and not term.match_fields
    if empty or not valid_node_term(term):
        return np.zeros(len(columns), dtype=bool)
    matching = np.ones(len(columns), dtype=bool)
    for requirement in term.match_expressions:
        matching &= _matching_labels(columns, requirement)
    for requirement in term.match_fields:
        matching &= _matching_name(cluster, requirement)
    return matching


def _matching_labels(columns: Columns, requirement: Requirement) -> Bools:
    codes, values = columns.label_codes(requirement.key)
    match requirement.operator:
        case "Exists":
            return codes >= 0
        case "DoesNotExist":
            return codes < 0
        case "In" | "NotIn":
            listed = np.zeros(len(values) + 1, dtype=bool)  # the last place is for nodes without the label
            listed[[values[value] for value in requirement.values if value in values]] = True
        case _:
            term = NodeSelectorTerm(match_expressions=(requirement,))
            held = [matches_node_term(term, {requirement.key: value}, "") for value in values]
            listed = np.array([*held, False])
    found: Bools = listed[codes]
    return ~found if requirement.operator == "NotIn" else found


def _matching_name(cluster: Cluster, requirement: Requirement) -> Bools:
    matching = np.zeros(len(cluster.columns), dtype=bool)
    node = cluster.nodes.get(requirement.values[0])
    if node is not None and node.row >= 0:
        matching[node.row] = True
    return ~matching if requirement.operator == "NotIn" else matching
