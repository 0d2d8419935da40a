"""The flags of Volcano's scheduler (spec 05 1.1), with its names, defaults and syntax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stromboli.api import names
from stromboli.daemon import flags
from stromboli.daemon.common_options import ElectedOptions
from stromboli.daemon.flags import (
    BadFlag,
    boolean,
    comma_separated,
    duration,
    flag,
    integer,
    number,
    path,
    positive,
    string,
)


def sharding(value: str) -> str:
    if value not in ("none", "soft", "hard"):
        raise BadFlag("is not one of none, soft, hard")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ElectedOptions):
    """The flags, parsed."""

    kube_api_qps: float = flag(
        number, 2000.0, "Maximum number of requests per second, for each of two clients"
    )
    kube_api_burst: int = flag(integer, 2000, "Maximum burst of requests above that rate")
    scheduler_name: tuple[str, ...] = flag(
        comma_separated,
        (names.SCHEDULER_NAME,),
        "Schedule pods with one of these scheduler names; repeatable",
    )
    scheduler_conf: Path | None = flag(path, None, "Policy file; changes apply while the scheduler runs")
    disable_default_scheduler_config: bool = flag(boolean, False, "Exit instead of using the built-in policy")
    lenient_policy: bool = flag(
        boolean, True, "Warn about policy entries that Volcano ignores; false refuses them"
    )
    schedule_period: float = flag(duration, 1.0, "Maximum pause between two cycles")
    schedule_on_change: bool = flag(
        boolean,
        True,
        "Start a cycle as soon as a change may let a pod start; false: only by --schedule-period",
    )
    default_queue: str = flag(string, names.DEFAULT_QUEUE, "Queue of PodGroups without a queue")
    priority_class: bool = flag(boolean, True, "Read PriorityClasses; false gives every job priority 0")
    node_selector: tuple[str, ...] = flag(
        comma_separated, (), "Use only nodes with one of these labels (key:value); repeatable"
    )
    ignored_provisioners: tuple[str, ...] = flag(
        comma_separated,
        (),
        "CSI drivers whose volumes a node need not be able to attach, besides those of local paths; repeatable",
    )
    resource_sync_timeout: float = flag(duration, 60.0, "Maximum wait for the first lists; 0: no wait")
    plugins_dir: Path | None = flag(path, None, "Directory of Python files with custom actions and plugins")
    listen_address: str = flag(
        string, "127.0.0.1:8080", "Address of metrics and debugging endpoints; :8080 for every interface"
    )
    enable_pprof: bool = flag(
        boolean, False, "Serve /debug/...: consistency, dump, stacks, for users with permission for the path"
    )
    enable_explain: bool = flag(
        boolean,
        False,
        "Serve /explain/...: why a job waits, and its history, for users with permission to read it",
    )
    cache_dumper: bool = flag(boolean, True, "Write the whole state to a file on SIGUSR1 and SIGUSR2")
    cache_dump_dir: Path = flag(
        Path, Path("/tmp"), "Directory in which a directory for such files is created"
    )
    scheduler_sharding_mode: str = flag(
        sharding,
        "none",
        "Use of the NodeShard: none ignores it, soft prefers its nodes, hard uses only its nodes",
    )
    scheduler_sharding_name: str = flag(
        string, names.SCHEDULER_NAME, "Name of the NodeShard of this scheduler"
    )
    leader_elect: bool = flag(boolean, True, "Elect a leader by a lease")
    leader_elect_resource_name: str = flag(string, names.SCHEDULER_NAME, "Name of the lease")
    shutdown_timeout: float = flag(duration, 20.0, "Maximum time for pending writes after a stop signal")
    gang_bind_timeout: float = flag(
        duration, 60.0, "Evict a gang that is only partially bound for this long; 0: never"
    )
    writes_in_flight: int = flag(positive, 64, "Maximum number of concurrent writes")

    @property
    def component(self) -> str:
        """The component name in events."""
        return self.scheduler_name[0] if len(self.scheduler_name) == 1 else names.SCHEDULER_NAME


ACCEPTED = flags.Accepted(
    {
        "resync-period": "watches resume by themselves",
        "csi-storage": "reported storage capacity is always used",
        "node-worker-threads": "nodes are added as they arrive",
        "gate-removal-worker-num": "--writes-in-flight applies to all writes",
        "minimum-feasible-nodes": "all nodes are considered",
        "minimum-percentage-nodes-to-find": "all nodes are considered",
        "percentage-nodes-to-find": "all nodes are considered",
        "leader-elect-resource-lock": "a Lease is always used",
        **flags.LOGGING,
    },
    quiet={"leader-elect-resource-lock": "leases", "csi-storage": "true"},
    switches=flags.LOGGING_SWITCHES | {"csi-storage"},
)
GATES = flags.Gates(
    effective={
        "PriorityClass",
        "PodDisruptionBudgetsSupport",
        "WorkLoadSupport",
        "ResourceTopology",
        names.QUEUE_ADMISSION,
        names.STORAGE_CAPACITY_SCORING,
    },
    always_on={"PodSchedulingReadiness", "PodLevelResources", "InPlacePodVerticalScaling"},
)


def parse(arguments: Sequence[str]) -> Options:
    """The options of a command line; raises `BadFlag`."""
    options = flags.parse(Options, ACCEPTED, arguments)
    return replace(options, notes=(*options.notes, *GATES.notes(options.feature_gates)))


def usage() -> str:
    """The usage text: all flags, one per line."""
    return flags.usage(Options, ACCEPTED)
