"""Shares of schedulers and states of nodes, as tests write them."""

from __future__ import annotations

from typing import Any

from stromboli.controllers.sharding.node_assignment import assign
from stromboli.controllers.sharding.shard_policies import NodeState
from stromboli.controllers.sharding.sharding_config import ShardingConfig, config_of_flags, config_of_yaml

FLAGS = config_of_flags(["one:volcano:0:1:false:0:0"], 60.0, True)


def yaml_config(text: str, before: ShardingConfig = FLAGS) -> ShardingConfig:
    return config_of_yaml(text, before)


def nodes(**utilization: float) -> list[NodeState]:
    """`nodes(a=0.5)`: a node that is half full."""
    return [NodeState(name, {}, cpu) for name, cpu in utilization.items()]


def divided(text: str, states: list[NodeState]) -> dict[str, Any]:
    """The nodes of each scheduler, in one word: `{"one": "a b"}`."""
    assignment = assign(yaml_config(text).shares, states)
    return {name: " ".join(chosen) for name, chosen in assignment.items()}
