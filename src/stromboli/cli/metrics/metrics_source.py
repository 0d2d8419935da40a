"""Where a scheduler's metrics are read: at an address, or through the API server of its cluster.

The API server of `stromboli up` has them itself. Elsewhere the Lease says which pod leads: it is asked through the API
server's proxy, else through a forwarded port. Who may not do that, or where nobody leads, asks a Service, behind which
a replica that stands by may answer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text
from stromboli.cli.cluster.cluster_kinds import name_of
from stromboli.cli.leader.leader_pod import LEASE_NAME, LeaderPod, NoLeader, find_leader, flag_value, port_of
from stromboli.cli.metrics.prometheus_text import LARGEST_PAGE
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access
from stromboli.kube.request import ApiError, NoResponse, Request, api_error

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

READ_TIMEOUT = 30.0
"""Seconds for a page to come."""
MOST_REPLICAS_ASKED = 5
"""Requests to a Service until the replica that leads has answered."""
EMBEDDED_PATH = "/metrics/scheduler"
"""On the API server of `stromboli up`."""
STANDS_BY = b"\nstromboli_leader 0"
_SERVICES = Resource("", "v1", "services", "Service")
_PODS = Resource("", "v1", "pods", "Pod")


class MetricsText(NamedTuple):
    """A page of metrics, and where it comes from, for people."""

    text: bytes
    place: str


class MetricsSource(Protocol):
    async def read(self) -> MetricsText:
        """The page as it is now; `ClusterError`, `ApiError` or `NoResponse` if there is none."""


class Component(NamedTuple):
    """A process that has metrics."""

    name: str
    lease: str
    port: int
    path: str = ""
    """On the API server of `stromboli up`; empty if it has none."""

    @property
    def services(self) -> list[str]:
        """Names of its Service in our manifests and in Volcano's."""
        return [f"stromboli-{self.name}-service", f"volcano-{self.name}-service"]


SCHEDULER = Component("scheduler", LEASE_NAME, 8080, EMBEDDED_PATH)
CONTROLLERS = Component("controllers", "vc-controller-manager", 8081)


class AddressSource:
    """Metrics at an address that the user gave."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._access, self._path = _parts(url)

    async def read(self) -> MetricsText:
        async with Client(self._access) as client:
            try:
                request = Request("GET", self._path)
                return MetricsText(await client.send(request, READ_TIMEOUT, LARGEST_PAGE), self._url)
            except ApiError as error:
                raise ClusterError(f"{self._url}: status {error.status}: {error}") from None


def _parts(url: str) -> tuple[Access, str]:
    example = "http://127.0.0.1:8080/metrics"
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Usage(f"--url {url}: {error}; it is an address such as {example}") from None
    is_plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.fragment or not is_plain:
        raise Usage(f"--url {url}: it is no address such as {example}")
    path = parts.path.rstrip("/") or "/metrics"
    return Access(f"{parts.scheme}://{parts.netloc}"), f"{path}?{parts.query}" if parts.query else path


class Way(NamedTuple):
    """A way to a page."""

    place: str
    get: Callable[[], Awaitable[bytes]]


class ClusterSource:
    """Metrics of a component of a cluster, on the way that led to them before, else on the first that does."""

    def __init__(self, session: ClusterSession, namespace: str, component: Component = SCHEDULER) -> None:
        self._session = session
        self._namespace = namespace
        self._component = component
        self._known: Way | None = None
        self._refusals: list[str] = []

    async def read(self) -> MetricsText:
        if self._known is not None:
            try:
                return MetricsText(await self._known.get(), self._known.place)
            except (ApiError, NoResponse):
                self._known = None  # another leads, perhaps
        self._refusals = []
        if (page := await self._embedded()) is not None:
            return page
        async for way in self._ways():
            try:
                text = await way.get()
            except ApiError as error:
                self._refusals.append(f"{way.place}: {refusal_text(error)}")
            except NoResponse as error:
                self._refusals.append(f"{way.place}: {error}")
            else:
                self._known = way
                return MetricsText(text, way.place)
        raise ClusterError(self._none_text())

    def _none_text(self) -> str:
        name, where = self._component.name, self._namespace
        return (
            f"no metrics of the {name} can be read in namespace {where}: {'; '.join(self._refusals)}."
            f" --system-namespace says where else it runs, and --url reads an address: `kubectl -n {where} port-forward"
            f" deployment/stromboli-{name} {self._component.port}`, then"
            f" `stromboli metrics --url http://127.0.0.1:{self._component.port}/metrics`"
        )

    async def _ways(self) -> AsyncIterator[Way]:
        client, component = self._session.client, self._component
        leader = await self._leader()
        if leader is not None:
            port = port_of(flag_value(leader.words, "listen-address") or f":{component.port}")
            place = f"pod {leader.namespace}/{leader.name}, which leads"
            if flag_value(leader.words, "enable-metrics", "true").lower() not in ("true", "t", "1"):
                self._refusals.append(f"pod {leader.namespace}/{leader.name} leads without --enable-metrics")
            proxy = f"{_PODS.path(leader.namespace, leader.name)}:{port}/proxy/metrics"
            yield Way(f"{place}, by the proxy", lambda: self._get(proxy))
            yield Way(f"{place}, by a forwarded port", lambda: _get_forwarded(client, leader, port))
        for service, service_port in await self._services():
            path = f"{_SERVICES.path(self._namespace, service)}:{service_port}/proxy/metrics"
            yield Way(f"Service {self._namespace}/{service}", lambda path=path: self._get_leading(path))  # type: ignore[misc]

    async def _embedded(self) -> MetricsText | None:
        """The page of the API server of `stromboli up`; None if it is another API server."""
        way = Way(
            f"the API server {self._session.client.access.server}", lambda: self._get(self._component.path)
        )
        if not self._component.path:
            return None
        try:
            text = await way.get()
        except ApiError as error:
            if error.status == 404:
                return None
            if error.status != 403 or self._session.running is not None:
                raise
            self._refusals.append(refusal_text(error))
            return None
        self._known = way
        return MetricsText(text, way.place)

    async def _leader(self) -> LeaderPod | None:
        try:
            return await find_leader(self._session.client, self._namespace, self._component.lease)
        except NoLeader as error:
            self._refusals.append(str(error))
        except ApiError as error:
            self._refusals.append(f"who leads is not known: {refusal_text(error)}")
        return None

    async def _services(self) -> list[tuple[str, str]]:
        """Names and ports of Services of the component; the usual ones for a user who may not list Services."""
        component = self._component
        try:
            listed = await self._session.list(_SERVICES, self._namespace)
        except ApiError as error:
            if error.status != 403:
                raise
            return [(name, str(component.port)) for name in component.services]
        except ClusterError as error:
            self._refusals.append(str(error))
            return []
        services = [
            (name, _port_of_service(service, component.port))
            for service in listed.items
            if (name := name_of(service)).endswith(f"-{component.name}-service")
        ]
        if not services:
            self._refusals.append(f"there is no Service like {component.services[0]}")
        return services

    async def _get(self, path: str) -> bytes:
        return await self._session.client.send(Request("GET", path), READ_TIMEOUT, LARGEST_PAGE)

    async def _get_leading(self, path: str) -> bytes:
        """Of the replica that leads, if it answers at one of the first requests."""
        for _ in range(MOST_REPLICAS_ASKED - 1):
            text = await self._get(path)
            if STANDS_BY not in text:
                return text
        return await self._get(path)


def _port_of_service(service: dict[str, object], default: int) -> str:
    spec = service.get("spec")
    ports = spec.get("ports") if isinstance(spec, dict) else None
    numbers = [
        (port.get("name") != "metrics", str(port.get("port")))
        for port in ports or ()
        if isinstance(port, dict) and isinstance(port.get("port"), int)
    ]
    return min(numbers)[1] if numbers else str(default)


async def _get_forwarded(client: Client, leader: LeaderPod, port: int) -> bytes:
    from stromboli.kube.aiohttp_requests import get_from_pod

    response = await get_from_pod(
        client, leader.namespace, leader.name, port, "/metrics", (), READ_TIMEOUT, LARGEST_PAGE
    )
    if response.status >= 300:
        raise api_error(response.status, response.body, response.retry_after)
    return response.body
