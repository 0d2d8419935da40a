"""Pods with ResourceClaims: where they are placed, and what they are given there."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.engine.decisions import Bind
from stromboli.model.devices.claim_use import ClaimGrant
from stromboli.testing import World
from tests.device_manifests import allocated, claim, device_class, request, reserved, resource_slice, uses

PLACE, PLUGINS = "enqueue, allocate", "gang, predicates"


def world(nodes: str = "a cpu=8; b cpu=8", **devices: int) -> World:
    made = World(nodes=nodes).add(device_class())
    return made.add(*(resource_slice(node, count) for node, count in devices.items()))


def grants(result: Any, pod: str) -> list[ClaimGrant]:
    binds = [each for each in result.decisions if isinstance(each, Bind) and each.name == pod]
    return [grant for grant in binds[-1].grants if isinstance(grant, ClaimGrant)]


def devices(result: Any, pod: str) -> list[str]:
    return [
        each.device
        for grant in grants(result, pod)
        if grant.allocation is not None
        for each in grant.allocation.devices.results
    ]


def test_a_pod_goes_where_its_devices_are_and_reserves_its_claim() -> None:
    result = world(b=1).add(claim("c")).job("j", cpu=1, spec=uses("c")).run(PLACE, PLUGINS)
    assert result.binds == {"default/j-0": "b"}
    (grant,) = grants(result, "j-0")
    assert (grant.namespace, grant.name, grant.uid) == ("default", "c", "ResourceClaim/default/c")
    assert (grant.consumer.resource, grant.consumer.name) == ("pods", "j-0")
    assert devices(result, "j-0") == ["g0"]


def test_several_claims_of_a_pod_get_different_devices_of_a_node() -> None:
    made = world(a=1, b=3).add(claim("c", 2), claim("d")).job("j", cpu=1, spec=uses("c", "d"))
    result = made.run(PLACE, PLUGINS)
    assert result.binds == {"default/j-0": "b"}
    assert devices(result, "j-0") == ["g0", "g1", "g2"]


def test_no_device_is_given_twice_in_a_cycle_or_after_it() -> None:
    made = world(a=1, b=1)
    for name in "cdef":
        made.add(claim(name)).job(name, cpu=1, spec=uses(name))
    first = made.run(PLACE, PLUGINS)
    assert first.binds == {"default/c-0": "a", "default/d-0": "b"}
    assert made.step(2).binds == {}
    made.finish("c-0")
    assert made.step().binds == {"default/e-0": "a"}


def test_a_claim_allocated_for_two_nodes_is_used_on_the_better_of_them() -> None:
    given = allocated(claim("c"), "a", "g0")
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]
    given["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    made = World(nodes="a cpu=8; b cpu=4 zone=z; c cpu=8 zone=z").add(device_class(), given)
    result = made.job("j", cpu=2, spec=uses("c")).run(PLACE, "gang, predicates, nodeorder")
    assert result.binds == {"default/j-0": "c"}
    assert grants(result, "j-0")[0].allocation is None


# -- shared claims


def test_a_gang_that_shares_a_claim_starts_together_on_a_node_that_can_serve_it() -> None:
    made = world("a cpu=8; b cpu=4", b=1).add(claim("c")).job("j", pods=3, cpu=1, spec=uses("c"))
    result = made.run(PLACE, PLUGINS)
    assert set(result.binds.values()) == {"b"}
    assert len(result.binds) == 3
    assert grants(result, "j-0")[0].allocation == grants(result, "j-2")[0].allocation


def test_a_gang_that_shares_a_claim_is_placed_where_all_of_it_fits() -> None:
    made = world("a cpu=2; b cpu=3; c cpu=2", a=1, b=1, c=1).add(claim("c"))
    result = made.job("j", pods=3, cpu=1, spec=uses("c")).run(PLACE, PLUGINS)
    assert result.binds == {f"default/j-{place}": "b" for place in range(3)}


def test_a_gang_that_shares_a_claim_goes_where_its_other_claims_find_devices_too() -> None:
    made = world("a cpu=8; b cpu=8; c cpu=8", a=2, b=3, c=1).add(claim("all"), claim("own-0"), claim("own-1"))
    made.job("j", pods=2, cpu=1, spec=uses("all"))
    for place in range(2):
        pod = {"schedulerName": "volcano", **uses("all", f"own-{place}")}
        containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
        annotations = {"scheduling.k8s.io/group-name": "j"}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"j-{place}", "annotations": annotations},
        }
        made.add({**manifest, "spec": {**pod, "containers": containers}})
    assert set(made.run(PLACE, PLUGINS).binds.values()) == {"b"}


def test_a_gang_that_shares_a_claim_and_fits_nowhere_leaves_the_devices_to_others() -> None:
    made = world("a cpu=2", a=1).add(claim("c"), claim("d")).job("j", pods=3, cpu=1, spec=uses("c"))
    assert made.job("k", cpu=1, spec=uses("d")).run(PLACE, PLUGINS).binds == {"default/k-0": "a"}


def test_pods_of_different_jobs_share_a_claim_in_one_cycle() -> None:
    made = world(a=1, b=1).add(claim("c"))
    made.job("j", cpu=1, spec=uses("c")).job("k", cpu=1, spec=uses("c"))
    assert made.run(PLACE, PLUGINS).binds == {"default/j-0": "a", "default/k-0": "a"}


# -- devices that come free


def leaving(pod: str, node: str, *claims: str) -> dict[str, Any]:
    times = {"creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:01:00Z"}
    containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
    spec = {"nodeName": node, "containers": containers, **uses(*claims)}
    status = {"phase": "Running"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod, **times},
        "spec": spec,
        "status": status,
    }


def test_a_pod_is_held_for_devices_of_a_pod_that_is_leaving() -> None:
    made = world(a=1).add(allocated(claim("old"), "a", "g0", reserved_for=(reserved("old"),)))
    made.add(leaving("old", "a", "old"), claim("c")).job("j", cpu=1, spec=uses("c"))
    result = made.run(PLACE, PLUGINS)
    assert (result.binds, result.pipelined) == ({}, {"default/j-0": "a"})


def test_a_claim_with_another_consumer_does_not_come_free() -> None:
    made = world(a=1).add(
        allocated(claim("old"), "a", "g0", reserved_for=(reserved("old"), reserved("other")))
    )
    made.add(leaving("old", "a", "old"), claim("c")).job("j", cpu=1, spec=uses("c"))
    assert made.run(PLACE, PLUGINS).pipelined == {}


def test_devices_that_come_free_are_promised_once() -> None:
    made = world(a=1).add(
        allocated(claim("old"), "a", "g0"), leaving("old", "a", "old"), claim("c"), claim("d")
    )
    made.job("j", cpu=1, spec=uses("c")).job("k", cpu=1, spec=uses("d"))
    assert made.run(PLACE, PLUGINS).pipelined == {"default/j-0": "a"}


# -- why not


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ([], 'could not find ResourceClaim "default/c"'),
        ([claim("c", deletionTimestamp="2026-01-01T00:00:00Z")], 'resourceclaim "c" is being deleted'),
        ([claim("c", 1, request(device_class="nic"))], "request r: device class nic does not exist"),
        (
            [claim("c", 1, {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "nic"}]})],
            "request r/s: device class nic does not exist",
        ),
        ([claim("c", 1, {"name": "r"})], "resource claim default/c, request r: unknown request type"),
    ],
)
def test_what_is_wrong_with_a_claim_is_said_in_the_words_of_kubernetes(
    objects: list[Any], problem: str
) -> None:
    result = world(a=1).add(*objects).job("j", cpu=1, spec=uses("c")).run(PLACE, PLUGINS)
    assert result.binds == {}
    assert f"plugin DynamicResources pre-predicates failed {problem}" in result.why("j-0")


def test_a_claim_of_a_template_must_exist_and_be_of_the_pod() -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}
    result = world(a=1).job("j", cpu=1, spec=spec).run(PLACE, PLUGINS)
    assert 'pod "default/j-0": ResourceClaim not created yet' in result.why("j-0")


def test_nodes_without_the_devices_and_nodes_that_an_allocation_excludes_say_so() -> None:
    result = world(a=1).add(claim("c", 2)).job("j", cpu=1, spec=uses("c")).run(PLACE, PLUGINS)
    assert "2 cannot allocate all claims" in result.why("j-0")
    result = (
        world(a=1)
        .add(allocated(claim("c"), "gone", "g0"))
        .job("j", cpu=1, spec=uses("c"))
        .run(PLACE, PLUGINS)
    )
    assert "2 resourceclaim not available on the node" in result.why("j-0")


# -- claims of native PodGroups


def native_gang(claims: list[dict[str, str]], pods: int = 2) -> list[dict[str, Any]]:
    """A PodGroup of Kubernetes with claims, and pods that name the same ones."""
    spec = {"schedulingPolicy": {"gang": {"minCount": pods}}, "resourceClaims": claims}
    meta = {"name": "g", "uid": "the-group"}
    group = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": meta, "spec": spec}
    made = [
        {"name": claim["name"], "resourceClaimName": "g-made"}
        for claim in claims
        if "resourceClaimName" not in claim
    ]
    containers = [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]
    return [group] + [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"g-{place}"},
            "spec": {
                "schedulerName": "volcano",
                "schedulingGroup": {"podGroupName": "g"},
                "resourceClaims": claims,
                "containers": containers,
            },
            "status": {"resourceClaimStatuses": made},
        }
        for place in range(pods)
    ]


def test_a_claim_of_a_native_group_is_reserved_for_the_group() -> None:
    named = [{"name": "gpu", "resourceClaimName": "c"}]
    result = world(b=1).add(claim("c"), *native_gang(named)).run(PLACE, PLUGINS)
    assert set(result.binds.values()) == {"b"}
    for pod in ("g-0", "g-1"):
        (grant,) = grants(result, pod)
        consumer = grant.consumer
        assert (consumer.api_group, consumer.resource, consumer.name) == (
            "scheduling.k8s.io",
            "podgroups",
            "g",
        )
        assert consumer.uid == "the-group"


def test_a_claim_made_for_a_native_group_may_be_used_by_its_pods_alone() -> None:
    entry = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    owner = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "g", "uid": "the-group"}
    made = claim("g-made", ownerReferences=[{**owner, "controller": True}])
    assert len(world(a=1).add(made, *native_gang(entry)).run(PLACE, PLUGINS).binds) == 2
    for other in ({"name": "other"}, {"uid": "an-earlier-group"}):
        foreign = claim("g-made", ownerReferences=[{**owner, **other, "controller": True}])
        result = world(a=1).add(foreign, *native_gang(entry)).run(PLACE, PLUGINS)
        assert result.binds == {}
        assert "neither Pod nor PodGroup g is the owner" in result.why("g-0")


def test_a_pool_that_becomes_complete_lets_nodes_that_it_does_not_name_allocate_all_devices() -> None:
    def part(name: str, **spec: Any) -> dict[str, Any]:
        pool = {"name": "shared", "generation": 1, "resourceSliceCount": 2}
        made = resource_slice("", spec.pop("devices", []), name, **spec)
        return {**made, "spec": {**made["spec"], "pool": pool}}

    taken = [{"counterSet": "card", "counters": {"slices": {"value": "1"}}}]
    counters = part("counters", sharedCounters=[{"name": "card", "counters": {"slices": {"value": "2"}}}])
    every = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    made = world("a cpu=8; b cpu=0", a=1).add(claim("c", 1, every), counters).job("j", cpu=1, spec=uses("c"))
    assert "shared is being updated" in made.run(PLACE, PLUGINS).why("j-0")
    made.add(part("devices", nodeName="b", devices=[{"name": "d", "consumesCounters": taken}]))
    assert made.step().binds == {"default/j-0": "a"}
