"""Kinds of `resource.k8s.io`: the same on the real API server and on the embedded one."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from stromboli.api.schemas import builtin_schemas
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.published_schemas import published_schemas
from tests.kubernetes.test_native_kinds import MERGE, answer
from tests.kubernetes.test_tables_and_rights import TABLE, get

Json = Any
ROOT = "/apis/resource.k8s.io/v1"
PLURALS = {
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "namespaces/default/resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
}
CLASS = {"deviceClassName": "gpu"}
POOL = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
LABEL = "a lowercase RFC 1123 label must consist of"
NO_REQUEST = "must be the name of a request in the claim"
NODES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_numbers = itertools.count()


def create(plane: ControlPlane, kind: str, spec: Json, query: str = "?dryRun=All") -> tuple[int, Json]:
    meta = {"name": f"device-{next(_numbers)}"}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": meta, "spec": spec}
    return answer(plane, "POST", f"{ROOT}/{PLURALS[kind]}{query}", body)


def created(plane: ControlPlane, kind: str, spec: Json) -> Json:
    status, content = create(plane, kind, spec, "")
    assert status == 200, content
    return content


def causes(content: Json) -> list[tuple[str, str]]:
    listed = content["details"].get("causes") or []
    return sorted((cause["field"], cause["message"]) for cause in listed)


def assert_refused(status: int, content: Json, expected: list[tuple[str, str]]) -> None:
    """For exactly these fields, each with a message that contains this text."""
    assert status == 422, content
    actual = causes(content)
    assert [field for field, _ in actual] == [field for field, _ in sorted(expected)], actual
    for (_, message), (_, text) in zip(actual, sorted(expected), strict=True):
        assert text in message


def request(name: str = "a", **exactly: Json) -> Json:
    return {"name": name, "exactly": {**CLASS, **exactly}}


def claim(*requests: Json, **devices: Json) -> Json:
    return {"devices": {"requests": list(requests), **devices}}


def selecting(expression: str) -> Json:
    return {"selectors": [{"cel": {"expression": expression}}]}


def slice_of(*devices: Json, **spec: Json) -> Json:
    full = {"driver": "gpu.example.com", "pool": POOL, "nodeName": "n1", **spec}
    listed = {"devices": list(devices)} if devices else {}
    return {key: value for key, value in {**full, **listed}.items() if value is not None}


def device(name: str = "d", **more: Json) -> Json:
    return {"name": name, **more}


def shared(policy: Json) -> Json:
    return device(allowMultipleAllocations=True, capacity={"m": {"value": "8Gi", "requestPolicy": policy}})


def test_the_kinds_are_offered_with_a_status_of_claims_alone(plane: ControlPlane) -> None:
    resources = json.loads(plane.request("GET", ROOT))["resources"]
    names = {entry["name"]: entry["namespaced"] for entry in resources}
    assert names == {
        "deviceclasses": False,
        "resourceclaims": True,
        "resourceclaims/status": True,
        "resourceclaimtemplates": True,
        "resourceslices": False,
    }
    assert not any("shortNames" in entry for entry in resources)


def test_fields_are_published_as_our_schemas_have_them(plane: ControlPlane) -> None:
    published = published_schemas(plane, ROOT, "io.k8s.api.resource.v1.")
    assert len(published) == 39
    for name, schema in published.items():
        ours = builtin_schemas.named(name)
        assert set(ours.required) == set(schema.get("required") or ()), name
        assert ours.properties.keys() == (schema.get("properties") or {}).keys(), name
        for field, theirs in (schema.get("properties") or {}).items():
            known = ours.properties[field]
            assert list(known.enum) == theirs.get("enum", []), f"{name}.{field}"
            assert (known.list_type, list(known.list_map_keys), known.merge_key) == (
                theirs.get("x-kubernetes-list-type", ""),
                theirs.get("x-kubernetes-list-map-keys", []),
                theirs.get("x-kubernetes-patch-merge-key", ""),
            ), f"{name}.{field}"


ACCEPTED = [
    ("ResourceClaim", claim(request()), claim(request(allocationMode="ExactCount", count=1))),
    ("ResourceClaim", claim(request(count=0)), claim(request(allocationMode="ExactCount", count=1))),
    ("ResourceClaim", claim(request(allocationMode="All")), claim(request(allocationMode="All"))),
    (
        "ResourceClaim",
        claim({"name": "a", "firstAvailable": [{"name": "x", **CLASS}]}),
        claim(
            {
                "name": "a",
                "firstAvailable": [{"name": "x", **CLASS, "allocationMode": "ExactCount", "count": 1}],
            }
        ),
    ),
    ("DeviceClass", selecting("device.driver == 'x'"), selecting("device.driver == 'x'")),
    (
        "DeviceClass",
        {"extendedResourceName": "example.com/gpu"},
        {"extendedResourceName": "example.com/gpu"},
    ),
    ("ResourceSlice", slice_of(), slice_of()),
    ("ResourceSlice", slice_of(nodeName=None, allNodes=True), slice_of(nodeName=None, allNodes=True)),
    ("ResourceSlice", *2 * (slice_of(device(attributes={"a.b/c": {"bool": True}})),)),
    ("ResourceSlice", *2 * (slice_of(shared({"default": "1Gi", "validRange": {"min": "1Gi"}})),)),
    ("ResourceSlice", *2 * (slice_of(sharedCounters=[{"name": "a", "counters": {"b": {"value": "1"}}}]),)),
]


@pytest.mark.parametrize(("kind", "spec", "stored"), ACCEPTED)
def test_what_is_accepted_gets_its_defaults(plane: ControlPlane, kind: str, spec: Json, stored: Json) -> None:
    status, content = create(plane, kind, spec)
    assert (status, content["spec"]) == (200, stored)


REFUSED = [
    ("ResourceClaim", claim(request(), request()), [("spec.devices.requests[1]", "Duplicate value")]),
    ("ResourceClaim", claim(request("A_b")), [("spec.devices.requests[0].name", LABEL)]),
    ("ResourceClaim", claim({"name": "a"}), [("spec.devices.requests[0]", "exactly one of `exactly` or")]),
    (
        "ResourceClaim",
        claim({**request(), "firstAvailable": [{"name": "x", **CLASS}]}),
        [("spec.devices.requests[0]", "multiple fields are set")],
    ),
    (
        "ResourceClaim",
        claim({"name": "a", "firstAvailable": [{"name": str(number), **CLASS} for number in range(9)]}),
        [("spec.devices.requests[0].firstAvailable", "must have at most 8 items")],
    ),
    (
        "ResourceClaim",
        claim(*[request(f"r{number}") for number in range(33)]),
        [("spec.devices.requests", "must have at most 32 items")],
    ),
    (
        "ResourceClaim",
        claim(request(count=-1)),
        [("spec.devices.requests[0].exactly.count", "must be greater than zero")],
    ),
    (
        "ResourceClaim",
        claim(request(allocationMode="All", count=2)),
        [("spec.devices.requests[0].exactly.count", "must not be specified when allocationMode is 'All'")],
    ),
    (
        "ResourceClaim",
        claim(request(deviceClassName="No_Class")),
        [("spec.devices.requests[0].exactly.deviceClassName", "RFC 1123 subdomain")],
    ),
    (
        "ResourceClaim",
        claim(request(**selecting("device.driver =="))),
        [("spec.devices.requests[0].exactly.selectors[0].cel.expression", "Syntax error: mismatched input")],
    ),
    (
        "ResourceClaim",
        claim(request(**selecting("x" * 10241))),
        [
            (
                "spec.devices.requests[0].exactly.selectors[0].cel.expression",
                "may not be more than 10240 bytes",
            )
        ],
    ),
    (
        "ResourceClaim",
        claim(request(), constraints=[{"matchAttribute": "model"}]),
        [
            (
                "spec.devices.constraints[0].matchAttribute",
                "a fully qualified name must be a domain and a name",
            )
        ],
    ),
    (
        "ResourceClaim",
        claim(request(), constraints=[{"matchAttribute": "a.b/9x", "requests": ["b", "a/x"]}]),
        [
            ("spec.devices.constraints[0].matchAttribute", "a valid C identifier"),
            ("spec.devices.constraints[0].requests[0]", NO_REQUEST),
            ("spec.devices.constraints[0].requests[1]", NO_REQUEST),
        ],
    ),
    ("ResourceClaim", claim(request(), constraints=[{}]), [("spec.devices.constraints[0]", "is required")]),
    (
        "ResourceClaim",
        claim(request(), config=[{}, {"opaque": {"driver": "a_b", "parameters": {}}, "requests": ["z"]}]),
        [
            ("spec.devices.config[0].opaque", "Required value"),
            ("spec.devices.config[1].opaque.driver", "RFC 1123 subdomain"),
            ("spec.devices.config[1].requests[0]", NO_REQUEST),
        ],
    ),
    (
        "ResourceClaim",
        claim(request(tolerations=[{"operator": "Exists", "value": "x"}, {"key": "a b"}])),
        [
            ("spec.devices.requests[0].exactly.tolerations[0].value", "must be empty for operator `Exists`"),
            ("spec.devices.requests[0].exactly.tolerations[1].key", "name part must consist of"),
        ],
    ),
    (
        "ResourceClaim",
        claim(request(adminAccess=True)),
        [("spec.devices.requests[0].adminAccess", "`resource.kubernetes.io/admin-access: true` label")],
    ),
    (
        "ResourceClaimTemplate",
        {"metadata": {"labels": {"a b": "c"}}, "spec": claim(request("B"))},
        [
            ("spec.metadata.labels", "name part must consist of"),
            ("spec.spec.devices.requests[0].name", LABEL),
        ],
    ),
    (
        "DeviceClass",
        selecting('device.nope == "x"'),
        [("spec.selectors[0].cel.expression", "undefined field 'nope'")],
    ),
    (
        "DeviceClass",
        selecting("nope"),
        [("spec.selectors[0].cel.expression", "undeclared reference to 'nope'")],
    ),
    (
        "DeviceClass",
        {"extendedResourceName": "gpu", "config": [{}]},
        [
            ("spec.config[0].opaque", "Required value"),
            ("spec.extendedResourceName", "must be a valid extended resource name"),
        ],
    ),
    ("ResourceSlice", slice_of(device(), device()), [("spec.devices[1]", "Duplicate value")]),
    (
        "ResourceSlice",
        slice_of(*[device(f"d{number}") for number in range(129)]),
        [("spec.devices", "must have at most 128 items")],
    ),
    (
        "ResourceSlice",
        slice_of(*[device(f"d{number}", taints=[{"key": "a", "effect": "None"}]) for number in range(65)]),
        [("spec.devices", "must have at most 64 items")],
    ),
    ("ResourceSlice", slice_of(nodeName=None), [("spec", NODES)]),
    ("ResourceSlice", slice_of(allNodes=True), [("spec", "multiple fields are set")]),
    (
        "ResourceSlice",
        slice_of(nodeName=None, allNodes=False),
        [("spec", NODES), ("spec.allNodes", "must be either unset or set to true")],
    ),
    (
        "ResourceSlice",
        slice_of(pool={"name": "a//b", "generation": -1, "resourceSliceCount": 1}),
        [
            ("spec.pool.generation", "must be greater than or equal to zero"),
            ("spec.pool.name", "RFC 1123 subdomain"),
        ],
    ),
    (
        "ResourceSlice",
        slice_of(device(nodeName="n1")),
        [("spec.devices[0]", "can only be set if `perDeviceNodeSelection` is set to true")],
    ),
    (
        "ResourceSlice",
        slice_of(device(attributes={"a": {}, "b": {"version": "1.2"}, "c-d": {"int": 1}})),
        [
            ("spec.devices[0].attributes", "a valid C identifier"),
            ("spec.devices[0].attributes[a]", "exactly one value must be specified"),
            ("spec.devices[0].attributes[b].version", "must be a string compatible with semver.org"),
        ],
    ),
    (
        "ResourceSlice",
        slice_of(device(attributes={f"a{number}": {"int": 1} for number in range(33)})),
        [("spec.devices[0]", "attributes and capacities must not exceed 32")],
    ),
    (
        "ResourceSlice",
        slice_of(device(capacity={"m": {"value": "1Gi", "requestPolicy": {"default": "1Gi"}}})),
        [("spec.devices[0].capacity[m].requestPolicy", "allowMultipleAllocations must be true")],
    ),
    (
        "ResourceSlice",
        slice_of(shared({"default": "2Gi", "validValues": ["4Gi", "1Gi"]})),
        [
            ("spec.devices[0].capacity[m].requestPolicy.validValues", "default value is not valid"),
            ("spec.devices[0].capacity[m].requestPolicy.validValues[1]", "must be sorted in ascending order"),
        ],
    ),
    (
        "ResourceSlice",
        slice_of(shared({"default": "2Gi", "validRange": {"min": "4Gi", "max": "16Gi"}})),
        [
            ("spec.devices[0].capacity[m].requestPolicy.validRange.max", "max is larger than capacity value"),
            ("spec.devices[0].capacity[m].requestPolicy.validRange.min", "default is less than min: 4Gi"),
        ],
    ),
    (
        "ResourceSlice",
        slice_of(device(bindingConditions=["a"])),
        [("spec.devices[0].bindingFailureConditions", "are required to use bindingConditions")],
    ),
    (
        "ResourceSlice",
        slice_of(device(), sharedCounters=[{"name": "a", "counters": {"b": {"value": "1"}}}]),
        [("spec", "only one of `sharedCounters` or `devices` is allowed")],
    ),
]


@pytest.mark.parametrize(("kind", "spec", "expected"), REFUSED)
def test_what_is_refused_is_told_field_by_field(
    plane: ControlPlane, kind: str, spec: Json, expected: list[tuple[str, str]]
) -> None:
    assert_refused(*create(plane, kind, spec), expected)


RESULT = {"request": "a", "driver": "gpu.example.com", "pool": "pool", "device": "d"}
CONSUMER = {"apiGroup": "example.com", "resource": "things", "name": "p", "uid": "1"}
"""Of a kind that no controller knows: one would remove a pod that does not exist."""
ALLOCATION = {"devices": {"results": [RESULT]}}


def path_of(content: Json) -> str:
    return f"{ROOT}/{PLURALS[content['kind']]}/{content['metadata']['name']}"


def set_status(plane: ControlPlane, content: Json, status: Json) -> tuple[int, Json]:
    return answer(plane, "PATCH", f"{path_of(content)}/status", {"status": status}, MERGE)


def change(plane: ControlPlane, content: Json, spec: Json) -> tuple[int, Json]:
    return answer(plane, "PATCH", path_of(content), {"spec": spec}, MERGE)


@pytest.mark.smoke
def test_a_claim_is_allocated_reserved_and_released_by_its_status(plane: ControlPlane) -> None:
    content = created(plane, "ResourceClaim", claim(request()))
    assert_refused(
        *set_status(plane, content, {"reservedFor": [CONSUMER]}),
        [("status.reservedFor", "may not be specified when `allocated` is not set")],
    )
    status, content = set_status(plane, content, {"allocation": ALLOCATION, "reservedFor": [CONSUMER]})
    assert (status, content["status"]["reservedFor"]) == (200, [CONSUMER])
    other = {"devices": {"results": [{**RESULT, "device": "e"}]}}
    assert_refused(
        *set_status(plane, content, {"allocation": other}),
        [("status.allocation", "field is immutable")],
    )
    many = [{**CONSUMER, "uid": str(number)} for number in range(257)]
    assert_refused(
        *set_status(plane, content, {"reservedFor": many}),
        [("status.reservedFor", "must have at most 256 items")],
    )
    told = {"driver": "gpu.example.com", "pool": "pool", "device": "d", "data": {"a": 1}}
    status, content = set_status(plane, content, {"devices": [told]})
    assert (status, len(content["status"]["devices"])) == (200, 1)
    status, content = set_status(plane, content, {"allocation": None, "reservedFor": None})
    assert (status, content.get("status") or {}) == (200, {})  # what drivers told went with the devices


def test_an_allocation_names_requests_and_devices(plane: ControlPlane) -> None:
    content = created(plane, "ResourceClaim", claim(request()))
    bad = {"request": "z", "driver": "a_b", "pool": "p//q", "device": "D", "shareID": "x"}
    path = "status.allocation.devices.results[0]"
    status, answered = set_status(plane, content, {"allocation": {"devices": {"results": [bad]}}})
    assert status == 422
    assert {field for field, _ in causes(answered)} == {
        f"{path}.{field}" for field in ("request", "driver", "pool", "device", "shareID")
    }
    told = {"driver": "gpu.example.com", "pool": "pool", "device": "e"}
    assert_refused(
        *set_status(plane, content, {"allocation": ALLOCATION, "devices": [told]}),
        [("status.devices[0]", "must be an allocated device in the claim")],
    )


def test_specs_of_claims_and_templates_and_places_of_slices_do_not_change(plane: ControlPlane) -> None:
    template = created(plane, "ResourceClaimTemplate", {"spec": claim(request())})
    for content, spec in ((created(plane, "ResourceClaim", claim(request())), claim(request("b"))),):
        assert_refused(*change(plane, content, spec), [("spec", "field is immutable")])
    assert_refused(*change(plane, template, {"spec": claim(request("b"))}), [("spec", "field is immutable")])
    offered = created(plane, "ResourceSlice", slice_of(device()))
    assert offered["metadata"]["generation"] == 1
    status, offered = change(plane, offered, {"devices": [device("e")]})
    assert (status, offered["metadata"]["generation"]) == (200, 2)
    assert_refused(
        *change(plane, offered, {"driver": "other.example.com", "nodeName": "n2", "pool": {"name": "x"}}),
        [
            ("spec.driver", "field is immutable"),
            ("spec.nodeName", "field is immutable"),
            ("spec.pool.name", "field is immutable"),
        ],
    )


def test_slices_are_selected_by_driver_and_node(plane: ControlPlane) -> None:
    mine = created(plane, "ResourceSlice", slice_of(driver="mine.example.com", nodeName="n7"))
    query = "fieldSelector=spec.driver%3Dmine.example.com,spec.nodeName%3Dn7"
    listed = json.loads(plane.request("GET", f"{ROOT}/resourceslices?{query}"))["items"]
    assert [item["metadata"]["name"] for item in listed] == [mine["metadata"]["name"]]


def test_kubectl_prints_the_state_of_claims_and_where_slices_are(plane: ControlPlane) -> None:
    content = created(plane, "ResourceClaim", claim(request()))
    offered = created(plane, "ResourceSlice", slice_of())
    states = []
    for status in ({}, {"allocation": ALLOCATION}, {"allocation": ALLOCATION, "reservedFor": [CONSUMER]}):
        set_status(plane, content, status)
        states.append(get(plane, path_of(content), TABLE)["rows"][0]["cells"][1])
    assert states == ["pending", "allocated", "allocated,reserved"]
    table = get(plane, path_of(offered), TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Node",
        "Driver",
        "Pool",
        "Age",
    ]
    assert table["rows"][0]["cells"][1:4] == ["n1", "gpu.example.com", "pool"]
