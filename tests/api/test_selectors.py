"""Selectors and tolerations, row by row of the table that users rely on."""

import pytest

from stromboli.api.selectors import (
    matches_labels,
    matches_node_term,
    tolerates,
    valid_node_term,
)
from stromboli.api.types.meta import LabelSelector, Requirement
from stromboli.api.types.node import Taint
from stromboli.api.types.pod import NodeSelectorTerm, Toleration

LABELS = {"disk": "ssd", "cores": "16", "odd": "many"}


def needs(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def term(*expressions: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=expressions)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (needs("disk", "In", "hdd", "ssd"), True),
        (needs("disk", "In", "hdd"), False),
        (needs("gone", "In", "ssd"), False),
        (needs("disk", "NotIn", "hdd"), True),
        (needs("disk", "NotIn", "ssd"), False),
        (needs("gone", "NotIn", "ssd"), True),
        (needs("disk", "Exists"), True),
        (needs("gone", "Exists"), False),
        (needs("disk", "DoesNotExist"), False),
        (needs("gone", "DoesNotExist"), True),
        (needs("cores", "Gt", "15"), True),
        (needs("cores", "Gt", "16"), False),
        (needs("cores", "Lt", "17"), True),
        (needs("gone", "Gt", "1"), False),
        (needs("odd", "Gt", "1"), False),
        (needs("odd", "Lt", "1"), False),
    ],
)
def test_operators(requirement: Requirement, expected: bool) -> None:
    assert matches_node_term(term(requirement), LABELS, "n1") is expected


@pytest.mark.parametrize(
    "requirement",
    [
        needs("disk", "in", "ssd"),
        needs("gone", "NotIn"),
        needs("disk", "Exists", "ssd"),
        needs("cores", "Gt", "1", "2"),
        needs("cores", "Gt", "few"),
        needs("cores", "Lt", "99999999999999999999"),
        needs("", "DoesNotExist"),
    ],
)
def test_an_invalid_term_never_matches(requirement: Requirement) -> None:
    assert not valid_node_term(term(requirement))
    assert not matches_node_term(term(requirement), LABELS, "n1")


def test_fields_know_only_the_name_of_the_node() -> None:
    def fields(*requirements: Requirement) -> bool:
        return matches_node_term(NodeSelectorTerm(match_fields=requirements), LABELS, "n1")

    assert fields(needs("metadata.name", "In", "n1"))
    assert fields(needs("metadata.name", "NotIn", "n2"))
    assert not fields(needs("metadata.name", "In", "n2"))
    assert not fields(needs("metadata.name", "In", "n1", "n2"))
    assert not fields(needs("metadata.uid", "In", "n1"))
    assert not fields(needs("metadata.name", "Exists"))


def test_an_empty_node_term_matches_nothing() -> None:
    assert not matches_node_term(NodeSelectorTerm(), LABELS, "n1")


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not matches_labels(None, LABELS)
    assert matches_labels(LabelSelector(), {})


def test_labels_and_expressions_must_all_hold() -> None:
    selector = LabelSelector(match_labels={"disk": "ssd"}, match_expressions=(needs("cores", "Exists"),))
    assert matches_labels(selector, LABELS)
    assert not matches_labels(selector, {"disk": "ssd"})
    assert not matches_labels(selector, {"disk": "hdd", "cores": "1"})


def test_label_selectors_do_not_compare_numbers() -> None:
    assert not matches_labels(LabelSelector(match_expressions=(needs("cores", "Gt", "1"),)), LABELS)


TAINT = Taint(key="dedicated", value="batch", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="dedicated", value="batch", effect="NoSchedule"), True),
        (Toleration(key="dedicated", operator="Equal", value="batch"), True),
        (Toleration(key="dedicated", value="web"), False),
        (Toleration(key="dedicated", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(operator="Exists", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(key="dedicated", operator="Gt", value="batch"), False),
        (Toleration(), False),
    ],
)
def test_tolerations(toleration: Toleration, expected: bool) -> None:
    assert tolerates([toleration], TAINT) is expected


def test_an_empty_toleration_puts_up_with_any_taint_without_a_value() -> None:
    assert tolerates([Toleration()], Taint(key="anything", effect="NoExecute"))
    assert not tolerates([], TAINT)
