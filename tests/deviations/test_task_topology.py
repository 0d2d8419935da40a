"""Roles together or apart: where we count otherwise than Volcano."""

from stromboli.testing import World
from tests.manifests import binds, events, group, node, pod, policy

POLICY = policy("enqueue, allocate", "gang | predicates", ("task-topology", {"task-topology.weight": 10}))
APART, TOGETHER = ({f"volcano.sh/task-topology-{key}": "ps"} for key in ("anti-affinity", "affinity"))


def test_a_gang_that_is_given_up_counts_nowhere() -> None:
    """In Volcano its pods count as placed where they were tried until the cycle ends."""
    world = World(policy=POLICY).add(node("a", cpu=4), node("b", cpu=4), group("j", 3, annotations=APART))
    world.add(*(pod(f"j-{index}", "j", role="ps", cpu=3) for index in range(3)))
    before = None
    for _ in range(2):
        assert world.step().binds == {}
        scores = world.scores("task-topology", "j-0")
        assert scores == (before or scores)
        before = scores
    assert before == {"a": 1000.0, "b": 1000.0}


def test_a_pod_that_has_ended_draws_nobody() -> None:
    """In Volcano the node on which it ran is worth more."""
    world = World(policy=POLICY).add(node("a"), node("b"), group("j", 1, annotations=TOGETHER))
    ended = pod("j-0", "j", role="ps", on="b", phase="Succeeded")
    assert binds(world.add(ended, pod("j-1", "j", role="ps")).step()) == {"j-1": "a"}


def test_a_role_that_does_not_exist_is_told() -> None:
    """Volcano ignores the lists in silence."""
    world = World(policy=POLICY).add(
        node("a"), group("j", 1, annotations=APART), pod("j-0", "j", role="worker")
    )
    message = events(world.step(), "FieldIgnored", "Warning")["j"]
    assert 'volcano.sh/task-topology-anti-affinity: the job has no task "ps"' in message
