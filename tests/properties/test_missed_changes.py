"""No cache misses a change: any field of any object may change, and the model decides as one made of the objects.

The fields are those of the structs, so a field that is new is among them. Only one changes at a time, in a cluster in
which nothing else happens: whatever does not follow it is found out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy

import pytest

from stromboli.api.types.devices import ResourceClaimTemplate
from stromboli.api.types.meta import Object
from tests.number_of_examples import scaled
from tests.properties.feed_worlds import SETTINGS, Setting, world_objects
from tests.properties.mutations import Mutator, Path, mutable_fields
from tests.properties.probe import SHARD, ProbedWorld, differences
from tests.properties.single_changes import MUTABLE, Witness, changes, is_usable, put

WORLDS = 4
SEEDS = 9
"""Each seed mutates every so manyth field; `STROMBOLI_EXAMPLES=3` mutates all."""
UNREAD = {
    ResourceClaimTemplate: "controllers make claims of it, which are read",
}
"""Kinds that no decision reads."""
SEEN: dict[str, tuple[str, ...]] = {
    "Pod": ("spec.containers.ports", "spec.containers.resources", "metadata.labels"),
    "Node": ("spec.taints", "status.allocatable", "metadata.labels"),
    "PodGroup": ("spec.min_member", "spec.queue"),
    "NativePodGroup": ("spec.scheduling_constraints.topology.key",),
    "Queue": ("spec.capability", "spec.priority"),
    "Namespace": ("metadata.labels",),
    "PriorityClass": ("value",),
    "ResourceQuota": ("status.hard", "status.used"),
    "PodDisruptionBudget": ("status.disruptions_allowed", "spec.selector"),
    "HyperNode": ("spec.members",),
    "NodeShard": ("spec.nodes_desired",),
    "Numatopology": ("spec",),
    "PersistentVolume": ("spec.csi.driver",),
    "PersistentVolumeClaim": ("spec",),
    "StorageClass": ("provisioner",),
    "CSINode": ("spec.drivers.allocatable.count",),
    "DeviceClass": ("spec.extended_resource_name", "spec.selectors"),
    "ResourceSlice": ("spec.devices", "spec.node_name"),
    "ResourceClaim": ("status.allocation", "spec.devices.requests"),
    "CSIDriver": ("spec.storage_capacity",),
    "CSIStorageCapacity": ("capacity",),
    "VolumeAttachment": ("spec.node_name", "spec.source"),
    "ConfigMap": ("data",),
    "Service": ("spec.selector",),
    "ReplicaSet": ("spec.selector",),
    "StatefulSet": ("spec.selector",),
    "ReplicationController": ("spec.selector",),
}
"""Of each kind, fields of which a probe sees a change: else it would prove nothing that the kind is mutated."""


# -- one change after the other


def fields_changed(
    world: ProbedWorld, kind: type[Object], chance: random.Random, seed: int
) -> Iterator[tuple[Path, Object]]:
    """An object of a kind for every so manyth field, with another value in it."""
    mutator = Mutator(world.objects.values(), chance)
    for path in mutable_fields(kind)[seed::SEEDS]:
        known = of_kind(world, kind)
        deepest = max(mutator.depth(obj, path) for obj in known)
        obj = mutator.mutated(
            chance.choice([obj for obj in known if mutator.depth(obj, path) == deepest]), path
        )
        if is_usable(obj):
            yield path, obj


def of_kind(world: ProbedWorld, kind: type[Object]) -> list[Object]:
    return sorted((obj for obj in world.objects.values() if type(obj) is kind), key=lambda obj: obj.key)


def check(world: ProbedWorld, setting: Setting, what: str) -> None:
    """What the model comes to is what one comes to that is made of the same objects."""
    fresh = ProbedWorld(world.objects.values(), setting)
    fresh.now, fresh.intake.cluster.memory = world.now, deepcopy(world.intake.cluster.memory)
    missed = differences(world.probe(), fresh.probe())
    assert not missed, what


def world_of(kind: type[Object], seed: int) -> tuple[ProbedWorld, Setting, random.Random]:
    chance = random.Random(f"{kind.__name__} {seed}")
    setting = SETTINGS[chance.choice(list(SETTINGS))]
    return ProbedWorld(world_objects(chance.randrange(WORLDS)), setting), setting, chance


every_kind = pytest.mark.parametrize("kind", MUTABLE, ids=lambda kind: kind.__name__)


def test_the_probe_is_known_to_see_every_kind_that_is_read() -> None:
    assert {*SEEN, *(kind.__name__ for kind in UNREAD)} == {kind.__name__ for kind in MUTABLE}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, fields in SEEN.items() for field in fields]
)
def test_a_probe_sees_that_a_field_changes(kind: str, field: str) -> None:
    sorts = [Witness(kind, field, setting) for setting in SETTINGS]
    assert any(
        change.world(after=False).probe() != change.world(after=True).probe()
        for sort in sorts
        for change in changes(sort)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(min(scaled(3), SEEDS)))
@every_kind
def test_no_cache_misses_a_field_that_changes(kind: type[Object], seed: int) -> None:
    world, setting, chance = world_of(kind, seed)
    for path, obj in fields_changed(world, kind, chance, seed):
        world.catch_up()
        before = world.objects[type(obj), obj.key]
        put(world, obj)
        check(world, setting, f"{obj.key}: {'.'.join(path)}: {before} -> {obj}")
        put(world, before)


@pytest.mark.parametrize("seed", range(3))
@every_kind
def test_no_cache_misses_an_object_that_goes(kind: type[Object], seed: int) -> None:
    world, setting, chance = world_of(kind, seed)
    gone = chance.choice([obj for obj in of_kind(world, kind) if obj.key != SHARD])  # see `NodeShards`
    world.catch_up()
    world.drop(gone)
    check(world, setting, f"{gone.key} goes")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@every_kind
def test_no_cache_misses_an_object_that_comes(kind: type[Object], seed: int) -> None:
    world, setting, chance = world_of(kind, seed)
    new = chance.choice(of_kind(world, kind))
    world.drop(new)
    world.catch_up()
    world.put(new)
    check(world, setting, f"{new.key} comes")
