"""Fields of queues as users write them."""

from __future__ import annotations

import pytest

from stromboli.cli.cli_errors import Usage
from stromboli.cli.queue.queue_fields import changes_of, spec_patch, spec_with


def spec(*assignments: str, **flags: str) -> dict[str, object]:
    return spec_with(changes_of(assignments, flags))


def test_assignments_and_flags_make_one_spec() -> None:
    made = spec(
        "weight=2",
        "deserved.cpu=4",
        "deserved.memory=8Gi",
        guarantee="cpu=1,nvidia.com/gpu=2",
        reclaimable="false",
    )
    assert made == {
        "weight": 2,
        "deserved": {"cpu": "4", "memory": "8Gi"},
        "guarantee": {"resource": {"cpu": "1", "nvidia.com/gpu": "2"}},
        "reclaimable": False,
    }


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("weight=0", "must be a number from 1 to 65535"),
        ("weight=1e9", "must be a number"),
        ("priority=-1", "must be a number from 0"),
        ("reclaimable=perhaps", "must be true or false"),
        ("dequeueStrategy=lifo", "must be traverse"),
        ("dequeueStrategy=fifo", "the scheduler does not implement it; must be traverse"),
        ("deserved=4", "write resources as cpu=4,memory=8Gi"),
        ("deserved=cpu=4,cpu=5", "cpu is given twice"),
        ("deserved.cpu=much", "write 4, 500m or 8Gi"),
        ("deserved=cpu=4,gpu=8", "deserved.gpu: no resource of Kubernetes; .* such as nvidia.com/gpu"),
        ("capability.fpga=1", "capability.fpga: no resource of Kubernetes; .* such as example.com/fpga"),
        ("parent=A B", "no name of a queue"),
        ("colour=red", "no field of a queue; there are weight, capability"),
        ("weight", "write FIELD=VALUE"),
    ],
)
def test_what_cannot_be_has_a_sentence(assignment: str, problem: str) -> None:
    with pytest.raises(Usage, match=problem):
        spec(assignment)


def test_a_field_is_given_once() -> None:
    with pytest.raises(Usage, match="weight is given twice"):
        spec("weight=1", weight="2")


def test_no_message_carries_terminal_escapes() -> None:
    with pytest.raises(Usage) as refused:
        spec("weight=\x1b[2J")
    assert "\x1b" not in str(refused.value)


def test_a_list_that_is_set_replaces_the_old_one_and_an_entry_joins_it() -> None:
    current = {"deserved": {"cpu": "4", "memory": "8Gi"}, "guarantee": {"resource": {"cpu": "1"}}}
    whole = spec_patch(current, changes_of(["deserved=cpu=6", "guarantee="]))
    assert whole == {"deserved": {"cpu": "6", "memory": None}, "guarantee": {"resource": None}}
    entry = spec_patch(current, changes_of(["deserved.cpu=6", "deserved.memory="]))
    assert entry == {"deserved": {"cpu": "6", "memory": None}}


def test_a_resource_without_a_domain_can_be_removed_and_those_of_kubernetes_need_none() -> None:
    current = {"deserved": {"gpu": "4"}}
    patch = spec_patch(current, changes_of(["deserved.gpu=", "capability=hugepages-2Mi=1Gi,pods=10"]))
    assert patch == {"deserved": {"gpu": None}, "capability": {"hugepages-2Mi": "1Gi", "pods": "10"}}
