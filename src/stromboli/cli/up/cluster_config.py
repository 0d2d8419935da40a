"""The configuration of a cluster, from the options of `stromboli up`."""

from __future__ import annotations

import tempfile
from math import inf
from pathlib import Path

from stromboli.api.durations import BadDuration, Duration, parse_duration
from stromboli.cli.policy_options import chosen_policy, startable
from stromboli.cli.up.up_options import PRESET, SIMULATED, UpOptions
from stromboli.controllers import options as controller_options
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.nodes.machine.machine_node import machine_node, offer_gpus
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.embedded.nodes.node_network import place_in_racks
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
from stromboli.engine.catalog import Catalog
from stromboli.extensions import load_catalog
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.scheduler import options as scheduler_options

SHORTEST_PERIOD = 0.01
"""Seconds between two cycles at least; with fewer, a quiet cluster would keep a core busy."""


def service_config(options: UpOptions) -> ServiceConfig:
    """The settings of the services; `BadNodes`, `BadDuration` and `BadFlag` report options that cannot be read."""
    catalog = load_catalog(options.plugins_dir)
    policy = _policy(options, catalog)
    delays = StageDelays(
        _duration("--start-delay", options.start_delay), _duration("--run-time", options.run_time)
    )
    return ServiceConfig(
        _nodes(options),
        catalog,
        policy,
        delays,
        _period(options.schedule_period),
        on_change=options.schedule_on_change,
        nodes_requested=bool(options.nodes) or options.real,
        racks_requested=options.racks > 0,
        lenient_policy=options.lenient_policy,
        job_plugins_dir=options.job_plugins_dir,
        scheduler=scheduler_options.parse(
            options.flags("feature_gates", "scheduler_sharding_mode", "scheduler_sharding_name")
        ),
        controllers=controller_options.parse(
            options.flags(
                "feature_gates",
                "controllers",
                "scheduler_configs",
                "shard_sync_period",
                "enable_node_event_trigger",
                "sharding_configmap",
                "sharding_configmap_namespace",
            )
        ),
    )


def _duration(option: str, text: str) -> Duration:
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise BadDuration(f"{option} {error}") from None


def _period(text: str) -> float:
    """The longest rest between two cycles in seconds."""
    try:
        period = parse_duration(text)
    except BadDuration:
        period = Duration(0.0, 0.0)
    if period.exponential or period.low != period.high or not SHORTEST_PERIOD <= period.low < inf:
        raise BadDuration(
            f"--schedule-period {text[:64]!r}: expected a time such as 500ms or 1s, at least 10ms"
        )
    return period.low


def _policy(options: UpOptions, catalog: Catalog) -> Policy | PolicyFile:
    """A file is read again when it changes; a preset never does."""
    if options.policy is not None and options.preset is None:
        file = PolicyFile(options.policy, catalog, options.lenient_policy)
        startable(file.current, catalog)
        return file
    policy = chosen_policy(options.policy, options.preset or PRESET, catalog, options.lenient_policy)
    assert policy is not None
    return policy


def _nodes(options: UpOptions) -> list[Content]:
    if options.real and not options.nodes:
        manifests = [machine_node(options.data or Path(tempfile.gettempdir()))]
    else:
        manifests = node_manifests(options.nodes or [SIMULATED], options.real)
        offer_gpus(manifests)
    place_in_racks(manifests, options.racks, options.switches)
    return manifests
