"""Where a pod may run: affinities, tolerations and topology spread constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api import names
from stromboli.api.name_rules import label_value_errors, qualified_name_errors
from stromboli.api.schemas.metadata_rules import label_problems
from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required
from stromboli.api.types.pod import PREFERRED, REQUIRED

Content = dict[str, Any]

_LABEL_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")


def placement_problems(spec: Content, path: str) -> Iterator[Problem]:
    """What is wrong with the placement constraints of a pod whose types are right."""
    if selector := spec.get("nodeSelector"):
        yield from label_problems(selector, f"{path}.nodeSelector")
    if affinity := spec.get("affinity"):
        yield from _node_affinity(affinity.get("nodeAffinity") or {}, f"{path}.affinity.nodeAffinity")
        for kind in ("podAffinity", "podAntiAffinity"):
            yield from _pod_affinity(affinity.get(kind) or {}, f"{path}.affinity.{kind}")
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{index}]")
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread_constraint(constraint, f"{path}.topologySpreadConstraints[{index}]")


def _node_affinity(affinity: Content, path: str) -> Iterator[Problem]:
    for index, term in enumerate((affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from _node_term(term, f"{path}.{REQUIRED}.nodeSelectorTerms[{index}]")
    for index, preference in enumerate(affinity.get(PREFERRED) or ()):
        yield from _weight(preference, f"{path}.{PREFERRED}[{index}]")
        yield from _node_term(preference.get("preference") or {}, f"{path}.{PREFERRED}[{index}].preference")


def node_selector_problems(selector: Content, path: str) -> Iterator[Problem]:
    """Of the nodes that a volume or a device can be used from."""
    terms, path = selector["nodeSelectorTerms"], f"{path}.nodeSelectorTerms"
    if not terms:
        yield required(path, "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}[{index}]")
        for number, requirement in enumerate(term.get("matchExpressions") or ()):
            for position, value in enumerate(requirement.get("values") or ()):
                for error in label_value_errors(value):
                    yield invalid(
                        f"{path}[{index}].matchExpressions[{number}].values[{position}]", value, error
                    )
        for number, requirement in enumerate(term.get("matchFields") or ()):
            yield from _field_requirement(requirement, f"{path}[{index}].matchFields[{number}]")


def _field_requirement(requirement: Content, path: str) -> Iterator[Problem]:
    operator, values = requirement.get("operator"), requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", detail)
    if requirement.get("key") != "metadata.name":
        yield invalid(f"{path}.key", requirement.get("key"), "not a valid field selector key")


def _node_term(term: Content, path: str) -> Iterator[Problem]:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        yield from _requirement(requirement, f"{path}.matchExpressions[{index}]")


def _requirement(requirement: Content, path: str) -> Iterator[Problem]:
    operator, count = requirement.get("operator"), len(requirement.get("values") or ())
    if operator in ("In", "NotIn") and not count:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and count:
        yield forbidden(
            f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    elif operator in ("Gt", "Lt") and count != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    yield from _label_name(requirement.get("key"), f"{path}.key")


def _pod_affinity(affinity: Content, path: str) -> Iterator[Problem]:
    for index, term in enumerate(affinity.get(REQUIRED) or ()):
        yield from _pod_term(term, f"{path}.{REQUIRED}[{index}]")
    for index, preference in enumerate(affinity.get(PREFERRED) or ()):
        yield from _weight(preference, f"{path}.{PREFERRED}[{index}]")
        yield from _pod_term(
            preference.get("podAffinityTerm") or {}, f"{path}.{PREFERRED}[{index}].podAffinityTerm"
        )


def _pod_term(term: Content, path: str) -> Iterator[Problem]:
    yield from _label_name(term.get("topologyKey"), f"{path}.topologyKey")
    for field in ("labelSelector", "namespaceSelector"):
        yield from _selector(term.get(field) or {}, f"{path}.{field}")


def _selector(selector: Content, path: str) -> Iterator[Problem]:
    if labels := selector.get("matchLabels"):
        yield from label_problems(labels, f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        inner = f"{path}.matchExpressions[{index}]"
        if requirement.get("operator") not in _LABEL_OPERATORS:
            yield invalid(f"{inner}.operator", requirement.get("operator"), "not a valid selector operator")
        yield from _requirement(requirement, inner)


def _weight(preference: Content, path: str) -> Iterator[Problem]:
    weight = preference.get("weight", 0)
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _toleration(toleration: Content, path: str) -> Iterator[Problem]:
    key, operator = toleration.get("key"), toleration.get("operator", "")
    yield from _label_name(key, f"{path}.key")
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, detail)
    effect = toleration.get("effect", "")
    if "tolerationSeconds" in toleration and effect != names.NO_EXECUTE:
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid(f"{path}.effect", effect, detail)
    value = toleration.get("value") or ""
    if operator == "Exists" and value:
        yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("", "Equal") and (errors := label_value_errors(value)):
        yield invalid(f"{path}.operator", value, ";".join(errors))


def _spread_constraint(constraint: Content, path: str) -> Iterator[Problem]:
    if constraint.get("maxSkew", 0) <= 0:
        yield invalid(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero")
    yield from _label_name(constraint.get("topologyKey"), f"{path}.topologyKey")
    if constraint.get("minDomains", 1) <= 0:
        yield invalid(f"{path}.minDomains", constraint["minDomains"], "must be greater than zero")
    yield from _selector(constraint.get("labelSelector") or {}, f"{path}.labelSelector")


def _label_name(text: str | None, path: str) -> Iterator[Problem]:
    """Problems of the key of a label; one that is missing is left to the schema."""
    for error in qualified_name_errors(text) if text else ():
        yield invalid(path, text, error)
