"""The flags that our daemons have in common; each extends them with its own, and with its own defaults."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.daemon.flags import boolean, duration, flag, gates, integer, number, string
from stromboli.kube.election import LeaseSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """Access to the API server, health, features and logs."""

    master: str = flag(string, "", "Address of the API server; overrides the one in the kubeconfig file")
    kubeconfig: str = flag(string, "", "Kubeconfig file; without it, the pod's own account")
    kube_api_qps: float = flag(number, 50.0, "Requests per second")
    kube_api_burst: int = flag(integer, 100, "Requests at once before that limit holds")
    enable_healthz: bool = flag(boolean, False, "Serve /healthz and /readyz")
    healthz_address: str = flag(string, "127.0.0.1:11251", "Where health is served; :11251 for every address")
    ca_cert_file: str = flag(string, "", "Authority of health's clients, for TLS on the health endpoint")
    tls_cert_file: str = flag(string, "", "Certificate of the health endpoint")
    tls_private_key_file: str = flag(string, "", "Its key")
    feature_gates: tuple[tuple[str, bool], ...] = flag(gates, (), "Name=true,Name=false")
    log_format: str = flag(string, "text", "text (logfmt) or json")
    v: int = flag(integer, 0, "How much is logged: 4 and more shows details")
    enable_metrics: bool = False
    listen_address: str = ""
    notes: tuple[str, ...] = ()
    """What was accepted and has no effect."""

    def gate(self, name: str, default: bool = True) -> bool:
        """Whether a feature is on."""
        return dict(self.feature_gates).get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedOptions(CommonOptions):
    """Those of a daemon of which one replica leads, with metrics."""

    enable_metrics: bool = flag(boolean, False, "Serve /metrics")
    leader_elect: bool = flag(boolean, True, "Elect one of several by a lease")
    leader_elect_lease_duration: float = flag(duration, 15.0, "How long others wait for a silent leader")
    leader_elect_renew_deadline: float = flag(duration, 10.0, "How long a leader tries to renew")
    leader_elect_retry_period: float = flag(duration, 2.0, "Rest between two tries")
    leader_elect_resource_name: str = flag(string, "", "Name of the lease")
    leader_elect_resource_namespace: str = flag(string, "volcano-system", "Namespace of the lease")
    lock_object_namespace: str = flag(string, "", "Deprecated; overrides the namespace of the lease")

    def lease_settings(self, identity: str) -> LeaseSettings | None:
        """The lease to acquire, if there is to be an election."""
        if not self.leader_elect:
            return None
        return LeaseSettings(
            self.lock_object_namespace or self.leader_elect_resource_namespace,
            self.leader_elect_resource_name,
            identity,
            self.leader_elect_lease_duration,
            self.leader_elect_renew_deadline,
            self.leader_elect_retry_period,
        )
