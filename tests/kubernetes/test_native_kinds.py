"""PodGroups and Workloads of `scheduling.k8s.io`: the same on the real API server and on the embedded one."""

from __future__ import annotations

import itertools
import json
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.api.schemas import builtin_schemas
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.published_schemas import published_schemas
from tests.kubernetes.servers import REAL, chosen, control_plane
from tests.kubernetes.test_native_groups import OFFERED
from tests.kubernetes.test_tables_and_rights import TABLE, get

Json = Any
ROOT = "/apis/scheduling.k8s.io/v1alpha2"
BASE = f"{ROOT}/namespaces/default"
MERGE = "application/merge-patch+json"
GANG = {"gang": {"minCount": 2}}
TEMPLATE = {"name": "t", "schedulingPolicy": GANG}
LABEL = "a lowercase RFC 1123 label must consist of"
SUBDOMAIN = "a lowercase RFC 1123 subdomain must consist of"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def plane(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that offers these kinds, which the embedded one always does."""
    flags = {"api_server_flags": OFFERED} if chosen() == REAL else {}
    with control_plane(tmp_path_factory.mktemp("native-kinds"), **flags) as running:
        yield running


def answer(
    plane: ControlPlane, method: str, path: str, body: Json = None, media: str = "application/json"
) -> tuple[int, Json]:
    try:
        return 200, json.loads(plane.request(method, path, body, media))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def create(plane: ControlPlane, kind: str, spec: Json, query: str = "", **more: Json) -> tuple[int, Json]:
    name = f"x{next(_numbers)}"
    body = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    return answer(plane, "POST", f"{BASE}/{kind.lower()}s{query}", {**body, **more})


def created(plane: ControlPlane, kind: str, spec: Json, **more: Json) -> Json:
    status, content = create(plane, kind, spec, **more)
    assert status == 200, content
    return content


def group(**spec: Json) -> Json:
    return {"schedulingPolicy": GANG, **spec}


def workload(**template: Json) -> Json:
    return {"podGroupTemplates": [{**TEMPLATE, **template}]}


def topology(*keys: str) -> Json:
    return {"schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


def claims(*items: Json) -> Json:
    return {"resourceClaims": list(items)}


def without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def test_both_are_offered_with_a_status_of_groups_alone(plane: ControlPlane) -> None:
    resources = json.loads(plane.request("GET", ROOT))["resources"]
    assert {entry["name"]: sorted(entry["verbs"]) for entry in resources} == {
        "podgroups": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "podgroups/status": ["get", "patch", "update"],
        "workloads": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    }
    assert not any("shortNames" in entry for entry in resources)
    versions = json.loads(plane.request("GET", "/apis/scheduling.k8s.io"))
    assert [entry["version"] for entry in versions["versions"]] == ["v1", "v1alpha2"]


def test_fields_are_published_as_our_schemas_have_them(plane: ControlPlane) -> None:
    """What `kubectl explain` and apply read of the server, the real one above all."""
    published = published_schemas(plane, ROOT, "io.k8s.api.scheduling.v1alpha2.")
    assert len(published) == 16
    for name, schema in published.items():
        ours = builtin_schemas.named(name)
        assert set(ours.required) == set(schema.get("required") or ()), name
        assert ours.properties.keys() == (schema.get("properties") or {}).keys(), name
        for field, theirs in (schema.get("properties") or {}).items():
            known = ours.properties[field]
            strategies = ",".join(known.patch_strategies)
            assert (known.type, known.format, list(known.enum)) == (
                theirs.get("type", "object"),
                theirs.get("format", ""),
                theirs.get("enum", []),
            ), f"{name}.{field}"
            assert (known.list_type, list(known.list_map_keys), known.merge_key, strategies) == (
                theirs.get("x-kubernetes-list-type", ""),
                theirs.get("x-kubernetes-list-map-keys", []),
                theirs.get("x-kubernetes-patch-merge-key", ""),
                theirs.get("x-kubernetes-patch-strategy", ""),
            ), f"{name}.{field}"


SET = {"disruptionMode": "Pod", "priority": 0}
ACCEPTED = [
    ("PodGroup", group(), group(**SET)),
    ("PodGroup", {"schedulingPolicy": {"basic": {}}}, {"schedulingPolicy": {"basic": {}}, **SET}),
    ("PodGroup", group(disruptionMode="PodGroup"), group(disruptionMode="PodGroup", priority=0)),
    ("PodGroup", group(**topology("example.com/rack")), group(**SET, **topology("example.com/rack"))),
    ("PodGroup", group(schedulingConstraints={}), group(**SET, schedulingConstraints={})),
    (
        "PodGroup",
        group(**claims({"name": "a", "resourceClaimName": "b"})),
        group(**SET, **claims({"name": "a", "resourceClaimName": "b"})),
    ),
    ("PodGroup", group(priority=0, podGroupTemplateRef=None), group(**SET)),
    ("Workload", workload(), workload()),
    (
        "Workload",
        workload(priority=5, priorityClassName="nope"),
        workload(priority=5, priorityClassName="nope"),
    ),
    (
        "Workload",
        workload() | {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "x"}},
        workload() | {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "x"}},
    ),
]


@pytest.mark.parametrize(("kind", "spec", "expected"), ACCEPTED)
def test_defaults_are_set(plane: ControlPlane, kind: str, spec: Json, expected: Json) -> None:
    content = created(plane, kind, spec)
    assert without_nulls(content["spec"]) == expected
    assert "generation" not in content["metadata"]
    finalizers = ["scheduling.k8s.io/podgroup-protection"] if kind == "PodGroup" else None
    assert content["metadata"].get("finalizers") == finalizers


POLICY = 'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'
ONE = "must specify exactly one of: "
REFUSED: list[tuple[str, Json, list[str]]] = [
    ("PodGroup", None, [POLICY]),
    ("PodGroup", {}, [POLICY]),
    ("PodGroup", {"schedulingPolicy": {}}, [POLICY]),
    (
        "PodGroup",
        {"schedulingPolicy": {"basic": {}, **GANG}},
        [f'spec.schedulingPolicy: Invalid value: "{{basic, gang}}": {ONE}`basic`, `gang`'],
    ),
    ("PodGroup", {"schedulingPolicy": {"gang": {}}}, ["spec.schedulingPolicy.gang.minCount: Required value"]),
    (
        "PodGroup",
        {"schedulingPolicy": {"gang": {"minCount": 0}}},
        ["spec.schedulingPolicy.gang.minCount: Required value"],
    ),
    (
        "PodGroup",
        {"schedulingPolicy": {"gang": {"minCount": -1}}},
        ["spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"],
    ),
    (
        "PodGroup",
        group(disruptionMode="All"),
        ['spec.disruptionMode: Unsupported value: "All": supported values: "Pod", "PodGroup"'],
    ),
    (
        "PodGroup",
        group(schedulingConstraints={"topology": [{}]}),
        ["spec.schedulingConstraints.topology[0].key: Required value"],
    ),
    (
        "PodGroup",
        group(**topology("a b")),
        ['spec.schedulingConstraints.topology[0].key: Invalid value: "a b": name part must consist of'],
    ),
    (
        "PodGroup",
        group(**topology("a", "a b")),
        ["spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"],
    ),
    (
        "PodGroup",
        group(podGroupTemplateRef={}),
        ['spec.podGroupTemplateRef: Invalid value: "": must specify one of: `workload`'],
    ),
    (
        "PodGroup",
        group(podGroupTemplateRef={"workload": {}}),
        [
            "spec.podGroupTemplateRef.workload.podGroupTemplateName: Required value",
            "spec.podGroupTemplateRef.workload.workloadName: Required value",
        ],
    ),
    (
        "PodGroup",
        group(**claims({"name": "a"})),
        ['spec.resourceClaims[0]: Invalid value: "": must specify one of: `resourceClaimName`,'],
    ),
    (
        "PodGroup",
        group(**claims({"name": "A", "resourceClaimName": "B_", "resourceClaimTemplateName": "c_"})),
        [
            'spec.resourceClaims[0]: Invalid value: "{resourceClaimName, resourceClaimTemplateName}": ' + ONE,
            f'spec.resourceClaims[0].name: Invalid value: "A": {LABEL}',
            f'spec.resourceClaims[0].resourceClaimName: Invalid value: "B_": {SUBDOMAIN}',
            f'spec.resourceClaims[0].resourceClaimTemplateName: Invalid value: "c_": {SUBDOMAIN}',
        ],
    ),
    (
        "PodGroup",
        group(**claims(*({"name": "a", "resourceClaimName": name} for name in "bc"))),
        ['spec.resourceClaims[1]: Duplicate value: {"name":"a","resourceClaimName":"c"}'],
    ),
    (
        "PodGroup",
        group(**claims(*({"name": f"a{number}", "resourceClaimName": "b"} for number in range(5)))),
        ["spec.resourceClaims: Too many: 5: must have at most 4 items"],
    ),
    (
        "PodGroup",
        group(priorityClassName="system-node-critical"),
        ["spec.priority: Invalid value: 2000001000: must be less than or equal to 1000000000"],
    ),
    ("Workload", None, ["spec.podGroupTemplates: Required value"]),
    ("Workload", {"podGroupTemplates": []}, ["spec.podGroupTemplates: Required value"]),
    (
        "Workload",
        {"podGroupTemplates": [{"schedulingPolicy": GANG}]},
        ["spec.podGroupTemplates[0].name: Required value"],
    ),
    (
        "Workload",
        {"podGroupTemplates": [{"name": "t"}]},
        [
            'spec.podGroupTemplates[0].schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'
        ],
    ),
    ("Workload", workload(name="A_"), [f'spec.podGroupTemplates[0].name: Invalid value: "A_": {LABEL}']),
    (
        "Workload",
        {"podGroupTemplates": [TEMPLATE, TEMPLATE]},
        [
            'spec.podGroupTemplates[1]: Duplicate value: {"name":"t","schedulingPolicy":{"gang":{"minCount":2}}'
        ],
    ),
    (
        "Workload",
        {"podGroupTemplates": [{**TEMPLATE, "name": f"t{number}"} for number in range(9)]},
        ["spec.podGroupTemplates: Too many: 9: must have at most 8 items"],
    ),
    (
        "Workload",
        workload(priorityClassName="A_", priority=2_000_000_000, **topology("a", "b")),
        [
            "spec.podGroupTemplates[0].priority: Invalid value: 2000000000: must be less than or equal to 1000000000",
            f'spec.podGroupTemplates[0].priorityClassName: Invalid value: "A_": {SUBDOMAIN}',
            "spec.podGroupTemplates[0].schedulingConstraints.topology: Too many: 2: must have at most 1 item",
        ],
    ),
    (
        "Workload",
        workload() | {"controllerRef": {}},
        ["spec.controllerRef.kind: Required value", "spec.controllerRef.name: Required value"],
    ),
    (
        "Workload",
        workload() | {"controllerRef": {"apiGroup": "A_", "kind": "a/b", "name": ".."}},
        [
            f'spec.controllerRef.apiGroup: Invalid value: "A_": {SUBDOMAIN}',
            "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
            "spec.controllerRef.name: Invalid value: \"..\": may not be '..'",
        ],
    ),
]


def causes(content: Json) -> list[str]:
    found = content.get("details", {}).get("causes") or []
    return sorted(f"{cause['field']}: {cause['message']}" for cause in found)


def assert_causes(content: Json, expected: list[str]) -> None:
    """Messages are compared as far as they are given."""
    found = causes(content)
    shown = [text[: len(start)] for text, start in zip(found, sorted(expected), strict=False)]
    assert (shown, len(found)) == (sorted(expected), len(expected)), content


@pytest.mark.parametrize(("kind", "spec", "expected"), REFUSED)
def test_what_is_wrong_is_told(plane: ControlPlane, kind: str, spec: Json, expected: list[str]) -> None:
    status, content = create(plane, kind, spec)
    assert status == 422, content
    assert_causes(content, expected)


def reference(name: str, template: str) -> Json:
    return {"podGroupTemplateRef": {"workload": {"workloadName": name, "podGroupTemplateName": template}}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (group(priorityClassName="nope"), "no PriorityClass with name nope was found"),
        (
            group(priority=5),
            "priority set in the pod group (5) must match the priority computed (0) based on",
        ),
        (group(**reference("w", "t")), 'PodGroup rejected: Workload "w" not found'),
    ],
)
def test_a_group_that_names_what_does_not_exist_is_forbidden(
    plane: ControlPlane, spec: Json, why: str
) -> None:
    status, content = create(plane, "PodGroup", spec)
    assert (status, f"is forbidden: {why}" in content["message"]) == (403, True), content


@pytest.mark.smoke
def test_a_group_names_a_template_of_its_workload(plane: ControlPlane) -> None:
    name = created(plane, "Workload", workload())["metadata"]["name"]
    status, content = create(plane, "PodGroup", group(**reference(name, "u")))
    why = f'PodGroup rejected: PodGroupTemplate "u" not found in Workload "{name}"'
    assert (status, why in content["message"]) == (403, True), content
    spec = created(plane, "PodGroup", group(**reference(name, "t")))["spec"]
    assert spec["podGroupTemplateRef"]["workload"]["workloadName"] == name


def test_a_group_gets_the_value_of_its_priority_class(plane: ControlPlane) -> None:
    content = {"metadata": {"name": "of-a-group"}, "value": 7}
    plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", content)
    assert created(plane, "PodGroup", group(priorityClassName="of-a-group"))["spec"]["priority"] == 7


@pytest.mark.parametrize(
    ("kind", "spec", "patch"),
    [
        ("PodGroup", group(), {"schedulingPolicy": {"gang": {"minCount": 3}}}),
        ("PodGroup", group(), {"disruptionMode": "PodGroup"}),
        ("PodGroup", group(), {"priority": None}),
        ("PodGroup", group(), topology("a")),
        ("PodGroup", group(), claims({"name": "a", "resourceClaimName": "b"})),
        ("Workload", workload(), {"podGroupTemplates": [{**TEMPLATE, "disruptionMode": "Pod"}]}),
        ("Workload", workload(), {"controllerRef": {"kind": "Job", "apiGroup": "batch", "name": "x"}}),
    ],
)
def test_specs_do_not_change(plane: ControlPlane, kind: str, spec: Json, patch: Json) -> None:
    name = created(plane, kind, spec)["metadata"]["name"]
    path = f"{BASE}/{kind.lower()}s/{name}"
    status, content = answer(plane, "PATCH", path, {"spec": patch}, MERGE)
    assert (status, causes(content)) == (
        422,
        [f"spec.{next(iter(patch))}: Invalid value: null: field is immutable"],
    )
    assert answer(plane, "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)[0] == 200


CONDITION = {
    "type": "PodGroupScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2020-01-01T00:00:00Z",
}


def test_the_status_has_an_endpoint_of_its_own(plane: ControlPlane) -> None:
    content = created(plane, "PodGroup", group(), status={"conditions": [CONDITION]})
    assert content["status"] == {}
    path = f"{BASE}/podgroups/{content['metadata']['name']}"
    patch = {
        "spec": {"disruptionMode": "PodGroup"},
        "metadata": {"labels": {"a": "b"}, "finalizers": None},
        "status": {"conditions": [CONDITION]},
    }
    status, content = answer(plane, "PATCH", f"{path}/status", patch, MERGE)
    assert (status, content["status"]) == (200, {"conditions": [CONDITION]})
    assert "labels" not in content["metadata"]
    assert content["metadata"]["finalizers"]
    assert content["spec"]["disruptionMode"] == "Pod"
    _, content = answer(plane, "PATCH", path, {"status": {"conditions": None}}, MERGE)
    assert content["status"] == {"conditions": [CONDITION]}


STATUSES: list[tuple[Json, list[str]]] = [
    (
        {"conditions": [{**CONDITION, "type": "a b"}]},
        ['status.conditions[0].type: Invalid value: "a b": name part'],
    ),
    (
        {"conditions": [{"type": "x"}]},
        [
            "status.conditions[0].lastTransitionTime: Required value",
            "status.conditions[0].reason: Required value",
            'status.conditions[0].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
        ],
    ),
    (
        {"conditions": [CONDITION, CONDITION]},
        ['status.conditions[1].type: Duplicate value: "PodGroupScheduled"'],
    ),
    (
        {"conditions": [{**CONDITION, "reason": "a b", "observedGeneration": -1}]},
        [
            "status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
            'status.conditions[0].reason: Invalid value: "a b": a condition reason must start with',
        ],
    ),
    (
        {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "B_"}]},
        [
            'status.resourceClaimStatuses[0].name: Invalid value: "a": must match the name of an entry in',
            f'status.resourceClaimStatuses[0].resourceClaimName: Invalid value: "B_": {SUBDOMAIN}',
        ],
    ),
]


@pytest.mark.parametrize(("status", "expected"), STATUSES)
def test_what_is_wrong_with_a_status_is_told(plane: ControlPlane, status: Json, expected: list[str]) -> None:
    name = created(plane, "PodGroup", group())["metadata"]["name"]
    code, content = answer(plane, "PATCH", f"{BASE}/podgroups/{name}/status", {"status": status}, MERGE)
    assert code == 422, content
    assert_causes(content, expected)


def test_tables_show_policy_workload_and_status(plane: ControlPlane) -> None:
    labels = {"labels": {"in": "table"}}
    name = created(plane, "Workload", workload(), metadata={"name": "shown", **labels})["metadata"]["name"]
    created(plane, "PodGroup", group(), metadata={"name": "a", **labels})
    basic = {"schedulingPolicy": {"basic": {}}, **reference(name, "t")}
    created(plane, "PodGroup", basic, metadata={"name": "b", **labels})
    created(plane, "PodGroup", group(), metadata={"name": "c", **labels})
    for group_name, changes in (("a", {}), ("c", {"status": "False"})):
        patch = {"status": {"conditions": [{**CONDITION, **changes}]}}
        answer(plane, "PATCH", f"{BASE}/podgroups/{group_name}/status", patch, MERGE)
    rows = get(plane, f"{BASE}/podgroups?labelSelector=in=table", TABLE)
    columns = [(column["name"], column["priority"]) for column in rows["columnDefinitions"]]
    assert columns == [(name, 0) for name in ("Name", "Policy", "Workload", "Status", "Age")]
    assert [row["cells"][:4] for row in rows["rows"]] == [
        ["a", "Gang", "<none>", "Scheduled"],
        ["b", "Basic", "shown", "Pending"],
        ["c", "Gang", "<none>", "Unschedulable"],
    ]
    rows = get(plane, f"{BASE}/workloads?labelSelector=in=table", TABLE)
    assert [column["name"] for column in rows["columnDefinitions"]] == ["Name", "Age"]


def test_the_roles_view_and_edit_have_them(plane: ControlPlane) -> None:
    rights = {}
    for role in ("view", "edit"):
        path = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to-{role}"
        rules = json.loads(plane.request("GET", path))["rules"]
        [rights[role]] = [rule for rule in rules if rule["apiGroups"] == ["scheduling.k8s.io"]]
    assert sorted(rights["view"]["resources"]) == ["podgroups", "podgroups/status", "workloads"]
    assert sorted(rights["view"]["verbs"]) == ["get", "list", "watch"]
    assert sorted(rights["edit"]["resources"]) == ["podgroups", "workloads"]
    assert sorted(rights["edit"]["verbs"]) == ["create", "delete", "deletecollection", "patch", "update"]


# -- pods

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **spec: Json) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "b"}], **spec}}


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({}, "Invalid value: null: must specify one of: `podGroupName`"),
        ({"podGroupName": ""}, f'Invalid value: "": {SUBDOMAIN}'),
        ({"podGroupName": "A_"}, f'Invalid value: "A_": {SUBDOMAIN}'),
    ],
)
def test_a_pod_names_its_group_or_has_none(plane: ControlPlane, named: Json, message: str) -> None:
    status, content = answer(plane, "POST", PODS, pod("bad", schedulingGroup=named))
    assert status == 422, content
    assert_causes(content, [f"spec.schedulingGroup.podGroupName: {message}"])


def test_a_pod_stays_in_its_group(plane: ControlPlane) -> None:
    status, content = answer(plane, "POST", PODS, pod("member", schedulingGroup={"podGroupName": "x.y"}))
    assert (status, content["spec"]["schedulingGroup"]) == (200, {"podGroupName": "x.y"})
    for other in ({"podGroupName": "z"}, None):
        status, content = answer(
            plane, "PATCH", f"{PODS}/member", {"spec": {"schedulingGroup": other}}, MERGE
        )
        assert (status, [cause["field"] for cause in content["details"]["causes"]]) == (422, ["spec"])
    plane.request("DELETE", f"{PODS}/member?gracePeriodSeconds=0")
