"""The configuration of the sharding controller, from flags or from the ConfigMap's `sharding.yaml` (spec 06 11.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stromboli.api import go_scalars
from stromboli.api.errors import quoted
from stromboli.api.manifests.yaml_lines import MAX_BYTES, YamlError, plain, read_yaml
from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.controllers.sharding.shard_policies import (
    ALLOCATION_RATE,
    NODE_LIMIT,
    POLICIES,
    WARMUP,
    BadPolicy,
    NodeLimit,
    ShardPolicy,
    policy_of,
)

MAX_SCHEDULERS = 50
MAX_POLICIES = 20
"""Of one scheduler."""
DEFAULT_PERIOD = 120.0
"""Seconds between two syncs where the period is not above 0."""
SHORTEST_PERIOD = 1.0


class BadShardingConfig(ValueError):
    """A configuration that cannot be used; the text names the field and the value."""


class _Record(msgspec.Struct, rename="camel", frozen=True):
    pass


class PolicySpec(_Record, frozen=True):
    """A policy as it is written down."""

    name: str = ""
    weight: int = 0
    arguments: dict[str, Any] = {}


class SchedulerSpec(_Record, frozen=True):
    """A scheduler as it is written down: with policies, or with the fields that came before them."""

    name: str = ""
    type: str = ""
    policies: tuple[PolicySpec, ...] = ()
    arguments: dict[str, Any] = {}
    cpu_utilization_min: float = 0.0
    cpu_utilization_max: float = 0.0
    prefer_warmup_nodes: bool = False
    min_nodes: int = 0
    max_nodes: int = 0


class ConfigSpec(_Record, frozen=True):
    """The whole file."""

    scheduler_configs: tuple[SchedulerSpec, ...] = ()
    shard_sync_period: str = ""
    enable_node_event_trigger: bool | None = None


@dataclass(frozen=True, slots=True)
class SchedulerShare:
    """How a scheduler gets its nodes: policies with their weights."""

    name: str
    policies: tuple[tuple[ShardPolicy, int], ...]

    @property
    def min_nodes(self) -> int:
        """How many it should have, if there are so many."""
        limits = (policy.min_nodes for policy, _ in self.policies if isinstance(policy, NodeLimit))
        return max(limits, default=0)


@dataclass(frozen=True, slots=True)
class ShardingConfig:
    """What the controller goes by."""

    shares: tuple[SchedulerShare, ...]
    period: float
    """Seconds between two syncs."""
    node_event_trigger: bool
    """Whether nodes that come, go or fill up cause a sync before that."""
    notes: tuple[str, ...] = ()
    """What was read and has no effect."""


def config_of_flags(configs: Sequence[str], period: float, node_event_trigger: bool) -> ShardingConfig:
    """What `--scheduler-configs` and the flags beside it say."""
    specs = []
    notes = []
    for text in configs:
        spec = _scheduler_of_flag(text)
        specs.append(spec)
        if spec.prefer_warmup_nodes:
            # quirk: spec 06 11.1, configurations of flags have a policy already, so this adds none
            notes.append(
                f"{quoted(text)}: preferWarmup has no effect; name the policy {WARMUP} in the ConfigMap"
            )
    return ShardingConfig(_shares(specs), _usable_period(period), node_event_trigger, tuple(notes))


def config_of_yaml(text: str, before: ShardingConfig) -> ShardingConfig:
    """What a ConfigMap says; what it leaves open stays as it was."""
    if len(text) > MAX_BYTES:
        raise BadShardingConfig(f"longer than {MAX_BYTES} characters")
    try:
        document = read_yaml(text)
        data = _without_nulls(plain(document.root))
        spec = msgspec.convert(data, ConfigSpec)
    except YamlError as error:
        raise BadShardingConfig(f"line {error.line}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadShardingConfig(str(error)) from None
    notes = [*(f"line {line}: {problem}" for line, problem in document.problems), *_unknown_keys(data)]
    period, trigger = before.period, spec.enable_node_event_trigger
    if spec.shard_sync_period:
        seconds = go_scalars.duration(spec.shard_sync_period)
        if seconds is None:
            notes.append(f"shardSyncPeriod: {quoted(spec.shard_sync_period)} is no duration such as 60s")
        else:
            period = _usable_period(seconds)
    return ShardingConfig(
        _shares(spec.scheduler_configs),
        period,
        before.node_event_trigger if trigger is None else trigger,
        tuple(notes),
    )


def _scheduler_of_flag(text: str) -> SchedulerSpec:
    """`name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes`."""
    parts = text.split(":")
    if len(parts) != 7:
        raise BadShardingConfig(
            f"{quoted(text)} is not name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes"
        )
    name, type_, lowest, highest, warmup, fewest, most = parts
    prefer = go_scalars.boolean(warmup)
    try:
        if prefer is None:
            raise ValueError(f"{quoted(warmup)} is neither true nor false")
        utilization = {"minCPUUtil": _utilization(lowest), "maxCPUUtil": _utilization(highest)}
        policies = (PolicySpec(ALLOCATION_RATE, 1, utilization),)
        return SchedulerSpec(
            name, type_, policies, prefer_warmup_nodes=prefer, min_nodes=int(fewest), max_nodes=int(most)
        )
    except ValueError as error:
        raise BadShardingConfig(f"{quoted(text)}: {error}") from None


def _utilization(text: str) -> float:
    words = {"inf": 1.0, "infinity": 1.0, "-inf": 0.0, "-infinity": 0.0}
    return words[text] if text in words else float(text)


def _usable_period(seconds: float) -> float:
    return max(SHORTEST_PERIOD, seconds) if seconds > 0 else DEFAULT_PERIOD


# -- checks and defaults


def _shares(specs: Sequence[SchedulerSpec]) -> tuple[SchedulerShare, ...]:
    if not specs:
        raise BadShardingConfig("schedulerConfigs is empty; name one scheduler at least")
    if len(specs) > MAX_SCHEDULERS:
        raise BadShardingConfig(f"{len(specs)} schedulers; there may be {MAX_SCHEDULERS}")
    named: set[str] = set()
    shares = []
    for index, spec in enumerate(specs):
        where = f"schedulerConfigs[{index}]"
        for problem in _problems(spec):
            raise BadShardingConfig(f"{where}: {problem}")
        if spec.name in named:
            raise BadShardingConfig(f"{where}: {quoted(spec.name)} is named twice")
        named.add(spec.name)
        shares.append(SchedulerShare(spec.name, tuple(_policies(spec, f"{where} ({spec.name})"))))
    return tuple(shares)


def _problems(spec: SchedulerSpec) -> Iterator[str]:
    if not spec.name:
        yield "name is empty"
    elif dns_subdomain_errors(spec.name):
        yield f"name: {quoted(spec.name)} cannot be the name of a NodeShard; use lower-case letters, digits, - and ."
    lowest, highest = spec.cpu_utilization_min, spec.cpu_utilization_max
    if not 0 <= lowest <= highest <= 1:
        yield f"cpuUtilizationMin {lowest:g} and cpuUtilizationMax {highest:g} are no range within 0 and 1"
    if spec.min_nodes < 0 or spec.max_nodes < spec.min_nodes:
        yield f"minNodes {spec.min_nodes} must not be below 0, nor above maxNodes {spec.max_nodes}"
    if len(spec.policies) > MAX_POLICIES:
        yield f"{len(spec.policies)} policies; a scheduler may have {MAX_POLICIES}"


def _policies(spec: SchedulerSpec, where: str) -> Iterator[tuple[ShardPolicy, int]]:
    for index, policy in enumerate(_with_defaults(spec)):
        place = f"{where}: policies[{index}] ({quoted(policy.name)})"
        if policy.weight < 0:
            raise BadShardingConfig(f"{place}: weight {policy.weight} is below 0; leave it out for 1")
        if policy.name != NODE_LIMIT and policy.arguments.keys() & set(NodeLimit.numbers):
            raise BadShardingConfig(f"{place}: minNodes and maxNodes are arguments of {NODE_LIMIT} alone")
        try:
            yield policy_of(policy.name, policy.arguments), policy.weight or 1
        except BadPolicy as error:
            raise BadShardingConfig(f"{place}: {error}") from None


def _with_defaults(spec: SchedulerSpec) -> list[PolicySpec]:
    """The policies, or what the older fields stand for."""
    policies = list(spec.policies)
    if not policies:
        bounds = {"minCPUUtil": spec.cpu_utilization_min, "maxCPUUtil": spec.cpu_utilization_max}
        policies.append(PolicySpec(ALLOCATION_RATE, 1, spec.arguments or bounds))
        if spec.prefer_warmup_nodes:
            policies.append(PolicySpec(WARMUP, 1))
    limited = any(policy.name == NODE_LIMIT for policy in policies)
    if not limited and (spec.min_nodes > 0 or spec.max_nodes > 0):
        limits = {"minNodes": spec.min_nodes, "maxNodes": spec.max_nodes}
        policies.append(PolicySpec(NODE_LIMIT, 1, limits))
    return policies


# -- what has no effect


def _without_nulls(value: object) -> Any:
    """A key without a value is as if it were not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value if value is not None else {}


def _unknown_keys(data: Any) -> Iterator[str]:
    yield from _unknown(data, _keys(ConfigSpec), "")
    for number, scheduler in enumerate(data.get("schedulerConfigs", ())):
        where = f"schedulerConfigs[{number}]."
        yield from _unknown(scheduler, _keys(SchedulerSpec), where)
        for index, policy in enumerate(scheduler.get("policies", ())):
            inside = f"{where}policies[{index}]."
            yield from _unknown(policy, _keys(PolicySpec), inside)
            kind = POLICIES.get(policy.get("name", ""))
            if kind is not None:
                known = (*kind.numbers, *kind.texts)
                yield from _unknown(policy.get("arguments", {}), known, f"{inside}arguments.")


def _unknown(data: dict[str, Any], known: Iterable[str], where: str) -> Iterator[str]:
    for key in data.keys() - set(known):
        yield f"{where}{key[:100]} is not known and has no effect"


def _keys(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return kind.__struct_encode_fields__
