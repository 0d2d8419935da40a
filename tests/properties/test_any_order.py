"""Objects may come in any order, be replaced and dropped: the model is the one that the last word of each makes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.testing import World
from tests.properties.rebuild import facts, kept_sums, rebuilt_sums
from tests.properties.strategies import examples, worlds
from tests.properties.test_bookkeeping import watch

Change = tuple[str, Object]


def name_of(obj: Object) -> tuple[str, str]:
    return type(obj).__name__, obj.key


def holds_room(obj: Object) -> bool:
    return isinstance(obj, Pod) and bool(obj.spec.node_name)


def stories(earlier: list[Object], final: list[Object], chance: random.Random) -> list[list[Change]]:
    """For each name what is told of it, in order: perhaps an older version, then the last word."""
    old = {name_of(obj): obj for obj in earlier}
    last = {name_of(obj): obj for obj in final}
    histories = []
    for name in sorted({*old, *last}):
        history: list[Change] = []
        if name in old and (name not in last or chance.random() < 0.7):
            history.append(("add", old[name]))
            # A pod does not leave its node and wait again: it is deleted, and another comes.
            away = name not in last or (holds_room(old[name]) and not holds_room(last[name]))
            if away or chance.random() < 0.3:
                history.append(("remove", old[name]))
        if name in last:
            history.append(("add", last[name]))
        histories.append(history)
    return histories


def shuffled(histories: list[list[Change]], chance: random.Random) -> list[Change]:
    """The stories interleaved at random, each in its own order."""
    histories = [list(history) for history in histories]
    mixed = []
    while histories:
        history = chance.choice(histories)
        mixed.append(history.pop(0))
        histories = [history for history in histories if history]
    return mixed


@given(worlds(), worlds(), st.integers(0, 2**32))
@examples(60)
def test_the_last_word_of_each_object_makes_the_model(
    earlier: list[Object], final: list[Object], seed: int
) -> None:
    chance = random.Random(seed)
    world = World()
    cluster = world.cluster
    watch(cluster)
    for verb, obj in shuffled(stories(earlier, final, chance), chance):
        getattr(world, verb)(obj)
        if chance.random() < 0.1:
            cluster.settle()
            assert kept_sums(cluster) == rebuilt_sums(cluster)
    cluster.settle()
    assert kept_sums(cluster) == rebuilt_sums(cluster)

    watch(cluster)  # counts are made again when they are used after nodes got other rows
    fresh = World().add(*final).cluster
    watch(fresh)
    assert facts(cluster) == facts(fresh)


@given(worlds(), st.integers(0, 2**32))
@examples(25)
def test_hearing_the_same_again_changes_nothing(objects: list[Object], seed: int) -> None:
    world = World().add(*objects)
    before = facts(world.cluster)
    for obj in random.Random(seed).sample(objects, len(objects)):
        world.add(obj)
    assert facts(world.cluster) == before
