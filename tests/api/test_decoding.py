"""Objects from JSON: what is read, what is told apart, what is refused."""

from datetime import UTC, datetime
from typing import Any

import pytest

from stromboli.api.decoding import decode
from stromboli.api.errors import BadObject
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import HyperNode, NetworkTopology, PodGroup, Queue


def make_pod(**spec: Any) -> Pod:
    result = decode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    assert isinstance(result, Pod)
    return result


def test_unknown_kinds_and_foreign_groups_are_not_read() -> None:
    assert decode({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}) is None
    assert (
        decode({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}})
        is None
    )


def test_bytes_and_mappings_decode_alike() -> None:
    text = b'{"kind": "Node", "metadata": {"name": "n", "future": 1}, "novelty": {}}'
    assert decode(text) == decode({"kind": "Node", "metadata": {"name": "n"}})


def test_an_absent_node_selector_is_not_an_empty_one() -> None:
    assert make_pod().spec.node_selector is None
    assert make_pod(nodeSelector=None).spec.node_selector is None
    assert make_pod(nodeSelector={}).spec.node_selector == {}


def test_an_absent_label_selector_is_not_an_empty_one() -> None:
    spread = make_pod(topologySpreadConstraints=[{"topologyKey": "zone"}, {"labelSelector": {}}])
    first, second = spread.spec.topology_spread_constraints
    assert first.label_selector is None
    assert second.label_selector is not None


def test_null_means_absent() -> None:
    spec = make_pod(tolerations=None, affinity=None, containers=[{"name": "a", "resources": None}]).spec
    assert spec.tolerations == ()
    assert spec.containers[0].resources.requests == {}


def test_times_know_their_zone() -> None:
    node = decode(
        {"kind": "Node", "metadata": {"name": "n", "creationTimestamp": "2026-08-01T02:00:00+02:00"}}
    )
    assert node is not None
    assert node.metadata.creation_timestamp == datetime(2026, 8, 1, tzinfo=UTC)


def test_a_pod_group_keeps_its_terms() -> None:
    group = decode(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": "ml"},
            "spec": {
                "minMember": 4,
                "minTaskMember": {"worker": 3},
                "minResources": {},
                "networkTopology": {"highestTierAllowed": 2},
                "subGroupPolicy": [{"name": "slice", "matchLabelKeys": ["slice"]}],
            },
            "status": {"conditions": [{"type": "Unschedulable", "transitionID": "7"}]},
        }
    )
    assert isinstance(group, PodGroup)
    assert group.key == "ml/g"
    assert group.spec.min_task_member == {"worker": 3}
    assert group.spec.min_resources == {}
    assert group.spec.network_topology == NetworkTopology(mode="hard", highest_tier_allowed=2)
    assert group.spec.sub_group_policy[0].sub_group_size == 1
    assert group.status.conditions[0].transition_id == "7"


def test_an_unset_minimum_is_not_an_empty_one() -> None:
    group = decode({"kind": "PodGroup", "metadata": {"name": "g"}})
    assert isinstance(group, PodGroup)
    assert group.spec.min_resources is None


def test_a_queue_keeps_its_node_groups_and_limits() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    queue = decode(
        {
            "kind": "Queue",
            "metadata": {"name": "q"},
            "spec": {
                "guarantee": {"resource": {"cpu": 4}},
                "affinity": {"nodeGroupAffinity": {required: ["a"]}},
                "extendClusters": [{"name": "elsewhere"}],
            },
        }
    )
    assert isinstance(queue, Queue)
    assert queue.spec.guarantee.resource == {"cpu": 4}
    assert queue.spec.affinity is not None
    assert queue.spec.affinity.node_group_affinity is not None
    assert queue.spec.affinity.node_group_affinity.required == ("a",)
    assert queue.spec.affinity.node_group_anti_affinity is None


def test_hyper_node_members_by_name_pattern_and_label() -> None:
    selectors = [{"exactMatch": {"name": "n1"}}, {"regexMatch": {"pattern": "^n"}}, {"labelMatch": {}}]
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    hyper_node = decode(
        {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": members}}
    )
    assert isinstance(hyper_node, HyperNode)
    by_name, by_pattern, by_label = (member.selector for member in hyper_node.spec.members)
    assert by_name.exact_match is not None
    assert by_pattern.regex_match is not None
    assert by_label.label_match is not None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priority": "high"}, "spec.priority"),
        ({"priority": 2**31}, "spec.priority"),
        ({"containers": [{"ports": [{"hostPort": 70000}]}]}, "spec.containers[0].ports[0].hostPort"),
        ({"nodeSelector": {"disk": True}}, "spec.nodeSelector.disk"),
        ({"tolerations": [{"key": 1}]}, "spec.tolerations[0].key"),
        ({"preemptionPolicy": "Sometimes"}, "spec.preemptionPolicy"),
    ],
)
def test_a_wrong_type_names_the_object_and_the_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(BadObject) as caught:
        make_pod(**spec)
    assert caught.value.subject == "Pod p"
    assert caught.value.field == field
