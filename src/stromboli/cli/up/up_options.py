"""The options of `stromboli up`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from stromboli.cli.data_option import data_folder
from stromboli.cli.policy_options import preset_names

SIMULATED = "4x8cpu,32Gi"
"""The nodes, if none are given."""
PRESET = "full"

NODES = typer.Option(
    [],
    "--nodes",
    metavar="NODES",
    help="Such as 20, 20x32cpu,256Gi,8gpu, or a file of Node manifests; repeatable. "
    f"GPUs are devices with 8gpu,dra and shared cards with 8gpu,vgpu. {SIMULATED} unless given, "
    "with --real this machine as it is.",
)
RACKS = typer.Option(
    0, "--racks", metavar="N", min=0, help="Divide the nodes among so many racks, as HyperNodes of tier 1."
)
SWITCHES = typer.Option(
    0,
    "--switches",
    metavar="N",
    min=0,
    help="Divide the racks among so many switches, as HyperNodes of tier 2.",
)
REAL = typer.Option(False, "--real", help="Run the commands of pods as processes of this machine.")
DATA = typer.Option(
    None,
    "--data",
    parser=data_folder,
    metavar="DIR",
    help="Keep everything there, and go on from there; a temporary folder unless given.",
)
POLICY = typer.Option(
    None, "--policy", metavar="FILE", help="The scheduler's configuration; reread when it changes."
)
PRESET_NAME = typer.Option(
    None,
    "--preset",
    metavar="NAME",
    help=f"A policy that comes along; {PRESET} unless given.",
    autocompletion=preset_names,
)
DASHBOARD = typer.Option(
    True,
    "--dashboard/--no-dashboard",
    help="Show the cluster in a browser, to whoever has the printed address.",
)
JOB_PLUGINS_DIR = typer.Option(
    None, "--job-plugins-dir", metavar="DIR", help="A folder of Python files with your own job plugins."
)
RUN_TIME = typer.Option(
    "forever",
    "--run-time",
    metavar="SPAN",
    help="How long simulated pods run that do not say: 30s, 10s..60s, exp(30s), forever.",
)
START_DELAY = typer.Option(
    "500ms", "--start-delay", metavar="SPAN", help="How long simulated pods take to start."
)
SCHEDULE_PERIOD = typer.Option(
    "1s", "--schedule-period", metavar="TIME", help="Longest rest between two scheduling cycles."
)
SCHEDULE_ON_CHANGE = typer.Option(
    True,
    "--schedule-on-change/--no-schedule-on-change",
    show_default=False,
    help="Begin a scheduling cycle as soon as a change could let a pod start (default); "
    "=false waits for --schedule-period.",
)
FEATURE_GATES = typer.Option(
    None,
    "--feature-gates",
    metavar="NAME=BOOL,...",
    help="Feature gates of scheduler, controllers and admission, such as SchedulingGatesQueueAdmission=true.",
)
CONTROLLERS = typer.Option(
    None,
    "--controllers",
    metavar="NAME,...",
    help="Volcano controllers to run: *, name, -name. Default: *,-sharding-controller.",
)
SHARDING_MODE = typer.Option(
    None,
    "--scheduler-sharding-mode",
    metavar="MODE",
    help="Use of the scheduler's NodeShard: none, soft or hard. Default: none.",
)
SHARDING_NAME = typer.Option(
    None,
    "--scheduler-sharding-name",
    metavar="NAME",
    help="Name of the scheduler's NodeShard. Default: volcano.",
)
SCHEDULER_CONFIGS = typer.Option(
    None,
    "--scheduler-configs",
    metavar="CONFIG,...",
    help="Shards without a ConfigMap: name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes.",
)
SHARD_SYNC_PERIOD = typer.Option(
    None,
    "--shard-sync-period",
    metavar="TIME",
    help="Time between two divisions of nodes into shards. Default: 60s.",
)
NODE_EVENT_TRIGGER = typer.Option(
    None,
    "--enable-node-event-trigger",
    metavar="BOOL",
    help="Also divide nodes when they are added, removed, filled or emptied. Default: true.",
)
SHARDING_CONFIGMAP = typer.Option(
    None,
    "--sharding-configmap",
    metavar="NAME",
    help="ConfigMap that assigns nodes to schedulers. Default: volcano-sharding-configmap.",
)
SHARDING_CONFIGMAP_NAMESPACE = typer.Option(
    None,
    "--sharding-configmap-namespace",
    metavar="NAMESPACE",
    help="Namespace of that ConfigMap. Default: volcano-system.",
)
HOST = typer.Option(
    "127.0.0.1", "--host", help="Where to listen; others than this machine may ask if told so."
)
PORT = typer.Option(0, "--port", min=0, max=65535, help="Where to listen; any free port unless given.")
VERBOSE = typer.Option(False, "--verbose", "-v", help="Tell what happens inside.")

CLUSTER = typer.Option(
    None,
    "--data",
    parser=data_folder,
    metavar="DIR",
    help="The cluster's folder; unless given, the cluster of $KUBECONFIG or the only one that runs.",
)
"""Of commands that look for a cluster of `stromboli up`."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What the cluster is to be like, as the command line says it."""

    nodes: list[str]
    racks: int
    switches: int
    real: bool
    data: Path | None
    policy: Path | None
    preset: str | None
    plugins_dir: Path | None
    job_plugins_dir: Path | None
    lenient_policy: bool
    run_time: str
    start_delay: str
    schedule_period: str
    schedule_on_change: bool
    host: str
    port: int
    dashboard: bool = True
    feature_gates: str | None = None
    controllers: str | None = None
    scheduler_sharding_mode: str | None = None
    scheduler_sharding_name: str | None = None
    scheduler_configs: str | None = None
    shard_sync_period: str | None = None
    enable_node_event_trigger: str | None = None
    sharding_configmap: str | None = None
    sharding_configmap_namespace: str | None = None

    def flags(self, *fields: str) -> list[str]:
        """The options of these names that are set, as flags of a daemon."""
        values = {field: getattr(self, field) for field in fields}
        return [
            f"--{field.replace('_', '-')}={value}" for field, value in values.items() if value is not None
        ]
