"""What flags and the ConfigMap say, and what is refused (spec 06 11.1)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stromboli.controllers.options import Options, parse
from stromboli.controllers.sharding.node_assignment import assign
from stromboli.controllers.sharding.sharding_config import (
    MAX_POLICIES,
    MAX_SCHEDULERS,
    BadShardingConfig,
    config_of_flags,
    config_of_yaml,
)
from stromboli.daemon.flags import BadFlag
from tests.controllers.sharding.shares import FLAGS, nodes, yaml_config

ONE = "schedulerConfigs: [{name: one, cpuUtilizationMax: 1}]\n"


def test_without_flags_two_schedulers_share_the_nodes_as_in_volcano() -> None:
    config = Options().sharding
    assert [share.name for share in config.shares] == ["volcano", "agent-scheduler"]
    assert [share.min_nodes for share in config.shares] == [2, 2]
    assert (config.period, config.node_event_trigger) == (60.0, True)


def test_flags_say_who_gets_what_and_how_often() -> None:
    flag = "--scheduler-configs=a:x:-inf:inf:false:0:0,b:y:0:0.5:true:1:3"
    options = parse([flag, "--shard-sync-period=-1s", "--enable-node-event-trigger=false"])
    config = options.sharding
    assert [share.name for share in config.shares] == ["a", "b"]
    assert (config.period, config.node_event_trigger) == (120.0, False)
    assert ["preferWarmup has no effect" in note for note in options.notes] == [True]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a:b:c", "is not name:type:minUtil"),
        ("a:b:0:1:maybe:0:0", '"maybe" is neither true nor false'),
        ("a:b:x:1:true:0:0", "could not convert"),
        ("a:b:0.8:0.2:true:0:0", "no range within 0 and 1"),
        ("a:b:nan:1:true:0:0", "no range within 0 and 1"),
        ("a:b:0:1:true:5:2", "minNodes 5"),
        ("A_B:b:0:1:true:0:0", "cannot be the name of a NodeShard"),
    ],
)
def test_flags_that_make_no_sense_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadFlag, match=complaint):
        parse([f"--scheduler-configs={text}"])


def test_a_limit_may_be_larger_than_any_cluster() -> None:
    (share,) = config_of_flags([f"a:b:0:1:false:0:{10**400}"], 60.0, True).shares
    assert len(share.policies) == 2


def test_the_period_is_a_second_at_least() -> None:
    assert config_of_flags(["a:b:0:1:false:0:0"], 1e-9, True).period == 1.0


def test_what_the_file_leaves_open_stays_as_it_was() -> None:
    assert (yaml_config(ONE).period, yaml_config(ONE).node_event_trigger) == (60.0, True)
    first = config_of_yaml(ONE + "shardSyncPeriod: 2m\nenableNodeEventTrigger: false\n", FLAGS)
    second = config_of_yaml(ONE, first)
    assert (second.period, second.node_event_trigger) == (120.0, False)


def test_what_has_no_effect_is_noted() -> None:
    text = """
    shardSyncPeriod: 5s
    shardSyncPeriod: soon
    schedulerConfig: []
    schedulerConfigs:
    - name: one
      maxNode: 3
      policies: [{name: warmup, wieght: 3, arguments: {label: x}}]
    """
    config = yaml_config(text)
    assert config.period == 60.0
    assert sorted(config.notes) == [
        'line 3: "shardSyncPeriod" stands here twice, first in line 2',
        "schedulerConfig is not known and has no effect",
        "schedulerConfigs[0].maxNode is not known and has no effect",
        "schedulerConfigs[0].policies[0].arguments.label is not known and has no effect",
        "schedulerConfigs[0].policies[0].wieght is not known and has no effect",
        'shardSyncPeriod: "soon" is no duration such as 60s',
    ]


def test_keys_without_a_value_are_as_if_they_were_not_there() -> None:
    text = "schedulerConfigs: [{name: one, policies: , arguments: ~, cpuUtilizationMax: 1}]"
    assert [share.name for share in yaml_config(text).shares] == ["one"]


def _policy(text: str) -> str:
    return f"schedulerConfigs: [{{name: one, policies: [{text}]}}]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "schedulerConfigs is empty"),
        ("[]", "Expected `object`"),
        ("{", "line 2: this is not YAML"),
        ("schedulerConfigs: {}", "Expected `array`"),
        ("schedulerConfigs: [~]", "name is empty"),
        ("schedulerConfigs: [{name: one, minNodes: many}]", "schedulerConfigs.*minNodes"),
        ("schedulerConfigs: [{name: one, cpuUtilizationMax: 2}]", "no range within 0 and 1"),
        ("schedulerConfigs: [{name: one, cpuUtilizationMax: .nan}]", "no range within 0 and 1"),
        ("schedulerConfigs: [{name: one, minNodes: -1}]", "minNodes -1"),
        ("schedulerConfigs: [{name: one, minNodes: 1}]", "minNodes 1 .* maxNodes 0"),
        ("schedulerConfigs: [{name: one}, {name: one}]", r"\[1\]: .one. is named twice"),
        ("schedulerConfigs: [{name: One}]", "cannot be the name"),
        (_policy("{weight: 1}"), "no such policy; there are allocation-rate, warmup, node-limit"),
        (_policy("{name: warm-up}"), r"policies\[0\] \(.warm-up.\): there is no such policy"),
        (_policy("{name: warmup, weight: -1}"), "weight -1 is below 0"),
        (_policy("{name: warmup, arguments: {maxNodes: 1}}"), "arguments of node-limit alone"),
        (_policy("{name: warmup, arguments: {warmupLabel: ''}}"), "warmupLabel is empty"),
        (_policy("{name: warmup, arguments: {warmupLabel: 3}}"), "warmupLabel must be a text"),
        (_policy("{name: allocation-rate, arguments: {minCPUUtil: 0.5}}"), "no range within 0 and 1"),
        (_policy("{name: allocation-rate, arguments: {maxCPUUtil: '1'}}"), "must be a number"),
        (_policy("{name: allocation-rate, arguments: {maxCPUUtil: true}}"), "must be a number"),
        (_policy("{name: node-limit, arguments: {minNodes: 3, maxNodes: 2}}"), "minNodes 3"),
        (_policy("{name: node-limit, arguments: {maxNodes: .inf}}"), "whole numbers"),
        (_policy(",".join(["{name: warmup}"] * (MAX_POLICIES + 1))), "21 policies; a scheduler may have 20"),
        (
            f"schedulerConfigs: [{','.join(f'{{name: s{n}}}' for n in range(MAX_SCHEDULERS + 1))}]",
            "51 schedulers; there may be 50",
        ),
        ("a: &a [1]\nb: [" + ",".join(["*a"] * 6000) + "]", "more than 10000 values"),
        ("x" * (2**20 + 1), "longer than 1048576 characters"),
        ("[" * 60, "nested more than 50 deep"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_the_field(text: str, complaint: str) -> None:
    with pytest.raises(BadShardingConfig, match=complaint):
        yaml_config(text)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["one", "allocation-rate", "warmup", "node-limit", "60s", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["schedulerConfigs", "name", "policies", "arguments", "weight", "minNodes", "maxCPUUtil"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(_VALUES, _VALUES, _VALUES)
def test_whatever_a_file_holds_it_is_used_or_refused(whole: Any, scheduler: Any, policy: Any) -> None:
    nested = {"schedulerConfigs": [{"name": "one", "policies": [policy], "arguments": scheduler}]}
    for value in (whole, {"schedulerConfigs": [scheduler]}, nested):
        try:
            config = yaml_config(yaml.safe_dump(value))
        except BadShardingConfig as error:
            assert str(error)
        else:
            assert assign(config.shares, nodes(a=0.0, b=1.0)).keys() == {
                share.name for share in config.shares
            }
