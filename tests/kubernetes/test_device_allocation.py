"""Our allocator and kube-scheduler choose the same devices.

Each case has a node, a driver and a pod of its own, so that all of them are scheduled side by side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec
import pytest

from stromboli.api.resources.quantity import exact
from stromboli.api.types.devices import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from stromboli.model.devices.allocator import DeviceShortage
from tests.kubernetes.controlplane import ControlPlane
from tests.model.devices.device_worlds import (
    DRIVER,
    DeviceWorld,
    device,
    exactly,
    make_claim,
    make_class,
    make_slice,
    request,
)
from tests.model.devices.random_worlds import random_world

pytestmark = pytest.mark.real_only
GATES = "--feature-gates=" + ",".join(
    f"{gate}=true"
    for gate in (
        *("DRAAdminAccess", "DRAConsumableCapacity", "DRADeviceBindingConditions", "DRADeviceTaints"),
        *("DRAPartitionableDevices", "DRAPrioritizedList", "DRAResourceClaimDeviceStatus"),
    )
)
RANDOM = 30
"""Random cases besides those below."""
MODEL, NUMA = f'device.attributes["{DRIVER}"].model', f'device.attributes["{DRIVER}"].numa'
TAINT = {"key": "broken", "value": "yes", "effect": "NoSchedule"}
RANGE = {"default": "3Gi", "validRange": {"min": "1Gi", "max": "7Gi", "step": "2Gi"}}
SHARED = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "8Gi", "requestPolicy": RANGE}}}
CARDS = [device(f"d{place}", model="ab"[place % 2], numa=place // 2, driver="1.2.3") for place in range(4)]
COUNTERS = [{"name": "card", "counters": {"slices": {"value": "7"}, "memory": {"value": "40Gi"}}}]


def partition(name: str, slices: int, memory: str) -> dict[str, Any]:
    counters = {"slices": {"value": str(slices)}, "memory": {"value": memory}}
    return device(name, consumesCounters=[{"counterSet": "card", "counters": counters}])


def memory(amount: str) -> dict[str, Any]:
    return {"requests": {"memory": amount}}


THREE = {"name": "s", "resourceSliceCount": 3}
PARTITIONED = [
    make_slice("s-0", [partition("large", 4, "20Gi"), partition("whole", 7, "40Gi")], pool=THREE),
    make_slice("s-1", [partition("small", 1, "10Gi")], pool=THREE),
    make_slice("s-2", pool=THREE, sharedCounters=COUNTERS),
]
CONDITIONS = {"bindingConditions": ["ready"], "bindingFailureConditions": ["bad"]}
DIFFERENT = {"distinctAttribute": f"{DRIVER}/numa", "requests": ["x", "y"]}
Case = tuple[Sequence[ResourceSlice], Sequence[ResourceClaim]]
CASES: dict[str, Case] = {
    "two-of-four": ([make_slice("s", CARDS)], [make_claim(request(count=2))]),
    "more-than-there-are": ([make_slice("s", CARDS)], [make_claim(request(count=5))]),
    "a-selector": ([make_slice("s", CARDS)], [make_claim(request("r", f'{MODEL} == "b"'))]),
    "a-missing-attribute": ([make_slice("s", CARDS)], [make_claim(request("r", f"{MODEL}s == 1"))]),
    "a-missing-domain": (
        [make_slice("s", CARDS)],
        [make_claim(request("r", '!("x" in device.attributes["other.example.com"])'))],
    ),
    "two-claims": ([make_slice("s", CARDS)], [make_claim(request(), name=each) for each in "cd"]),
    "slices-by-name": (
        [
            make_slice(f"s-{name}", [f"d-{name}"], pool={"name": "s", "resourceSliceCount": 2})
            for name in ("b", "a")
        ],
        [make_claim(request(count=2))],
    ),
    "pools-by-name": ([make_slice("s-b", ["d"]), make_slice("s-a", ["d"])], [make_claim(request())]),
    "pools-with-binding-conditions-last": (
        [
            make_slice("s-a", [device("d", **CONDITIONS)]),
            make_slice("s-b", ["d"]),
        ],
        [make_claim(request())],
    ),
    "incomplete-pool": (
        [make_slice("s-a", ["d"], pool={"resourceSliceCount": 2}), make_slice("s-b", ["e"])],
        [make_claim(request())],
    ),
    "older-generation": (
        [
            make_slice("s-a", ["old"], pool={"name": "s"}),
            make_slice("s-b", ["new"], pool={"name": "s", "generation": 2}),
        ],
        [make_claim(request())],
    ),
    "the-same-numa": (
        [make_slice("s", CARDS)],
        [
            make_claim(
                request("x", f'{MODEL} == "b"'),
                request("y", f"{NUMA} == 1"),
                constraints=[{"matchAttribute": f"{DRIVER}/numa"}],
            )
        ],
    ),
    "different-models": (
        [make_slice("s", CARDS)],
        [make_claim(request("x"), request("y"), constraints=[DIFFERENT])],
    ),
    "the-second-alternative": (
        [make_slice("s", CARDS)],
        [
            make_claim(
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "many", **exactly(count=5)},
                        {"name": "few", **exactly(f"{NUMA} == 1", count=2)},
                    ],
                },
                config=[{"requests": ["r/few"], "opaque": {"driver": DRIVER, "parameters": {"a": 1}}}],
            )
        ],
    ),
    "all": ([make_slice("s", CARDS)], [make_claim(request("r", f"{NUMA} == 0", allocationMode="All"))]),
    "all-of-none": ([make_slice("s", CARDS)], [make_claim(request("r", "false", allocationMode="All"))]),
    "counters": (PARTITIONED, [make_claim(request(count=2))]),
    "counters-exhausted": (PARTITIONED, [make_claim(request(count=3))]),
    "a-share": ([make_slice("s", [device("d", **SHARED)])], [make_claim(request(capacity=memory("3500Mi")))]),
    "three-shares": (
        [make_slice("s", [device("d", **SHARED), device("e", **SHARED)])],
        [make_claim(request(str(place), capacity=memory("3Gi")), name=f"c{place}") for place in "xyz"],
    ),
    "too-large-a-share": (
        [make_slice("s", [device("d", **SHARED)])],
        [make_claim(request(capacity=memory("9Gi")))],
    ),
    "a-taint": ([make_slice("s", [device("d", taints=[TAINT]), "e"])], [make_claim(request())]),
    "a-taint-that-is-tolerated": (
        [make_slice("s", [device("d", taints=[TAINT]), "e"])],
        [make_claim(request(tolerations=[{"key": "broken", "operator": "Equal", "value": "yes"}]))],
    ),
    "devices-choose-nodes": (
        [
            make_slice(
                "s",
                [device("d", nodeName="elsewhere"), device("e", allNodes=True)],
                perDeviceNodeSelection=True,
            )
        ],
        [make_claim(request())],
    ),
    "for-all-nodes": (
        [make_slice("s", ["d", device("e", bindsToNode=True, **CONDITIONS)], allNodes=True)],
        [make_claim(request())],
    ),
    "with-a-version": (
        [
            make_slice(
                "s",
                [
                    device(version, attributes={"v": {"version": version.replace("-", ".")}})
                    for version in ("1-9-0", "1-10-0", "1-11-0")
                ],
            )
        ],
        [make_claim(request("r", f'device.attributes["{DRIVER}"].v.isGreaterThan(semver("1.9.5"))'))],
    ),
}
CASES |= {f"random-{number}": random_world(Random(number))[:2] for number in range(RANDOM)}


class Manifests:
    """The objects of a case, under names of their own."""

    def __init__(self, name: str, slices: Sequence[ResourceSlice], claims: Sequence[ResourceClaim]) -> None:
        self.name = name
        self.driver = f"{name}.example.com"
        selector = f'device.driver == "{self.driver}"'
        config = [{"opaque": {"driver": DRIVER, "parameters": {"class": name}}}]
        device_class = self._own("DeviceClass", make_class("gpu", selector, config=config), f"gpu-{name}")
        self.slices = [
            self._own("ResourceSlice", each, f"{name}-{place}-{each.name}")
            for place, each in enumerate(sorted(slices, key=lambda each: each.name))
        ]
        self.claims = [self._own("ResourceClaim", each, f"{name}-{each.name}") for each in claims]
        self.all = [device_class, *self.slices, *self.claims, self._pod()]

    def _own(self, kind: str, obj: Any, name: str) -> dict[str, Any]:
        text = json.dumps(msgspec.to_builtins(obj)).replace(DRIVER, self.driver)
        text = text.replace('"deviceClassName": "gpu"', f'"deviceClassName": "gpu-{self.name}"')
        text = text.replace('"nodeName": "a"', f'"nodeName": "{self.name}"')
        content = json.loads(text)
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, **({"namespace": "default"} if kind == "ResourceClaim" else {})},
            "spec": content["spec"],
        }

    def _pod(self) -> dict[str, Any]:
        names = [claim["metadata"]["name"] for claim in self.claims]
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {
                "nodeSelector": {"case": self.name},
                "containers": [{"name": "main", "image": "none"}],
                "resourceClaims": [{"name": name, "resourceClaimName": name} for name in names],
            },
        }

    def node(self) -> dict[str, Any]:
        resources = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {"case": self.name}},
            "status": {"allocatable": resources, "capacity": resources},
        }


@pytest.fixture(scope="module")
def decided(built: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What kube-scheduler decided: all objects by kind and name."""
    folder = tmp_path_factory.mktemp("devices")
    with ControlPlane(folder, api_server_flags=(GATES,), scheduler_flags=(GATES,)) as plane:
        cases = [Manifests(name, *case) for name, case in CASES.items()]
        plane.apply(*(case.node() for case in cases))
        plane.apply(*(each for case in cases for each in case.all))
        plane.start("kube-scheduler")
        plane.wait(lambda: _undecided(plane) == [], "kube-scheduler to decide", 180.0)
        yield {
            plural: _listed(plane, plural) for plural in ("resourceslices", "resourceclaims", "deviceclasses")
        }


def _listed(plane: ControlPlane, plural: str) -> dict[str, Any]:
    root = "/api/v1" if plural == "pods" else "/apis/resource.k8s.io/v1"
    items = json.loads(plane.request("GET", f"{root}/{plural}"))["items"]
    return {item["metadata"]["name"]: item for item in items}


def _undecided(plane: ControlPlane) -> list[str]:
    """Pods whose claims are not allocated and of which the scheduler does not say that they cannot be."""
    claims, pods = _listed(plane, "resourceclaims"), _listed(plane, "pods")
    names = {
        name: [claims[each["name"]] for each in pod["spec"]["resourceClaims"]] for name, pod in pods.items()
    }
    return [
        name
        for name, listed in names.items()
        if not all(claim.get("status", {}).get("allocation") for claim in listed)
        and not any(
            condition["type"] == "PodScheduled" and condition["status"] == "False"
            for condition in pods[name].get("status", {}).get("conditions", ())
        )
    ]


@pytest.mark.parametrize("name", CASES)
def test_kube_scheduler_chooses_the_same_devices(name: str, decided: dict[str, Any]) -> None:
    case = Manifests(name, *CASES[name])
    world = DeviceWorld(
        *(_read(each, ResourceSlice) for each in decided["resourceslices"].values()),
        classes=[_read(each, DeviceClass) for each in decided["deviceclasses"].values()],
    )
    theirs = [decided["resourceclaims"][each["metadata"]["name"]] for each in case.claims]
    ours = world.allocate(*(_read(each, ResourceClaim) for each in theirs), node=name, labels={"case": name})
    allocations = [each.get("status", {}).get("allocation") for each in theirs]
    if isinstance(ours, DeviceShortage):
        assert allocations == [None] * len(theirs), ours
    else:
        assert allocations[0] is not None, ours
        assert [_comparable(each) for each in ours.results] == [
            _comparable(msgspec.convert(each, AllocationResult, strict=False)) for each in allocations
        ]


def _read(manifest: Any, kind: type[Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(manifest), type=kind)


def _comparable(allocation: AllocationResult) -> Any:
    """Without what is random or a time, and with amounts instead of their texts."""
    results = [
        msgspec.structs.replace(
            result,
            share_id="share" if result.share_id else "",
            consumed_capacity={name: str(exact(each)) for name, each in result.consumed_capacity.items()},
        )
        for result in allocation.devices.results
    ]
    return results, allocation.devices.config, allocation.node_selector
