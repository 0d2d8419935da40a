"""The flags of Volcano's controller manager (spec 06 1.1), with its names and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stromboli.api import names
from stromboli.controllers import selection
from stromboli.daemon import flags
from stromboli.daemon.flags import duration, flag, listed, number, path, whole, word, yes


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the flags say."""

    master: str = flag(word, "", "Address of the API server; overrides the one in the kubeconfig file")
    kubeconfig: str = flag(word, "", "Kubeconfig file; without it, the pod's own account")
    kube_api_qps: float = flag(number, 50.0, "Requests per second; 0: no limit")
    kube_api_burst: int = flag(whole, 100, "Requests at once before that limit holds")
    worker_threads: int = flag(whole, 3, "Jobs worked on at a time, in eights")
    worker_threads_for_cronjob: int = flag(whole, 3, "CronJobs worked on at a time")
    worker_threads_for_podgroup: int = flag(whole, 5, "Pods given a PodGroup at a time")
    worker_threads_for_queue: int = flag(whole, 5, "Queues worked on at a time")
    worker_threads_for_gc: int = flag(whole, 1, "Finished jobs deleted at a time")
    max_requeue_num: int = flag(
        whole,
        15,
        "Failures in a row after which a job, queue or flow rests for 5 minutes; negative: never",
    )
    scheduler_name: tuple[str, ...] = flag(
        listed,
        (names.SCHEDULER_NAME,),
        "Pods that ask for one of these schedulers get a PodGroup; repeatable",
    )
    inherit_owner_annotations: bool = flag(
        yes, True, "PodGroups of bare pods take over annotations of the pods' owners"
    )
    controllers: tuple[str, ...] = flag(
        listed, selection.DEFAULT, "Which controllers run: *, name, -name, in a comma-separated list"
    )
    enable_healthz: bool = flag(yes, False, "Serve /healthz, /livez and /readyz")
    healthz_address: str = flag(word, ":11251", "Where health is served")
    enable_metrics: bool = flag(yes, False, "Serve /metrics")
    listen_address: str = flag(word, ":8081", "Where metrics are served")
    ca_cert_file: str = flag(word, "", "Authority of health's clients, for TLS on the health endpoint")
    tls_cert_file: str = flag(word, "", "Certificate of the health endpoint")
    tls_private_key_file: str = flag(word, "", "Its key")
    leader_elect: bool = flag(yes, True, "Elect one of several by a lease")
    leader_elect_lease_duration: float = flag(duration, 15.0, "How long others wait for a silent leader")
    leader_elect_renew_deadline: float = flag(duration, 10.0, "How long a leader tries to renew")
    leader_elect_retry_period: float = flag(duration, 2.0, "Rest between two tries")
    leader_elect_resource_name: str = flag(word, "vc-controller-manager", "Name of the lease")
    leader_elect_resource_namespace: str = flag(word, "volcano-system", "Namespace of the lease")
    lock_object_namespace: str = flag(word, "", "Deprecated; overrides the namespace of the lease")
    feature_gates: tuple[tuple[str, bool], ...] = flag(flags.gates, (), "Name=true,Name=false")
    plugins_dir: Path | None = flag(path, None, "Folder with job plugins of your own, one Python file each")
    log_format: str = flag(word, "text", "text (logfmt) or json")
    v: int = flag(whole, 0, "How much is logged: 4 and more shows details")
    shutdown_timeout: float = flag(duration, 10.0, "How long work under way may take after a stop signal")
    notes: tuple[str, ...] = ()
    """What was accepted and has no effect."""

    def gate(self, name: str) -> bool:
        """Whether a feature is on; all that controllers know are on unless told otherwise."""
        return dict(self.feature_gates).get(name, True)

    @property
    def lease_namespace(self) -> str:
        return self.lock_object_namespace or self.leader_elect_resource_namespace


_SHARDS = "nodes are not sharded by this version"
ACCEPTED: dict[str, str] = {
    "scheduler-configs": _SHARDS,
    "shard-sync-period": _SHARDS,
    "enable-node-event-trigger": _SHARDS,
    "sharding-configmap": _SHARDS,
    "sharding-configmap-namespace": _SHARDS,
    "leader-elect-resource-lock": "a Lease is always used",
    **flags.LOGGING,
}
"""Flags of Volcano's that are taken and do nothing, and why."""
_ACCEPTED = flags.Accepted(
    ACCEPTED,
    quiet={"leader-elect-resource-lock": "leases"},
    switches=flags.LOGGING_SWITCHES | {"enable-node-event-trigger"},
)


def parse(arguments: Sequence[str]) -> Options:
    """What the command line says; `BadFlag` if it makes no sense."""
    options = flags.parse(Options, _ACCEPTED, arguments)
    selection.check(options.controllers)
    return options


def usage() -> str:
    """All flags, one per line."""
    return flags.usage(Options, _ACCEPTED)
