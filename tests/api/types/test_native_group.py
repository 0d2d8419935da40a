"""Native groups as 1.36 and 1.37 write them."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.object_checks import check_object
from stromboli.api.types.native_group import NativePodGroup, condition_type
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup

GANG = {"gang": {"minCount": 3}}
OLD = {
    "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
    "schedulingPolicy": GANG,
    "disruptionMode": "PodGroup",
    "priority": 7,
    "priorityClassName": "high",
}
NEW = {
    "workloadRef": {"workloadName": "w", "templateName": "t"},
    "schedulingPolicy": GANG,
    "disruptionMode": {"all": {}},
    "priority": 7,
    "priorityClassName": "high",
    "preemptionPolicy": "Never",
}


def native(spec: dict[str, Any], version: str = "v1alpha2") -> NativePodGroup:
    meta = {"name": "g", "namespace": "ns", "generation": 4}
    group = decode(
        {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": meta, "spec": spec}
    )
    assert isinstance(group, NativePodGroup)
    return group


def topology(*keys: str) -> dict[str, Any]:
    return {"topology": [{"key": key} for key in keys]}


@pytest.mark.parametrize(("spec", "version"), [(OLD, "v1alpha2"), (NEW, "v1beta1"), (NEW, "v1alpha3")])
def test_both_shapes_say_the_same(spec: dict[str, Any], version: str) -> None:
    group = native(spec, version)
    assert (group.minimum, group.independent, group.disrupted_as_group) == (3, False, True)
    assert (group.spec.priority, group.spec.priority_class_name) == (7, "high")
    assert (group.metadata.generation, group.api_version) == (4, f"scheduling.k8s.io/{version}")
    check_object(group)


@pytest.mark.parametrize("mode", ["Pod", "", {"single": {}}, {}, None])
def test_unless_they_say_so_pods_go_one_by_one(mode: Any) -> None:
    assert not native({"schedulingPolicy": GANG, "disruptionMode": mode}).disrupted_as_group


def test_pods_of_a_basic_group_are_no_gang() -> None:
    group = native({"schedulingPolicy": {"basic": {}}})
    assert (group.minimum, group.independent) == (1, True)


@pytest.mark.parametrize("version", ["v1alpha2", "v1alpha3", "v1beta1"])
def test_a_group_names_the_label_that_its_nodes_must_share(version: str) -> None:
    for constraints, key in (
        (topology("topology.kubernetes.io/rack"), "topology.kubernetes.io/rack"),
        ({"topology": []}, ""),
        (None, ""),
    ):
        group = native({"schedulingPolicy": GANG, "schedulingConstraints": constraints}, version)
        check_object(group)
        assert group.topology_key == key


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "spec.schedulingPolicy"),
        ({"schedulingPolicy": GANG, "schedulingConstraints": topology("rack", "zone")}, "topology"),
        ({"schedulingPolicy": GANG, "schedulingConstraints": topology("no key")}, "topology[0].key"),
        ({"schedulingPolicy": GANG, "schedulingConstraints": topology("")}, "topology[0].key"),
        ({"schedulingPolicy": GANG, "parentCompositePodGroupName": "all"}, "parentCompositePodGroupName"),
    ],
)
def test_what_would_be_a_promise_broken_is_refused(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(BadObject) as refused:
        check_object(native(spec))
    assert field in refused.value.field


@pytest.mark.parametrize(
    "spec", [{"schedulingPolicy": {"gang": {"minCount": 0}}}, {"disruptionMode": "Node"}]
)
def test_what_no_api_server_lets_in_cannot_be_read(spec: dict[str, Any]) -> None:
    with pytest.raises(BadObject):
        native(spec)


def test_volcanos_groups_stay_volcanos() -> None:
    meta = {"name": "g"}
    for version in ({"apiVersion": "scheduling.volcano.sh/v1beta1"}, {}):
        assert isinstance(decode({**version, "kind": "PodGroup", "metadata": meta}), PodGroup)


def test_a_pod_names_its_group() -> None:
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    pod = decode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert isinstance(pod, Pod)
    assert pod.spec.scheduling_group is not None
    assert pod.spec.scheduling_group.pod_group_name == "g"


def test_the_condition_has_another_name_since_1_37() -> None:
    assert condition_type("scheduling.k8s.io/v1alpha2") == "PodGroupScheduled"
    for version in ("v1alpha3", "v1beta1", "v1"):
        assert condition_type(f"scheduling.k8s.io/{version}") == "PodGroupInitiallyScheduled"
