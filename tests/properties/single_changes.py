"""Single changes of objects in the worlds of the feed, named by kind, what changes, and setting."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.model.intake.object_intake import Intake
from stromboli.model.lookup_objects import TABLES
from tests.properties.feed_worlds import SETTINGS, world_objects
from tests.properties.mutations import Mutator
from tests.properties.probe import ProbedWorld

MUTABLE: tuple[type[Object], ...] = (
    *(Pod, Node, PodGroup, NativePodGroup, Queue),
    *(*TABLES, ReplicaSet, StatefulSet, ReplicationController),
)
KINDS = {kind.__name__: kind for kind in MUTABLE}
OBJECTS, DRAWS = 6, 16
"""How many objects of a kind are tried, and how many values of a field."""


class Witness(NamedTuple):
    """Changes without which something is missed: of a kind, `goes`, `comes` or the path of a field, in a setting."""

    kind: str
    what: str
    setting: str
    names: str = ""
    """A part of the names of the objects."""


class Change(NamedTuple):
    """An object comes, goes or changes in a world with a setting."""

    setting: str
    before: Object | None
    after: Object | None

    def make(self, world: ProbedWorld) -> None:
        if self.after is not None:
            put(world, self.after)
        elif self.before is not None:
            world.drop(self.before)

    def world(self, *, after: bool) -> ProbedWorld:
        """A world made of the objects as they are before or after it."""
        kept, known = self.after if after else self.before, self.before or self.after
        assert known is not None
        others = [obj for obj in world_objects(0) if (type(obj), obj.key) != (type(known), known.key)]
        return ProbedWorld([*others, *([kept] if kept is not None else [])], SETTINGS[self.setting])


def changes(witness: Witness) -> Iterator[Change]:
    """Changes of a sort, as there are many objects and values."""
    kind, what, setting, names = witness
    chance, objects = random.Random(kind), world_objects(0)
    known = sorted(
        (obj for obj in objects if type(obj) is KINDS[kind] and names in obj.key), key=lambda obj: obj.key
    )
    chance.shuffle(known)
    if what in ("goes", "comes"):
        for obj in known[:OBJECTS]:
            yield Change(setting, obj, None) if what == "goes" else Change(setting, None, obj)
        return
    mutator, path = Mutator(objects, chance), tuple(what.split("."))
    for _ in range(DRAWS):
        obj = chance.choice(known)
        mutated = mutator.mutated(obj, path)
        if is_usable(mutated):
            yield Change(setting, obj, mutated)


def is_usable(obj: Object) -> bool:
    try:
        Intake().put(obj)
    except BadObject:
        return False
    return True


def put(world: ProbedWorld, obj: Object) -> None:
    """A pod does not leave its node and wait again: it is deleted, and another comes."""
    before = world.objects.get((type(obj), obj.key))
    if isinstance(obj, Pod) and isinstance(before, Pod) and before.spec.node_name and not obj.spec.node_name:
        world.drop(before)
    world.put(obj)
