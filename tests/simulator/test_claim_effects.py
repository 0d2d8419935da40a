"""ResourceClaims in a world in memory."""

from __future__ import annotations

from stromboli.testing import World
from tests.device_manifests import claim, device_class, resource_slice, uses

PLACE, PLUGINS = "enqueue, allocate", "gang, predicates"
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}}
    },
}


def test_the_last_consumer_that_ends_frees_the_devices() -> None:
    made = World(nodes="a cpu=8").add(device_class(), resource_slice("a", 1), claim("c"), claim("d"))
    made.job("j", pods=2, cpu=1, spec=uses("c")).job("k", cpu=1, spec=uses("d"))
    assert len(made.run(PLACE, PLUGINS).binds) == 2
    made.finish("j-0")
    assert made.step().binds == {}
    made.finish("j-1")
    assert made.step().binds == {"default/k-0": "a"}


def test_pending_pods_get_the_claims_of_their_templates_and_these_go_with_them() -> None:
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    made = World(nodes="a cpu=8").add(device_class(), resource_slice("a", 2), TEMPLATE)
    made.job("j", pods=2, cpu=1, spec=spec)
    made.rehearsal.claims.make_from_templates()
    assert len(made.run(PLACE, PLUGINS).binds) == 2
    made.rehearsal.vanish(made.task("j-0"))
    assert list(made.cluster.objects.resource_claims) == ["default/j-1-gpu"]
