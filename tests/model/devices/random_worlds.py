"""Random pools and claims, small enough for a search that tries everything."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

from stromboli.api.types.devices import DeviceClass, ResourceClaim, ResourceSlice
from tests.model.devices.device_worlds import (
    DRIVER,
    device,
    exactly,
    make_claim,
    make_class,
    make_slice,
    request,
)

SELECTORS = {
    f'device.attributes["{DRIVER}"].model == "a"': lambda each: each["attributes"]["model"]["string"] == "a",
    f'device.attributes["{DRIVER}"].numa < 1': lambda each: each["attributes"]["numa"]["int"] < 1,
    f'"memory" in device.capacity["{DRIVER}"]': lambda each: "memory" in each["capacity"],
    "true": lambda each: True,
}
"""Expressions, each with the same as a function of a device."""
TOLERATIONS = [[], [], [{"key": "broken", "operator": "Exists"}]]


class RandomWorld(NamedTuple):
    slices: list[ResourceSlice]
    claims: list[ResourceClaim]
    device_class: DeviceClass
    devices: list[dict[str, Any]]
    """Those of the slices, in order."""


def random_world(random: Random, name: str = "s") -> RandomWorld:
    """A pool with counters, partitions, shared and tainted devices, and one or two claims."""
    counters = random.random() < 0.4
    devices = [_device(random, f"d{number}", counters) for number in range(random.randint(2, 6))]
    middle = random.randint(1, len(devices))
    parts = [part for part in (devices[:middle], devices[middle:]) if part]
    pool = {"name": name, "resourceSliceCount": len(parts) + counters}
    slices = [make_slice(f"{name}-{place}", part, pool=pool) for place, part in enumerate(parts)]
    if counters:
        shared = [{"name": "card", "counters": {"slices": {"value": str(random.randint(2, 6))}}}]
        slices.append(make_slice(f"{name}-counters", pool=pool, sharedCounters=shared))
    claims = [_claim(random, f"{name}-claim-{number}") for number in range(random.randint(1, 2))]
    return RandomWorld(slices, claims, make_class(), devices)


def _device(random: Random, name: str, counters: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"model": random.choice("ab"), "numa": random.randint(0, 1), "capacity": {}}
    if random.random() < 0.5:
        memory: dict[str, Any] = {"value": random.choice(["4Gi", "8Gi"])}
        fields["capacity"] = {"memory": memory}
        if random.random() < 0.5:
            fields["allowMultipleAllocations"] = True
            if random.random() < 0.7:
                span = {"min": "1Gi", "max": memory["value"], "step": "1Gi"}
                memory["requestPolicy"] = {"default": "2Gi", "validRange": span}
    if counters and random.random() < 0.7:
        taken = {"slices": {"value": str(random.randint(1, 3))}}
        fields["consumesCounters"] = [{"counterSet": "card", "counters": taken}]
    if random.random() < 0.2:
        fields["taints"] = [{"key": "broken", "effect": random.choice(["NoSchedule", "NoExecute", "None"])}]
    return device(name, **fields)


def _claim(random: Random, name: str) -> ResourceClaim:
    requests = [_request(random, f"r{number}") for number in range(random.randint(1, 3))]
    constraints: list[dict[str, Any]] = []
    if random.random() < 0.4:
        constraints.append({"matchAttribute": f"{DRIVER}/numa"})
    single = [each["name"] for each in requests if each.get("exactly", {}).get("count") == 1]
    if len(single) > 1 and random.random() < 0.5:
        constraints.append({"requests": single, "distinctAttribute": f"{DRIVER}/model"})
    return make_claim(*requests, name=name, constraints=constraints)


def _request(random: Random, name: str) -> dict[str, Any]:
    if random.random() < 0.3:
        options = [{"name": f"o{number}", **_asked(random)} for number in range(2)]
        return {"name": name, "firstAvailable": options}
    return request(name, **{"selectors": [], **_asked(random)})


def _asked(random: Random) -> dict[str, Any]:
    chosen = [text for text in SELECTORS if random.random() < 0.25]
    asked = exactly(*chosen, tolerations=random.choice(TOLERATIONS))
    if random.random() < 0.15:
        asked["allocationMode"] = "All"
    else:
        asked["count"] = random.choice([1, 1, 1, 2])
    if "memory" in " ".join(chosen) and random.random() < 0.6:
        asked["capacity"] = {"requests": {"memory": random.choice(["1Gi", "1500Mi", "3Gi", "6Gi"])}}
    return asked
