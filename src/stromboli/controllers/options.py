"""The flags of Volcano's controller manager (spec 06 1.1), with its names and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stromboli.api import names
from stromboli.controllers import selection
from stromboli.controllers.sharding.sharding_config import BadShardingConfig, ShardingConfig, config_of_flags
from stromboli.daemon import flags
from stromboli.daemon.common_options import ElectedOptions
from stromboli.daemon.flags import (
    BadFlag,
    any_duration,
    boolean,
    comma_separated,
    duration,
    flag,
    integer,
    number,
    path,
    string,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ElectedOptions):
    """The flags, parsed."""

    kube_api_qps: float = flag(number, 50.0, "Requests per second; 0: no limit")
    worker_threads: int = flag(integer, 3, "Jobs worked on at a time, in eights")
    worker_threads_for_cronjob: int = flag(integer, 3, "CronJobs worked on at a time")
    worker_threads_for_podgroup: int = flag(integer, 5, "Pods given a PodGroup at a time")
    worker_threads_for_queue: int = flag(integer, 5, "Queues worked on at a time")
    worker_threads_for_gc: int = flag(integer, 1, "Finished jobs deleted at a time")
    max_requeue_num: int = flag(
        integer,
        15,
        "Failures in a row after which a job, queue or flow rests for 5 minutes; negative: never",
    )
    scheduler_name: tuple[str, ...] = flag(
        comma_separated,
        (names.SCHEDULER_NAME,),
        "Pods that ask for one of these schedulers get a PodGroup; repeatable",
    )
    inherit_owner_annotations: bool = flag(
        boolean, True, "PodGroups of bare pods take over annotations of the pods' owners"
    )
    controllers: tuple[str, ...] = flag(
        comma_separated, selection.DEFAULT, "Which controllers run: *, name, -name, in a comma-separated list"
    )
    enable_healthz: bool = flag(boolean, False, "Serve /healthz, /livez and /readyz")
    listen_address: str = flag(string, "127.0.0.1:8081", "Where metrics are served; :8081 for every address")
    leader_elect_resource_name: str = flag(string, "vc-controller-manager", "Name of the lease")
    plugins_dir: Path | None = flag(path, None, "Folder with job plugins of your own, one Python file each")
    shutdown_timeout: float = flag(duration, 10.0, "How long work under way may take after a stop signal")
    scheduler_configs: tuple[str, ...] = flag(
        comma_separated,
        ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100"),
        "Deprecated, without the ConfigMap: name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes; repeatable",
    )
    shard_sync_period: float = flag(
        any_duration, 60.0, "How often nodes are divided among schedulers; 120s if not above 0"
    )
    enable_node_event_trigger: bool = flag(
        boolean, True, "Divide nodes sooner when nodes come, go, fill up or empty"
    )
    sharding_configmap: str = flag(
        string, "volcano-sharding-configmap", "ConfigMap that says which scheduler gets which nodes"
    )
    sharding_configmap_namespace: str = flag(string, "volcano-system", "Its namespace")

    @property
    def sharding(self) -> ShardingConfig:
        """How nodes are divided where no ConfigMap says so."""
        return config_of_flags(self.scheduler_configs, self.shard_sync_period, self.enable_node_event_trigger)


ACCEPTED = flags.Accepted(
    {
        "leader-elect-resource-lock": "a Lease is always used",
        **flags.LOGGING,
    },
    quiet={"leader-elect-resource-lock": "leases"},
    switches=flags.LOGGING_SWITCHES,
)


GATES = flags.Gates({"PriorityClass", "QueueCommandSync", "WorkLoadSupport", *selection.FEATURES.values()})


def parse(arguments: Sequence[str]) -> Options:
    """What the command line says; `BadFlag` if it makes no sense."""
    options = flags.parse(Options, ACCEPTED, arguments)
    selection.check(options.controllers)
    notes = (*options.notes, *GATES.notes(options.feature_gates), *_sharding_notes(options))
    return replace(options, notes=notes)


def _sharding_notes(options: Options) -> tuple[str, ...]:
    """What of `--scheduler-configs` has no effect, if it is given."""
    try:
        notes = options.sharding.notes
    except BadShardingConfig as error:
        raise BadFlag(f"--scheduler-configs: {error}") from None
    is_default = options.scheduler_configs == Options().scheduler_configs
    return () if is_default else tuple(f"--scheduler-configs={note}" for note in notes)


def usage() -> str:
    """All flags, one per line."""
    return flags.usage(Options, ACCEPTED)
