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
        raise BadFlag("is none of none, soft and hard")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(ElectedOptions):
    """The flags, parsed."""

    kube_api_qps: float = flag(number, 2000.0, "Requests per second, for each of two clients")
    kube_api_burst: int = flag(integer, 2000, "Requests at once before that limit holds")
    scheduler_name: tuple[str, ...] = flag(
        comma_separated,
        (names.SCHEDULER_NAME,),
        "Pods that ask for one of these schedulers are ours; repeatable",
    )
    scheduler_conf: Path | None = flag(path, None, "The policy file; watched while we run")
    disable_default_scheduler_config: bool = flag(
        boolean, False, "Exit rather than fall back to the built-in policy"
    )
    lenient_policy: bool = flag(
        boolean, True, "Ignore with a warning what Volcano ignores in a policy; false refuses it"
    )
    schedule_period: float = flag(duration, 1.0, "Longest rest from the end of a cycle to the next")
    schedule_on_change: bool = flag(
        boolean,
        True,
        "Begin a cycle as soon as a change could let a pod start; false: by --schedule-period alone",
    )
    default_queue: str = flag(string, names.DEFAULT_QUEUE, "Queue of PodGroups that name none")
    priority_class: bool = flag(boolean, True, "Read PriorityClasses; false gives every job priority 0")
    node_selector: tuple[str, ...] = flag(
        comma_separated, (), "key:value; only nodes with one of these labels are used; repeatable"
    )
    ignored_provisioners: tuple[str, ...] = flag(
        comma_separated,
        (),
        "CSI drivers whose volumes a node need not be able to attach, besides those of local paths; repeatable",
    )
    resource_sync_timeout: float = flag(duration, 60.0, "How long to wait for the first lists; 0: not at all")
    plugins_dir: Path | None = flag(path, None, "Folder of Python files with own actions and plugins")
    listen_address: str = flag(
        string, "127.0.0.1:8080", "Where metrics and debugging are served; :8080 for every address"
    )
    enable_pprof: bool = flag(
        boolean, False, "Serve /debug/...: consistency, dump, stacks, for users with rights on the path"
    )
    enable_explain: bool = flag(
        boolean,
        False,
        "Serve /explain/...: why a job waits and what happened to it, for users who may read it",
    )
    cache_dumper: bool = flag(boolean, True, "SIGUSR1 and SIGUSR2 write the whole state to a file")
    cache_dump_dir: Path = flag(Path, Path("/tmp"), "Folder in which our own folder of such files is made")
    scheduler_sharding_mode: str = flag(
        sharding,
        "none",
        "Nodes of our NodeShard: none looks at no shards, soft prefers them, hard uses no others",
    )
    scheduler_sharding_name: str = flag(string, names.SCHEDULER_NAME, "Name of our NodeShard")
    leader_elect: bool = flag(boolean, True, "Elect one of several schedulers by a lease")
    leader_elect_resource_name: str = flag(string, names.SCHEDULER_NAME, "Name of the lease")
    shutdown_timeout: float = flag(duration, 20.0, "How long writes in flight may take after a stop signal")
    gang_bind_timeout: float = flag(
        duration, 60.0, "Evict a gang of which only a part could be bound for so long; 0: never"
    )
    writes_in_flight: int = flag(positive, 64, "Requests that may be under way at once")

    @property
    def component(self) -> str:
        """Our component name in events."""
        return self.scheduler_name[0] if len(self.scheduler_name) == 1 else names.SCHEDULER_NAME


ACCEPTED = flags.Accepted(
    {
        "resync-period": "watches resume by themselves",
        "csi-storage": "the storage that drivers report is always looked at",
        "node-worker-threads": "nodes are taken in as they come",
        "gate-removal-worker-num": "--writes-in-flight holds for all that is written",
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
    """All flags, one per line."""
    return flags.usage(Options, ACCEPTED)
