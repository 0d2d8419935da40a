"""Services: addresses and ports that the API server gives out, and endpoints that the controllers make of pods."""

from __future__ import annotations

import copy
import ipaddress
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import REAL, chosen, control_plane
from tests.kubernetes.test_claim_controllers import (
    BASES,
    create,
    delete,
    name_it,
    patch,
    path_of,
    read,
    wait,
    wait_gone,
)
from tests.kubernetes.test_native_kinds import answer

Json = Any
WEB = {"port": 80, "targetPort": "web"}
_RANGE = re.compile(r", which is [0-9./]+$")
"""Only the embedded server tells which it is."""


@pytest.fixture(scope="module")
def plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with control_plane(tmp_path_factory.mktemp("services")) as running:
        if chosen() == REAL:
            running.start("kube-controller-manager")
        yield running


def service(plane: ControlPlane, name: str = "", **spec: Json) -> Json:
    return create(plane, "Service", {"spec": {"ports": [{"port": 80}], **spec}}, name or name_it("svc"))


def refusal(plane: ControlPlane, spec: Json, query: str = "") -> str:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "wrong"}, "spec": spec}
    status, content = answer(plane, "POST", f"{BASES['Service']}{query}", body)
    assert status == 422, content
    return _RANGE.sub("", str(content["message"]))


def replace(plane: ControlPlane, content: Json) -> tuple[int, Json]:
    return answer(plane, "PUT", path_of(content), content)


# -- addresses


@pytest.mark.smoke
def test_a_service_gets_an_address_of_its_own(plane: ControlPlane) -> None:
    stored = [service(plane)["spec"] for _ in range(3)]
    addresses = {spec.pop("clusterIP") for spec in stored}
    assert len(addresses) == 3
    assert {spec.pop("clusterIPs")[0] for spec in stored} == addresses
    assert stored[0] == {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }


def test_the_api_server_has_a_service_with_the_first_address(plane: ControlPlane) -> None:
    def listed() -> list[dict[str, Any]]:
        services = json.loads(plane.request("GET", BASES["Service"]))["items"]
        return [each for each in services if each["metadata"]["name"] == "kubernetes"]

    plane.wait(
        lambda: bool(listed()), "the service kubernetes"
    )  # a real API server makes it after it is ready
    (stored,) = listed()
    assert int(ipaddress.ip_address(stored["spec"]["clusterIP"])) & 255 == 1
    assert stored["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
    (port,) = stored["spec"]["ports"]
    assert port == {"name": "https", "port": 443, "protocol": "TCP", "targetPort": plane.port}
    assert "selector" not in stored["spec"]


def test_an_address_is_given_to_who_asks_for_it_and_given_back(plane: ControlPlane) -> None:
    first = service(plane)
    address = first["spec"]["clusterIP"]
    assert refusal(plane, {"ports": [{"port": 80}], "clusterIP": address}) == (
        f'Service "wrong" is invalid: spec.clusterIPs: Invalid value: ["{address}"]:'
        f" failed to allocate IP {address}: provided IP is already allocated"
    )
    delete(plane, first)
    again = service(plane, clusterIP=address)
    assert again["spec"]["clusterIPs"] == [address]


def test_services_without_an_address(plane: ControlPlane) -> None:
    headless = service(plane, clusterIP="None", selector={"a": "b"})["spec"]
    assert headless["clusterIPs"] == ["None"]
    assert (headless["ipFamilies"], headless["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    undirected = service(plane, clusterIP="None")["spec"]
    assert (undirected["ipFamilies"], undirected["ipFamilyPolicy"]) == (
        ["IPv4", "IPv6"],
        "RequireDualStack",
    )
    named = create(plane, "Service", {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert named["spec"] == {
        "type": "ExternalName",
        "externalName": "example.com",
        "sessionAffinity": "None",
    }


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"ports": [{"port": 80}], "clusterIP": "1.2.3.4"},
            'spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network'
            " does not match the current range",
        ),
        (
            {"ports": [{"port": 80}], "clusterIP": "here"},
            'spec.clusterIPs[0]: Invalid value: "here": must be a valid IP address,'
            " (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            {"ports": [{"port": 80}], "ipFamilyPolicy": "RequireDualStack"},
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for'
            " dual-stack services",
        ),
        (
            {"ports": [{"port": 80}], "ipFamilies": ["IPv6"]},
            'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster',
        ),
        ({}, "spec.ports: Required value"),
        (
            {"ports": [{"port": 80}, {"port": 81}]},
            "[spec.ports[0].name: Required value, spec.ports[1].name: Required value]",
        ),
        (
            {"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 81}]},
            'spec.ports[1].name: Duplicate value: "a"',
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30001}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            {"ports": [{"port": 80, "nodePort": 80}], "type": "NodePort"},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid"
            " ports is 30000-32767",
        ),
        (
            {"ports": [{"port": 80}], "type": "NodePort", "clusterIP": "None"},
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            {"ports": [{"port": 80, "targetPort": 70000}]},
            "spec.ports[0].targetPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"type": "ExternalName"}, "spec.externalName: Required value"),
        (
            {"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.0.0.9"},
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        (
            {"ports": [{"port": 80}], "externalTrafficPolicy": "Local"},
            'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
        ),
        (
            {"ports": [{"port": 80}], "loadBalancerClass": "a/b"},
            "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (
            {"ports": [{"port": 80}], "externalIPs": ["127.0.0.1"]},
            'spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range'
            " (127.0.0.0/8, ::1/128)",
        ),
    ],
)
def test_what_is_wrong_with_a_service_is_told(plane: ControlPlane, spec: Json, problem: str) -> None:
    assert refusal(plane, spec) == f'Service "wrong" is invalid: {problem}'


def test_the_address_stays_when_the_service_changes(plane: ControlPlane) -> None:
    stored = service(plane)
    address = stored["spec"]["clusterIP"]
    plain = copy.deepcopy(stored)
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        del plain["spec"][field]
    plain["spec"]["ports"][0]["port"] = 81
    status, updated = replace(plane, plain)
    assert (status, updated["spec"]["clusterIPs"]) == (200, [address])
    updated["spec"]["clusterIP"] = "10.0.0.250"
    status, refused = replace(plane, updated)
    assert status == 422
    assert refused["message"] == (
        f'Service "{stored["metadata"]["name"]}" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.250"]:'
        " may not change once set"
    )


def test_a_service_that_becomes_a_name_gives_its_address_back(plane: ControlPlane) -> None:
    stored = service(plane)
    address = stored["spec"]["clusterIP"]
    named = patch(plane, stored, {"spec": {"type": "ExternalName", "externalName": "example.com"}})
    assert "clusterIP" not in named["spec"]
    assert "ipFamilies" not in named["spec"]
    service(plane, clusterIP=address)
    back = patch(plane, stored, {"spec": {"type": "ClusterIP", "externalName": None}})
    assert back["spec"]["clusterIP"] not in ("", address)


def test_ports_of_nodes(plane: ControlPlane) -> None:
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "port": 53},
        {"name": "web", "port": 80},
    ]
    stored = service(plane, type="NodePort", ports=ports)
    udp, tcp, web = (port["nodePort"] for port in stored["spec"]["ports"])
    assert udp == tcp != web
    assert all(30000 <= port <= 32767 for port in (udp, web))
    assert stored["spec"]["externalTrafficPolicy"] == "Cluster"
    assert refusal(plane, {"type": "NodePort", "ports": [{"port": 80, "nodePort": web}]}) == (
        'Service "wrong" is invalid: spec.ports[0].nodePort: Invalid value:'
        f" {web}: provided port is already allocated"
    )
    plain = patch(plane, stored, {"spec": {"type": "ClusterIP"}})
    assert not any("nodePort" in port for port in plain["spec"]["ports"])
    assert "externalTrafficPolicy" not in plain["spec"]
    other = service(plane, type="NodePort", ports=[{"port": 80, "nodePort": web}])
    assert other["spec"]["ports"][0]["nodePort"] == web


def test_a_load_balancer_waits_for_who_makes_it(plane: ControlPlane) -> None:
    stored = service(plane, type="LoadBalancer", externalTrafficPolicy="Local")
    assert stored["status"] == {"loadBalancer": {}}
    assert stored["spec"]["allocateLoadBalancerNodePorts"] is True
    assert stored["spec"]["healthCheckNodePort"] != stored["spec"]["ports"][0]["nodePort"]
    without = service(plane, type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    assert "nodePort" not in without["spec"]["ports"][0]


def test_a_dry_run_takes_nothing(plane: ControlPlane) -> None:
    stored = service(plane)
    address = stored["spec"]["clusterIP"]
    delete(plane, stored)
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name_it("dry")},
        "spec": {"ports": [{"port": 80}], "clusterIP": address},
    }
    assert answer(plane, "POST", f"{BASES['Service']}?dryRun=All", body)[0] == 200
    assert service(plane, clusterIP=address)["spec"]["clusterIP"] == address


def test_session_affinity_has_a_timeout(plane: ControlPlane) -> None:
    spec = service(plane, sessionAffinity="ClientIP")["spec"]
    assert spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}


# -- endpoints


def node(plane: ControlPlane, zone: str = "") -> str:
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    return str(create(plane, "Node", {}, labels=labels)["metadata"]["name"])


def pod(plane: ControlPlane, labels: Json, node: str, address: str, ready: bool = True, **spec: Json) -> Json:
    """A pod that runs, as far as its status says."""
    base = {
        "containers": [
            {"name": "main", "image": "busybox", "ports": [{"name": "web", "containerPort": 8080}]}
        ],
        "nodeName": node,
    }
    stored = create(plane, "Pod", {"spec": {**base, **spec}}, labels=labels)
    set_status(plane, stored, address, ready)
    return stored


def set_status(plane: ControlPlane, pod: Json, address: str, ready: bool, phase: str = "Running") -> None:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    addresses = {"podIP": address, "podIPs": [{"ip": address}]}
    patch(plane, pod, {"status": {"phase": phase, "conditions": conditions, **addresses}}, "/status")


def endpoints(plane: ControlPlane, service: Json) -> Json:
    name = service["metadata"]["name"]
    status, content = answer(plane, "GET", f"{BASES['Endpoints']}/{name}")
    return content if status == 200 else {}


def slices(plane: ControlPlane, service: Json) -> list[Json]:
    path = f"{BASES['EndpointSlice']}?labelSelector=kubernetes.io/service-name={service['metadata']['name']}"
    listed: list[Json] = json.loads(plane.request("GET", path))["items"]
    return listed


def shown(plane: ControlPlane, service: Json) -> dict[str, tuple[bool, bool, bool]]:
    """Addresses in slices with their conditions."""
    return {
        endpoint["addresses"][0]: (conditions["ready"], conditions["serving"], conditions["terminating"])
        for each in slices(plane, service)
        for endpoint in each.get("endpoints") or ()
        for conditions in (endpoint["conditions"],)
    }


def wait_shown(plane: ControlPlane, service: Json, expected: dict[str, tuple[bool, bool, bool]]) -> None:
    plane.wait(lambda: shown(plane, service) == expected, f"the slices to show {expected}", 60)


def addresses(plane: ControlPlane, service: Json) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for subset in endpoints(plane, service).get("subsets") or ():
        for field in ("addresses", "notReadyAddresses"):
            found.setdefault(field, []).extend(entry["ip"] for entry in subset.get(field) or ())
    return {field: sorted(listed) for field, listed in found.items() if listed}


def wait_addresses(plane: ControlPlane, service: Json, **expected: list[str]) -> None:
    plane.wait(lambda: addresses(plane, service) == expected, f"the endpoints to be {expected}", 60)


READY, UNREADY = (True, True, False), (False, False, False)


def test_endpoints_follow_pods_and_their_readiness(plane: ControlPlane) -> None:
    app, zone = {"app": name_it("app")}, name_it("zone")
    place = node(plane, zone)
    web = create(plane, "Service", {"spec": {"selector": app, "ports": [WEB]}}, labels={"team": "a"})
    wait_shown(plane, web, {})
    plane.wait(lambda: len(slices(plane, web)) == 1, "a slice without endpoints", 60)
    first = pod(plane, app, place, "10.1.0.1")
    second = pod(plane, app, place, "10.1.0.2", ready=False)
    pod(plane, {"app": "another"}, place, "10.1.0.3")
    wait_shown(plane, web, {"10.1.0.1": READY, "10.1.0.2": UNREADY})
    wait_addresses(plane, web, addresses=["10.1.0.1"], notReadyAddresses=["10.1.0.2"])

    (each,) = slices(plane, web)
    assert each["addressType"] == "IPv4"
    assert each["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert each["metadata"]["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": web["metadata"]["name"],
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert each["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "name": web["metadata"]["name"],
            "uid": web["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    target = {"kind": "Pod", "namespace": "default"}
    target |= {"name": first["metadata"]["name"], "uid": first["metadata"]["uid"]}
    (ready,) = (entry for entry in each["endpoints"] if entry["conditions"]["ready"])
    assert ready == {
        "addresses": ["10.1.0.1"],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "nodeName": place,
        "targetRef": target,
        "zone": zone,
    }
    made = endpoints(plane, web)
    assert made["metadata"]["labels"] == {
        "team": "a",
        "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }
    (subset,) = made["subsets"]
    assert subset["addresses"] == [{"ip": "10.1.0.1", "nodeName": place, "targetRef": target}]
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]

    set_status(plane, second, "10.1.0.2", ready=True)
    wait_shown(plane, web, {"10.1.0.1": READY, "10.1.0.2": READY})
    wait_addresses(plane, web, addresses=["10.1.0.1", "10.1.0.2"])
    set_status(plane, first, "10.1.0.1", ready=False, phase="Succeeded")
    wait_shown(plane, web, {"10.1.0.2": READY})
    patch(plane, second, {"metadata": {"labels": {"app": "moved"}}})
    wait_shown(plane, web, {})
    wait_addresses(plane, web)
    delete(plane, web)
    wait_gone(plane, {"kind": "Endpoints", "metadata": made["metadata"]})


def test_a_pod_that_is_being_deleted_serves_on_without_new_work(plane: ControlPlane) -> None:
    app = {"app": name_it("app")}
    place = node(plane)
    web = service(plane, selector=app)
    leaving = pod(plane, app, place, "10.2.0.1", terminationGracePeriodSeconds=300)
    wait_shown(plane, web, {"10.2.0.1": READY})
    assert answer(plane, "DELETE", path_of(leaving))[0] == 200
    wait_shown(plane, web, {"10.2.0.1": (False, True, True)})
    wait_addresses(plane, web)
    delete(plane, leaving)
    wait_shown(plane, web, {})


def test_a_headless_service_may_show_pods_that_are_not_ready(plane: ControlPlane) -> None:
    app, name = {"app": name_it("app")}, name_it("ring")
    place = node(plane)
    ring = service(plane, name, selector=app, clusterIP="None", publishNotReadyAddresses=True)
    pod(plane, app, place, "10.3.0.1", ready=False, hostname="ring-0", subdomain=name)
    wait_shown(plane, ring, {"10.3.0.1": (True, False, False)})
    wait_addresses(plane, ring, addresses=["10.3.0.1"])
    (each,) = slices(plane, ring)
    assert each["endpoints"][0]["hostname"] == "ring-0"
    assert each["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert endpoints(plane, ring)["subsets"][0]["addresses"][0]["hostname"] == "ring-0"
    assert endpoints(plane, ring)["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


def test_pods_with_different_ports_are_apart(plane: ControlPlane) -> None:
    app = {"app": name_it("app")}
    place = node(plane)
    both = service(
        plane, selector=app, ports=[{"name": "a", **WEB}, {"name": "b", "port": 90, "targetPort": 9}]
    )
    pod(plane, app, place, "10.4.0.1")
    pod(plane, app, place, "10.4.0.2", containers=[{"name": "main", "image": "busybox"}])
    wait_shown(plane, both, {"10.4.0.1": READY, "10.4.0.2": READY})
    by_ports = {
        tuple(port["port"] for port in each["ports"]): [
            endpoint["addresses"][0] for endpoint in each["endpoints"]
        ]
        for each in slices(plane, both)
    }
    assert by_ports == {(8080, 9): ["10.4.0.1"], (9,): ["10.4.0.2"]}
    subsets = {
        tuple(port["port"] for port in subset["ports"]): sorted(entry["ip"] for entry in subset["addresses"])
        for subset in endpoints(plane, both)["subsets"]
    }
    assert subsets == {(8080,): ["10.4.0.1"], (9,): ["10.4.0.1", "10.4.0.2"]}


def test_slices_hold_a_hundred_endpoints_each(plane: ControlPlane) -> None:
    app = {"app": name_it("app")}
    place = node(plane)
    wide = service(plane, selector=app)
    pods = [pod(plane, app, place, f"10.5.{number // 100}.{number % 100}") for number in range(103)]
    expected = {f"10.5.{number // 100}.{number % 100}": READY for number in range(103)}
    wait_shown(plane, wide, expected)
    assert max(len(each["endpoints"]) for each in slices(plane, wide)) <= 100
    delete(plane, pods[0])
    del expected["10.5.0.0"]
    wait_shown(plane, wide, expected)


def test_endpoints_of_a_service_without_selector_are_mirrored_into_slices(plane: ControlPlane) -> None:
    outside = service(plane)
    subsets = [
        {
            "addresses": [{"ip": "10.6.0.1"}],
            "notReadyAddresses": [{"ip": "10.6.0.2"}],
            "ports": [{"port": 5432, "protocol": "TCP"}],
        }
    ]
    made = create(plane, "Endpoints", {"subsets": subsets}, outside["metadata"]["name"])

    def mirrored() -> list[tuple[str, bool]]:
        listed = [endpoint for each in slices(plane, outside) for endpoint in each.get("endpoints") or ()]
        return sorted((endpoint["addresses"][0], endpoint["conditions"]["ready"]) for endpoint in listed)

    plane.wait(lambda: mirrored() == [("10.6.0.1", True), ("10.6.0.2", False)], "a slice of them", 60)
    (each,) = slices(plane, outside)
    assert each["ports"] == [{"name": "", "port": 5432, "protocol": "TCP"}]
    manager = each["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
    assert manager == "endpointslicemirroring-controller.k8s.io"
    (owner,) = each["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Endpoints", made["metadata"]["uid"])
    assert read(plane, made)["subsets"] == subsets
    patch(plane, made, {"subsets": [{"addresses": [{"ip": "10.6.0.3"}], "ports": subsets[0]["ports"]}]})
    plane.wait(lambda: mirrored() == [("10.6.0.3", True)], "the slice to follow", 60)
    delete(plane, made)
    plane.wait(lambda: mirrored() == [], "the slice to go", 60)


def test_endpoints_that_somebody_changes_are_put_right(plane: ControlPlane) -> None:
    app = {"app": name_it("app")}
    web = service(plane, selector=app)
    pod(plane, app, node(plane), "10.7.0.1")
    wait_addresses(plane, web, addresses=["10.7.0.1"])
    wait_shown(plane, web, {"10.7.0.1": READY})
    (each,) = slices(plane, web)
    delete(plane, {"kind": "EndpointSlice", **each})
    wait(plane, web, lambda _: shown(plane, web) == {"10.7.0.1": READY}, "the slice to come back")
