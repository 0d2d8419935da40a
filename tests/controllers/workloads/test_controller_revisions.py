"""Which revision a template is, and what a revision looks like."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.controllers.workloads.controller_revisions import (
    new_revision,
    next_revision,
    oldest,
    ordered,
)
from tests.controllers.workloads.workload_objects import TEMPLATE, controller_revision, stateful_set

OTHER = {"spec": {"containers": []}}


@pytest.mark.parametrize(
    ("revisions", "number", "name", "renumbered"),
    [
        ([], 1, None, False),
        ([("a", 1, TEMPLATE)], 1, "a", False),
        ([("a", 1, OTHER)], 2, None, False),
        ([("a", 1, TEMPLATE), ("b", 2, OTHER)], 3, "a", True),
        ([("a", 1, OTHER), ("b", 5, TEMPLATE)], 5, "b", False),
        ([("a", 1, TEMPLATE), ("b", 2, TEMPLATE)], 2, "b", False),
        ([("a", 2, TEMPLATE), ("b", 2, OTHER)], 3, "a", True),
    ],
)
def test_a_template_has_the_newest_number(
    revisions: list[Any], number: int, name: str | None, renumbered: bool
) -> None:
    wanted = next_revision(stateful_set(), ordered(controller_revision(*each) for each in revisions))
    found = wanted.revision.name if wanted.revision is not None else None
    assert (wanted.number, found, wanted.renumbered) == (number, name, renumbered)


def test_equal_revisions_are_duplicates_of_the_newest() -> None:
    equal = [controller_revision("a", 1), controller_revision("b", 2)]
    assert [each.name for each in next_revision(stateful_set(), equal).duplicates] == ["a"]


def test_a_revision_has_another_name_after_a_collision_and_the_same_template() -> None:
    owner = stateful_set()
    first, second = (new_revision(owner, 3, collisions, "hash") for collisions in (0, 1))
    assert first == new_revision(owner, 3, 0, "hash")
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["name"] == f"web-{first['metadata']['labels']['hash']}"
    assert first["data"] == second["data"]
    assert list(first["data"]["spec"]["template"]) == ["$patch", "metadata", "spec"]


def test_what_is_no_template_is_an_empty_one() -> None:
    revision = controller_revision("a", 1)
    assert revision.template == TEMPLATE
    for data in (None, "text", {"spec": 1}, {"spec": {"template": []}}):
        revision.data = data
        assert revision.template == {}


def test_the_oldest_revisions_go_first() -> None:
    revisions = ordered(controller_revision(name, number) for name, number in (("b", 2), ("c", 3), ("a", 1)))
    assert [each.name for each in oldest(revisions, 2)] == ["a", "b"]
    assert not oldest(revisions, -1)
