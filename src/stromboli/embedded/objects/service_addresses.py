"""Addresses and ports of nodes for Services: given out once each, and given back with the Service.

What is allocated stands in the Services themselves, so a restart counts the same.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network
from itertools import chain

from stromboli.api.schemas.schema_problems import Problem, invalid
from stromboli.api.schemas.services.service_fields import IPV6, complete_families, family_of
from stromboli.api.schemas.services.service_types import (
    EXTERNAL_NAME,
    NONE,
    has_cluster_ip,
    has_health_port,
    has_node_ports,
    is_headless,
    node_ports,
    spec_of,
    type_of,
    wants_node_ports,
)
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds import status_errors
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change, Record

SERVICES = "services"
SERVICE_RANGE = IPv4Network("10.63.0.0/16")
"""Beside the addresses of simulated pods, which begin at 10.64.0.0."""
NODE_PORTS = range(30000, 32768)
_STATIC_ADDRESSES = 256
"""At the beginning of the range, for those who ask for a certain address."""
_STATIC_PORTS = 86
_TAKEN = "provided port is already allocated"


class ServiceAddresses:
    """Which addresses and ports are in use, and which of them a Service gets."""

    def __init__(self, store: Store, network: IPv4Network = SERVICE_RANGE, ports: range = NODE_PORTS):
        self._network = network
        self._ports = ports
        self._addresses: set[str] = set()
        self._used_ports: set[int] = set()
        for record in store.list(SERVICES):
            with store.reading(record):
                self._count(None, record)
        store.on_apply(self._on_apply)

    @property
    def first(self) -> str:
        """The address of the API server."""
        return str(self._network[1])

    def is_free(self, address: str) -> bool:
        return address not in self._addresses

    def _on_apply(self, change: Change) -> None:
        if change.key.resource == SERVICES:
            self._count(change.before, change.after)

    def _count(self, before: Record | None, after: Record | None) -> None:
        if before is not None:
            spec = spec_of(before.object())
            self._addresses.difference_update(_addresses(spec))
            self._used_ports.difference_update(_ports(spec))
        if after is not None:
            spec = spec_of(after.object())
            self._addresses.update(_addresses(spec))
            self._used_ports.update(_ports(spec))

    # -- allocation

    def allocate(self, kind: Kind, service: Content, old: Content | None) -> None:
        """Give a Service that is about to be stored what it needs and does not have; refuse what others have."""
        spec, name = spec_of(service), str(service["metadata"].get("name", ""))
        before = spec_of(old or {})
        problems: Iterable[Problem] = ()
        if has_cluster_ip(spec):
            problems = [*_unknown_families(spec), *self._allocate_address(spec, _addresses(before))]
        if has_node_ports(spec):
            problems = [*problems, *self._allocate_ports(spec, _ports(before))]
        if problems:
            raise status_errors.invalid(kind, name, [*problems])

    def _allocate_address(self, spec: Content, held: Collection[str]) -> Iterable[Problem]:
        if is_headless(spec):
            return
        addresses = list(spec.get("clusterIPs") or ())
        if not addresses:
            spec["clusterIP"] = self._next_address()
            spec["clusterIPs"] = [spec["clusterIP"]]
        for address in addresses:
            if address not in held and (why := self._why_not(address)):
                yield invalid("spec.clusterIPs", addresses, f"failed to allocate IP {address}: {why}")

    def _why_not(self, text: str) -> str:
        network = self._network
        address = IPv4Address(text) if family_of(text) != IPV6 else None
        if address is None or address not in network or address in (network[0], network[-1]):
            return f"the provided network does not match the current range, which is {network}"
        return "provided IP is already allocated" if text in self._addresses else ""

    def _next_address(self) -> str:
        """Any that is free, of the addresses that nobody asks for by themselves if possible."""
        count = self._network.num_addresses - 2
        static = min(max(16, count // 16), _STATIC_ADDRESSES) if count > 16 else 0
        for first, size in ((1 + static, count - static), (1, static)):
            start = secrets.randbelow(size) if size else 0
            for step in range(size):
                address = str(self._network[first + (start + step) % size])
                if address not in self._addresses:
                    return address
        raise StatusError(
            500,
            f"Internal error occurred: failed to allocate a serviceIP: range is full; delete Services: all"
            f" {count} addresses of {self._network} are in use",
        )

    def _allocate_ports(self, spec: Content, held: Collection[int]) -> Iterable[Problem]:
        shared = _asked_for(spec)
        """Ports of nodes by port: protocols share them."""
        reserved, taken = {*_ports(spec)}, set[int]()
        for index, port in enumerate(spec.get("ports") or ()):
            wanted: int = port.get("nodePort") or shared.get(port["port"]) or 0
            if not wanted and not wants_node_ports(spec):
                continue
            own = not wanted or wanted in held or wanted in taken
            if not own and (why := self._why_no_port(wanted)):
                yield invalid(f"spec.ports[{index}].nodePort", wanted, why)
            number = wanted or self._next_port(reserved)
            port["nodePort"] = shared[port["port"]] = number
            reserved.add(number)
            taken.add(number)
        if has_health_port(spec):
            yield from self._allocate_health_port(spec, held, taken)

    def _allocate_health_port(
        self, spec: Content, held: Collection[int], taken: Collection[int]
    ) -> Iterable[Problem]:
        port = spec.get("healthCheckNodePort")
        if not port:
            spec["healthCheckNodePort"] = self._next_port(taken)
        elif port in taken:
            yield invalid("spec.healthCheckNodePort", port, _TAKEN)
        elif port not in held and (why := self._why_no_port(port)):
            yield invalid("spec.healthCheckNodePort", port, why)

    def _why_no_port(self, port: int) -> str:
        if port not in self._ports:
            first, last = self._ports[0], self._ports[-1]
            return f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
        return _TAKEN if port in self._used_ports else ""

    def _next_port(self, taken: Collection[int]) -> int:
        size = len(self._ports)
        static = _STATIC_PORTS if size > 2 * _STATIC_PORTS else 0
        start = static + secrets.randbelow(size - static)
        for position in chain(range(start, size), range(static, start), range(static)):
            port: int = self._ports[position]
            if port not in self._used_ports and port not in taken:
                return port
        raise StatusError(
            500,
            "Internal error occurred: failed to allocate a nodePort: range is full; delete Services of the types"
            f" NodePort and LoadBalancer: all {size} ports are in use",
        )


def needs_allocation(service: Content) -> bool:
    """Whether a stored Service has no address: earlier releases gave none."""
    spec = spec_of(service)
    if type_of(spec) == EXTERNAL_NAME:
        return False
    missing = wants_node_ports(spec) and any(not port.get("nodePort") for port in spec.get("ports") or ())
    return missing or not spec.get("clusterIP") or not spec.get("clusterIPs") or not spec.get("ipFamilies")


def allocate_stored(addresses: ServiceAddresses, kind: Kind, service: Content) -> None:
    """Give a Service of an earlier release what it would get today; an address that it has stays, whatever it is."""
    spec = spec_of(service)
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    complete_families(service)
    addresses.allocate(kind, service, service)


def _unknown_families(spec: Content) -> Iterable[Problem]:
    """This cluster has addresses of IPv4 alone."""
    policy, families = spec.get("ipFamilyPolicy"), spec.get("ipFamilies") or ()
    if is_headless(spec) and not spec.get("selector"):
        return
    if policy == "RequireDualStack":
        detail = "this cluster is not configured for dual-stack services"
        yield invalid("spec.ipFamilyPolicy", policy, detail)
    for index, family in enumerate(families):
        if family == IPV6:
            yield invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")


def _addresses(spec: Content) -> Collection[str]:
    if not spec or not has_cluster_ip(spec):
        return ()
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
    return [address for address in addresses if address and address != NONE]


def _ports(spec: Content) -> Collection[int]:
    health = spec.get("healthCheckNodePort")
    return node_ports(spec) | ({health} if health else set())


def _asked_for(spec: Content) -> dict[int, int]:
    """The ports of nodes that a Service asks for, by port; of several for the same port the first."""
    ports = reversed(spec.get("ports") or ())
    return {port["port"]: port["nodePort"] for port in ports if port.get("nodePort")}
