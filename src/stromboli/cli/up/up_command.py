"""`stromboli up`."""

from __future__ import annotations

from pathlib import Path

import typer

from stromboli.cli.policy_options import LENIENT, PLUGINS_DIR
from stromboli.cli.up import up_options
from stromboli.cli.up.up_options import UpOptions
from stromboli.daemon import log_format


def up(
    nodes: list[str] = up_options.NODES,
    racks: int = up_options.RACKS,
    switches: int = up_options.SWITCHES,
    real: bool = up_options.REAL,
    data: Path | None = up_options.DATA,
    policy: Path | None = up_options.POLICY,
    preset: str | None = up_options.PRESET_NAME,
    plugins_dir: Path | None = PLUGINS_DIR,
    job_plugins_dir: Path | None = up_options.JOB_PLUGINS_DIR,
    lenient_policy: bool = LENIENT,
    run_time: str = up_options.RUN_TIME,
    start_delay: str = up_options.START_DELAY,
    schedule_period: str = up_options.SCHEDULE_PERIOD,
    schedule_on_change: bool = up_options.SCHEDULE_ON_CHANGE,
    feature_gates: str | None = up_options.FEATURE_GATES,
    controllers: str | None = up_options.CONTROLLERS,
    scheduler_sharding_mode: str | None = up_options.SHARDING_MODE,
    scheduler_sharding_name: str | None = up_options.SHARDING_NAME,
    scheduler_configs: str | None = up_options.SCHEDULER_CONFIGS,
    shard_sync_period: str | None = up_options.SHARD_SYNC_PERIOD,
    enable_node_event_trigger: str | None = up_options.NODE_EVENT_TRIGGER,
    sharding_configmap: str | None = up_options.SHARDING_CONFIGMAP,
    sharding_configmap_namespace: str | None = up_options.SHARDING_CONFIGMAP_NAMESPACE,
    host: str = up_options.HOST,
    port: int = up_options.PORT,
    dashboard: bool = up_options.DASHBOARD,
    verbose: bool = up_options.VERBOSE,
) -> None:
    """Start a cluster on this machine: an API server for kubectl, nodes, the scheduler and the controllers."""
    from stromboli.cli.up.cluster_run import run_cluster

    if verbose:
        log_format.set_up(as_json=False, verbosity=0)
    options = UpOptions(
        nodes=nodes,
        racks=racks,
        switches=switches,
        real=real,
        data=data,
        policy=policy,
        preset=preset,
        plugins_dir=plugins_dir,
        job_plugins_dir=job_plugins_dir,
        lenient_policy=lenient_policy,
        run_time=run_time,
        start_delay=start_delay,
        schedule_period=schedule_period,
        schedule_on_change=schedule_on_change,
        host=host,
        port=port,
        dashboard=dashboard,
        feature_gates=feature_gates,
        controllers=controllers,
        scheduler_sharding_mode=scheduler_sharding_mode,
        scheduler_sharding_name=scheduler_sharding_name,
        scheduler_configs=scheduler_configs,
        shard_sync_period=shard_sync_period,
        enable_node_event_trigger=enable_node_event_trigger,
        sharding_configmap=sharding_configmap,
        sharding_configmap_namespace=sharding_configmap_namespace,
    )
    raise typer.Exit(run_cluster(options))
