"""What the measurements of placement in the network's shape count."""

from bench.gang_stream import Stream, stream
from bench.network_tree import policy
from bench.ring_crossings import crossings, gangs_of, world_of


def test_fewer_neighbours_cross_a_leaf_with_ranks_side_by_side() -> None:
    crossing = {}
    for on in (False, True):
        world = world_of(1, (40, 40), nodes=64)
        world.run(policy=policy(ranksSideBySide=on))
        world.rehearsal.sync()
        assert len(list(gangs_of(world))) == 2
        tiers = crossings(world)
        assert tiers[0] == 80
        crossing[on] = tiers[0] - tiers[1]
    assert crossing[True] < crossing[False]


def test_a_stream_of_gangs_is_the_same_each_time_and_counts_what_waits() -> None:
    gangs = list(stream(2, 0.9, 128, 100))
    assert gangs == list(stream(2, 0.9, 128, 100))
    outcome = Stream(policy(keepBlocksWhole=True), 128).run(iter(gangs), 100, 10)
    assert outcome.gangs == sum(gang.comes >= 10 for gang in gangs)
    assert 0 < outcome.placed <= outcome.gangs
    assert 0.5 < outcome.used <= 1
