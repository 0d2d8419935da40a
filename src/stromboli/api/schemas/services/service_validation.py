"""What is wrong with a Service: ports, addresses and their families, fields that its type does not have."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

from stromboli.api.name_rules import (
    dns_label_errors,
    dns_subdomain_errors,
    port_name_errors,
    qualified_name_errors,
)
from stromboli.api.schemas.metadata_rules import label_problems
from stromboli.api.schemas.schema_problems import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from stromboli.api.schemas.services.service_fields import IPV4, IPV6, SINGLE_STACK, family_of
from stromboli.api.schemas.services.service_types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    NONE,
    Content,
    has_health_port,
    is_external,
    is_headless,
    spec_of,
    type_of,
)

_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_LONGEST_AFFINITY = 24 * 3600
_FORBIDDEN_TO_EXTERNAL_NAMES = "may not be set for ExternalName services"
_OF_LOAD_BALANCERS = "may only be used when `type` is 'LoadBalancer'"


def service_problems(service: Content) -> Iterator[Problem]:
    spec = spec_of(service)
    yield from _type_problems(spec)
    yield from _port_problems(spec)
    yield from label_problems(spec.get("selector") or {}, "spec.selector")
    yield from _affinity_problems(spec)
    yield from address_problems(spec)
    yield from _external_ip_problems(spec)
    yield from _node_port_problems(spec)
    yield from _load_balancer_problems(spec)
    yield from _traffic_problems(spec)


def _type_problems(spec: Content) -> Iterator[Problem]:
    type = type_of(spec)
    if not spec.get("ports") and not is_headless(spec) and type != EXTERNAL_NAME:
        yield required("spec.ports")
    if type in (LOAD_BALANCER, NODE_PORT) and is_headless(spec):
        yield invalid("spec.clusterIPs[0]", NONE, f"may not be set to 'None' for {type} services")
    if type != EXTERNAL_NAME:
        return
    for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(field):
            yield forbidden(f"spec.{field}", _FORBIDDEN_TO_EXTERNAL_NAMES)
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        yield required("spec.externalName")
    for error in dns_subdomain_errors(name) if name else ():
        yield invalid("spec.externalName", name, error)


def _port_problems(spec: Content) -> Iterator[Problem]:
    ports, names = spec.get("ports") or [], set[str]()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{path}.name")
        for error in dns_label_errors(name) if name else ():
            yield invalid(f"{path}.name", name, error)
        if name and name in names:
            yield duplicate(f"{path}.name", name)
        names.add(name)
        yield from _target_problems(port.get("targetPort"), f"{path}.targetPort")
        if port.get("appProtocol") is not None:
            for error in qualified_name_errors(port["appProtocol"]):
                yield invalid(f"{path}.appProtocol", port["appProtocol"], error)


def _target_problems(target: object, path: str) -> Iterator[Problem]:
    if isinstance(target, int) and not 1 <= target <= 65535:
        yield invalid(path, target, "must be between 1 and 65535, inclusive")
    for error in port_name_errors(target) if isinstance(target, str) else ():
        yield invalid(path, target, error)


def _affinity_problems(spec: Content) -> Iterator[Problem]:
    if spec.get("sessionAffinity") != "ClientIP":
        return
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds")
    if seconds is not None and not 0 < seconds <= _LONGEST_AFFINITY:
        detail = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
        yield invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, detail)


def address_problems(spec: Content) -> Iterator[Problem]:
    """Of the addresses within the cluster, and of their families."""
    if type_of(spec) == EXTERNAL_NAME:
        return
    address, addresses = spec.get("clusterIP") or "", list(spec.get("clusterIPs") or ())
    if address and not addresses:
        yield required("spec.clusterIPs")
    elif address and addresses[0] != address:
        yield invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    elif addresses and not address:
        yield invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")
    families = list(spec.get("ipFamilies") or ())
    for index, family in enumerate(families):
        if family not in (IPV4, IPV6):
            yield unsupported(f"spec.ipFamilies[{index}]", family, (IPV4, IPV6))
        if family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    yield from _address_list_problems(addresses, families)
    yield from _policy_problems(spec, addresses, families)


def _address_list_problems(addresses: list[str], families: list[str]) -> Iterator[Problem]:
    if NONE in addresses[:1]:
        if len(addresses) > 1:
            yield invalid("spec.clusterIPs", addresses, "'None' must be the first and only value")
        return
    malformed = [index for index, address in enumerate(addresses) if not family_of(address)]
    for index in malformed:
        yield invalid(f"spec.clusterIPs[{index}]", addresses[index], _NO_ADDRESS)
    if len(addresses) > 2:
        yield invalid("spec.clusterIPs", addresses, "may only hold up to 2 values")
    if malformed:
        return
    if len(addresses) > 1 and len({family_of(address) for address in addresses}) < 2:
        yield invalid("spec.clusterIPs", addresses, "may specify no more than one IP for each IP family")
    for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
        if family in (IPV4, IPV6) and family_of(address) != family:
            detail = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
            yield invalid(f"spec.clusterIPs[{index}]", address, detail)


def _policy_problems(spec: Content, addresses: list[str], families: list[str]) -> Iterator[Problem]:
    policy = spec.get("ipFamilyPolicy")
    if policy == SINGLE_STACK:
        detail = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if len(addresses) == 2:
            yield invalid("spec.ipFamilyPolicy", policy, f"{detail} cluster IPs are specified")
        if len(families) == 2:
            yield invalid("spec.ipFamilyPolicy", policy, f"{detail} IP families are specified")


def _external_ip_problems(spec: Content) -> Iterator[Problem]:
    for index, text in enumerate(spec.get("externalIPs") or ()):
        path = f"spec.externalIPs[{index}]"
        try:
            address = ip_address(text)
        except (AddressValueError, ValueError):
            yield invalid(path, text, _NO_ADDRESS)
        else:
            yield from special_address_problems(address, text, path)


def special_address_problems(address: IPv4Address | IPv6Address, text: str, path: str) -> Iterator[Problem]:
    """Addresses that cannot be those of an endpoint."""
    for special, detail in (
        (address.is_unspecified, f"may not be unspecified ({text})"),
        (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
    ):
        if special:
            yield invalid(path, text, detail)


def _node_port_problems(spec: Content) -> Iterator[Problem]:
    ports = spec.get("ports") or []
    if type_of(spec) == CLUSTER_IP:
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")
    seen: set[tuple[str, str, int]] = set()
    for field in ("nodePort", "port"):
        for index, port in enumerate(ports):
            protocol, number = port.get("protocol") or "TCP", port.get(field)
            if number and (field, protocol, number) in seen:
                path = f"spec.ports[{index}]"
                shown = {"port": number, "protocol": protocol}
                yield duplicate(path, shown) if field == "port" else duplicate(f"{path}.nodePort", number)
            if number:
                seen.add((field, protocol, number))


def _load_balancer_problems(spec: Content) -> Iterator[Problem]:
    balanced = type_of(spec) == LOAD_BALANCER
    ranges = spec.get("loadBalancerSourceRanges") or ()
    if ranges and not balanced:
        yield forbidden("spec.LoadBalancerSourceRanges", _OF_LOAD_BALANCERS)
    for index, text in enumerate(ranges):
        if not _is_network(text.strip()):
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid(f"spec.LoadBalancerSourceRanges[{index}]", text, detail)
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        yield forbidden("spec.allocateLoadBalancerNodePorts", _OF_LOAD_BALANCERS)
    name = spec.get("loadBalancerClass")
    if name is not None and not balanced:
        yield forbidden("spec.loadBalancerClass", _OF_LOAD_BALANCERS)
    for error in qualified_name_errors(name) if name is not None and balanced else ():
        yield invalid("spec.loadBalancerClass", name, error)


def _is_network(text: str) -> bool:
    try:
        return "/" in text and ip_network(text, strict=False) is not None
    except ValueError:
        return False


def _traffic_problems(spec: Content) -> Iterator[Problem]:
    policy = spec.get("externalTrafficPolicy")
    if policy and not is_external(spec):
        detail = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", policy, detail)
    port = spec.get("healthCheckNodePort") or 0
    if port and not has_health_port(spec):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", port, detail)
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield unsupported("spec.trafficDistribution", distribution, _DISTRIBUTIONS)


def service_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """Addresses stay as they are, unless the Service becomes or ceases to be a name for something else."""
    before, after = spec_of(old), spec_of(new)
    if EXTERNAL_NAME in (type_of(before), type_of(after)):
        return
    yield from _address_changes(before, after)
    if type_of(before) == type_of(after) == LOAD_BALANCER:
        former, name = before.get("loadBalancerClass"), after.get("loadBalancerClass")
        if former != name:
            yield invalid("spec.loadBalancerClass", name, "may not change once set")
    port = before.get("healthCheckNodePort") if has_health_port(before) else None
    if port and has_health_port(after) and after.get("healthCheckNodePort") != port:
        yield forbidden("spec.healthCheckNodePort", "field is immutable")


def _address_changes(before: Content, after: Content) -> Iterator[Problem]:
    former, addresses = list(before.get("clusterIPs") or ()), list(after.get("clusterIPs") or ())
    if not former:
        return
    if len(former) == len(addresses):
        for index, address in enumerate(former):
            if address != addresses[index]:
                yield invalid(f"spec.clusterIPs[{index}]", addresses, "may not change once set")
    elif addresses and addresses[0] != former[0]:
        yield invalid("spec.clusterIPs[0]", addresses, "may not change once set")
    families = [list(spec.get("ipFamilies") or ()) for spec in (before, after)]
    if former != [NONE] and families[0] and families[0][:1] != families[1][:1]:
        yield invalid("spec.ipFamilies[0]", families[1], "may not change once set")
