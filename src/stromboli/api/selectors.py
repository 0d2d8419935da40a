"""Label selectors, node selectors and tolerations. An invalid requirement or term never matches."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from stromboli.api import names
from stromboli.api.resources.quantity import INT64_MAX, INT64_MIN
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.node import Taint
from stromboli.api.types.pod import NodeSelectorTerm, Toleration

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_NODE_OPERATORS = _LABEL_OPERATORS | {"Gt", "Lt"}


def matches_labels(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector matches nothing, an empty one everything."""
    if selector is None:
        return False
    if not selector.match_labels.items() <= labels.items():
        return False
    return not selector.match_expressions or all(
        valid_label_requirement(requirement) and _requirement_matches(requirement, labels)
        for requirement in selector.match_expressions
    )


def valid_label_requirement(requirement: Requirement) -> bool:
    """Whether a requirement of a label selector is well formed."""
    return requirement.operator in _LABEL_OPERATORS and _valid(requirement)


def matches_node_term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Whether all requirements hold; a term without any matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_requirement_matches(requirement, labels) for requirement in term.match_expressions) and all(
        _field_matches(requirement, name) for requirement in term.match_fields
    )


def valid_node_term(term: NodeSelectorTerm) -> bool:
    """Whether every requirement of the term is well formed."""
    return all(_valid(requirement) for requirement in term.match_expressions) and all(
        _valid_field(requirement) for requirement in term.match_fields
    )


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether some toleration tolerates the taint."""
    return any(_tolerated(toleration, taint) for toleration in tolerations)


def _tolerated(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _requirement_matches(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    if not _valid(requirement):
        return False
    label = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return label is not None and label in requirement.values
        case "NotIn":
            return label is None or label not in requirement.values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
        case "Gt":
            return (number := _int64(label)) is not None and number > int(requirement.values[0])
        case _:
            return (number := _int64(label)) is not None and number < int(requirement.values[0])


@lru_cache(maxsize=4096)
def _valid(requirement: Requirement) -> bool:
    if not requirement.key or requirement.operator not in _NODE_OPERATORS:
        return False
    match requirement.operator:
        case "In" | "NotIn":
            return bool(requirement.values)
        case "Exists" | "DoesNotExist":
            return not requirement.values
        case _:
            return len(requirement.values) == 1 and _int64(requirement.values[0]) is not None


def _field_matches(requirement: Requirement, name: str) -> bool:
    if not _valid_field(requirement):
        return False
    return (requirement.values[0] == name) == (requirement.operator == "In")


def _valid_field(requirement: Requirement) -> bool:
    return (
        requirement.key == names.NODE_NAME_FIELD
        and requirement.operator in ("In", "NotIn")
        and len(requirement.values) == 1
    )


def _int64(text: str | None) -> int | None:
    if text is None or _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None
