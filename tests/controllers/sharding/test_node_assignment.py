"""Who gets which nodes: ranges of utilization, order, limits, and when a shard is written (spec 06 11.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.sharding.node_assignment import assign, is_worth_writing
from stromboli.controllers.sharding.shard_policies import WARMUP_LABEL, NodeState
from tests.controllers.sharding.shares import divided, nodes, yaml_config

LOW_AND_HIGH = """
schedulerConfigs:
- {name: busy, cpuUtilizationMin: 0.7, cpuUtilizationMax: 1}
- {name: calm, cpuUtilizationMin: 0, cpuUtilizationMax: 0.6}
"""


def test_a_scheduler_gets_the_nodes_in_its_range_the_fullest_first() -> None:
    states = nodes(a=0.1, b=0.65, c=0.9, d=0.6, e=0.7)
    assert divided(LOW_AND_HIGH, states) == {"busy": "c e", "calm": "d a"}


def test_utilization_is_compared_in_hundredths() -> None:
    states = nodes(a=0.695, b=0.694, c=0.6049, d=0.605)
    assert divided(LOW_AND_HIGH, states) == {"busy": "a", "calm": "c"}


def test_whoever_is_named_first_chooses_first() -> None:
    text = """
    schedulerConfigs:
    - {name: first, cpuUtilizationMax: 1, maxNodes: 2}
    - {name: second, cpuUtilizationMax: 1, maxNodes: 1}
    - {name: third, cpuUtilizationMax: 1}
    """
    states = nodes(a=0.1, b=0.2, c=0.3, d=0.4)
    assert divided(text, states) == {"first": "d c", "second": "b", "third": "a"}


def test_equal_nodes_come_in_the_order_given() -> None:
    text = "schedulerConfigs: [{name: one, cpuUtilizationMin: 0.5, cpuUtilizationMax: 0.5, maxNodes: 2}]"
    assert divided(text, nodes(b=0.5, c=0.5, a=0.5)) == {"one": "b c"}


def test_warm_nodes_come_first_by_weight() -> None:
    text = """
    schedulerConfigs:
    - name: one
      policies:
      - {name: allocation-rate, arguments: {minCPUUtil: 0, maxCPUUtil: 1}}
      - {name: warmup, weight: 2, arguments: {warmupLabel: pool, warmupLabelValue: warm}}
      - {name: node-limit, arguments: {maxNodes: 2}}
    """
    states = [
        NodeState("full", {}, 1.0),
        NodeState("warm", {"pool": "warm"}, 0.1),
        NodeState("cold", {"pool": "cold"}, 0.9),
    ]
    assert divided(text, states) == {"one": "warm full"}


def test_the_older_field_for_warm_nodes_stands_for_the_policy() -> None:
    text = "schedulerConfigs: [{name: one, cpuUtilizationMax: 1, preferWarmupNodes: true}]"
    states = [NodeState("a", {}, 0.5), NodeState("b", {WARMUP_LABEL: "true"}, 0.0)]
    assert divided(text, states) == {"one": "b a"}


def test_without_arguments_only_empty_nodes_are_accepted() -> None:
    text = "schedulerConfigs: [{name: one, policies: [{name: allocation-rate}]}]"
    assert divided(text, nodes(a=0.004, b=0.005, c=1.0)) == {"one": "a"}


def test_a_scheduler_whose_policies_do_not_filter_takes_what_is_left() -> None:
    text = """
    schedulerConfigs:
    - {name: busy, cpuUtilizationMin: 0.5, cpuUtilizationMax: 1}
    - {name: rest, policies: [{name: warmup}]}
    """
    assert divided(text, nodes(a=0.1, b=0.9, c=0.2)) == {"busy": "b", "rest": "a c"}


@given(st.lists(st.floats(0, 1), max_size=120))
def test_no_node_is_given_twice_and_limits_hold(utilizations: list[float]) -> None:
    text = """
    schedulerConfigs:
    - {name: one, cpuUtilizationMin: 0.3, cpuUtilizationMax: 1, maxNodes: 7}
    - {name: two, cpuUtilizationMax: 0.8, maxNodes: 60}
    """
    states = [NodeState(f"n{number}", {}, cpu) for number, cpu in enumerate(utilizations)]
    assignment = assign(yaml_config(text).shares, states)
    given_out = [*assignment["one"], *assignment["two"]]
    assert len(given_out) == len(set(given_out))
    assert len(assignment["one"]) <= 7
    assert len(assignment["two"]) <= 60


@pytest.mark.parametrize(
    ("current", "desired", "worth"),
    [
        (None, 0, True),
        (range(5), range(6), True),
        (range(5), range(5), False),
        (range(5), range(1, 6), True),
        (range(40), range(3, 43), False),
        (range(40), range(4, 44), True),
        (range(0), range(0), False),
    ],
)
def test_a_shard_is_written_if_its_size_or_a_tenth_of_it_changes(
    current: range | None, desired: range | int, worth: bool
) -> None:
    wanted = [f"n{number}" for number in (desired if isinstance(desired, range) else ())]
    before = None if current is None else [f"n{number}" for number in current]
    assert is_worth_writing({} if before is None else {"one": before}, {"one": wanted}) is worth


def test_shards_that_overlap_are_written_however_little_they_differ() -> None:
    """The controller was killed after it had written one of two shards, or somebody else wrote one."""
    nodes = [f"n{number}" for number in range(42)]
    desired = {"few": nodes[:2], "many": nodes[2:]}
    half_written = {"few": nodes[:2], "many": [*nodes[3:], nodes[0]]}
    assert is_worth_writing(half_written, desired)
    assert not is_worth_writing(desired, desired)
