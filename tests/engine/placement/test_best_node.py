"""best_node: a plugin may pick among the candidates, given their scores (spec 02 0.7)."""

from typing import ClassVar

from stromboli.engine.plugin import Plugin
from stromboli.testing import World

NODES = "n1 cpu=4; n2 cpu=4; n3 cpu=1"


def picking(picked):
    class Pick(Plugin):
        name = "pick"
        seen: ClassVar[dict[str, float]] = {}

        def best_node(self, task, scores):
            type(self).seen = scores
            return picked

    return Pick


def binds(picked):
    plugin = picking(picked)
    world = World(nodes=NODES).job("job", cpu=2)
    return world.run(plugins="gang | pick", plugin_classes=[plugin]).binds, plugin.seen


def test_the_node_that_a_plugin_picks_is_taken():
    assert binds("n2")[0] == {"default/job-0": "n2"}


def test_without_an_answer_the_highest_score_decides():
    assert binds(None)[0] == {"default/job-0": "n1"}


def test_only_candidates_are_offered_and_nothing_else_can_be_picked():
    bound, offered = binds("n3")
    assert sorted(offered) == ["n1", "n2"]
    assert bound == {"default/job-0": "n1"}
