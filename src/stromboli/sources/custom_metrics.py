"""Node usage from the custom metrics API of Kubernetes, where the Prometheus adapter serves it (`prometheus_adaptor`).

Without an address, requests go to the API server of the cluster that this process runs in, with the token of its
service account; with an address (as of `kubectl proxy`), there, without a token.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.model.node_usage import NodeUsage
from stromboli.sources.usage_source import BadMetrics, Metrics, decoded, trust
from stromboli.transport import Call, Trust, send

TIMEOUT = 30.0
PATH = "/apis/custom.metrics.k8s.io/v1beta2/nodes/*/"
CPU, MEMORY = "node_cpu_usage_avg", "node_memory_usage_avg"
IN_CLUSTER = "https://kubernetes.default.svc"
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Described(Struct):
    name: str


class Value(Struct, rename="camel"):
    described_object: Described
    value: str
    timestamp: datetime | None = None


class Response(Struct):
    items: list[Value] = field(default_factory=list)


class CustomMetrics:
    """Two lists with a value for each node; fractions become percents."""

    def __init__(self, metrics: Metrics, timeout: float = TIMEOUT, account: Path = ACCOUNT):
        self._url = metrics.get("address", "").rstrip("/")
        self._account = None if self._url else account
        self._trust = trust(metrics)
        self._timeout = timeout

    def read(self, nodes: Collection[str], now: float) -> dict[str, NodeUsage]:
        cpu, memory = self._query(CPU, now), self._query(MEMORY, now)
        return {
            node: NodeUsage(cpu[node][0], memory[node][0], min(cpu[node][1], memory[node][1]))
            for node in nodes
            if node in cpu and node in memory
        }

    def _query(self, metric: str, now: float) -> dict[str, tuple[float, float]]:
        """Percent and time, by node."""
        call = Call(
            (self._url or IN_CLUSTER) + PATH + metric,
            None,
            self._headers(),
            self._timeout,
            self._trust_for_call(),
        )
        response = decoded(send(call), Response, "prometheus_adaptor")
        usage = {}
        for item in response.items:
            percent = _percent(item.value)
            if percent is not None:
                at = item.timestamp.timestamp() if item.timestamp is not None else now
                usage[item.described_object.name] = (percent, at)
        return usage

    def _headers(self) -> dict[str, str]:
        """The token is read afresh every time: Kubernetes replaces it now and then."""
        if self._account is None:
            return {}
        try:
            return {"Authorization": f"Bearer {(self._account / 'token').read_text().strip()}"}
        except (OSError, UnicodeDecodeError):
            raise BadMetrics(
                "metrics: type prometheus_adaptor needs an address outside of a cluster, such as the one"
                " that kubectl proxy prints"
            ) from None

    def _trust_for_call(self) -> Trust:
        return Trust(self._trust.verify, str(self._account / "ca.crt")) if self._account else self._trust


def _percent(quantity: str) -> float | None:
    try:
        return max(float(exact(quantity) * 100), 0.0)
    except (QuantityError, OverflowError):
        return None
