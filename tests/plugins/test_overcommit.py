"""The cluster-wide gate: how much may be let in, and that the sum kept across cycles is the right one."""

import random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.model.cluster import Dirty
from stromboli.plugins.overcommit import Overcommit, OvercommitArguments
from stromboli.policy.arguments import parse_arguments
from stromboli.testing import World
from stromboli.testing.world import NOON
from tests.manifests import events, group, node, phases, pod, policy, queue
from tests.number_of_examples import scaled

GATE = policy("enqueue", "overcommit")


def _let_in(*objects: dict[str, Any], factor: float = 1.2) -> list[str]:
    world = World(policy=policy("enqueue", ("overcommit", {"overcommit-factor": factor}))).add(*objects)
    world.step()
    return [name for name, phase in phases(world).items() if phase == "Inqueue"]


def test_a_fifth_more_than_the_cluster_has_is_admitted() -> None:
    jobs = [group(f"j{index}", 1, minResources={"cpu": "4"}, phase="") for index in range(4)]
    assert _let_in(node("n", cpu="10"), *jobs) == ["j0", "j1", "j2"]


def test_a_refused_job_does_not_hold_up_a_smaller_one_and_gets_the_reason() -> None:
    world = World(policy=GATE).add(
        node("n", cpu="1", gpu="1"),
        group("large", 1, minResources={"nvidia.com/gpu": "4", "cpu": "2", "memory": "1"}, phase=""),
        group("small", 1, minResources={"cpu": "1"}, phase=""),
    )
    outcome = world.step()
    assert phases(world) == {"large": "Pending", "small": "Inqueue"}
    assert events(outcome) == {
        "large": "resource in cluster is overused: overused cpu, overused nvidia.com/gpu"
    }
    assert events(world.step()) == {}, "the same is not said twice"


def test_pods_of_all_schedulers_count_as_used() -> None:
    other = pod("x", on="n", scheduler="default-scheduler", cpu="3")
    assert (
        _let_in(node("n", cpu="4"), other, group("j", 1, minResources={"cpu": "2"}, phase=""), factor=1) == []
    )


def test_an_inqueue_job_counts_in_full_whatever_it_already_has() -> None:
    running = [
        group("half", 2, minResources={"cpu": "2"}),
        pod("p", "half", on="n", cpu="1"),
    ]
    # 4 less 1 used less 2 held leaves 1, although only 1 is still to come
    assert _let_in(
        node("n", cpu="4"), *running, group("j", 1, minResources={"cpu": "2"}, phase=""), factor=1
    ) == ["half"]


@pytest.mark.parametrize(("pods", "let_in"), [(2, []), (1, ["j"])])
def test_a_running_job_counts_for_what_it_lacks_once_its_minimum_runs(pods: int, let_in: list[str]) -> None:
    running = [pod(f"p-{index}", "half", on="n", cpu="1") for index in range(pods)]
    half = group("half", 2, phase="Running", minResources={"cpu": "4"})
    waiting = group("j", 1, minResources={"cpu": "5"}, phase="")
    assert _let_in(node("n", cpu="8"), half, *running, waiting, factor=1) == let_in


def test_gated_pods_are_not_held_for_unless_the_gate_is_our_own() -> None:
    jobs = [group("g", 1, minResources={"cpu": "2"}), group("j", 1, minResources={"cpu": "2"}, phase="")]
    gated = pod("p", "g", gates=["example.com/wait"], cpu="2")
    ours = pod("p", "g", gates=["scheduling.volcano.sh/queue-allocation-gate"], cpu="2")
    assert _let_in(node("n", cpu="2"), *jobs, gated, factor=1) == ["g", "j"]
    assert _let_in(node("n", cpu="2"), *jobs, ours, factor=1) == ["g"]


def test_a_factor_below_one_keeps_the_default_with_a_warning() -> None:
    arguments, problems = parse_arguments(OvercommitArguments, {"overcommit-factor": 0.5})
    assert arguments.factor == 1.2
    assert [problem.message for problem in problems] == [
        "overcommit-factor: must be at least 1, got 0.5; the default is used"
    ]


def _change(world: World, choice: random.Random) -> None:
    """Something happens to the cluster."""
    name, other = (f"j{choice.randrange(4)}" for _ in range(2))
    phase = choice.choice(["", "Pending", "Inqueue", "Running", "Unknown"])
    least = choice.choice([{}, {"minResources": {"cpu": str(choice.randrange(1, 4)), "nvidia.com/gpu": "1"}}])
    manifest = choice.choice(
        [
            group(name, choice.randrange(3), phase=phase, queue=choice.choice("qr"), **least),
            pod(f"{name}-p", name, on=choice.choice(["", "n0", "n1"]), cpu="1"),
            pod(f"{other}-g", name, gates=choice.choice([(), ("example.com/wait",)]), cpu="1"),
            node(f"n{choice.randrange(3)}", cpu=str(choice.randrange(4, 9))),
            queue(choice.choice("qr")),
        ]
    )
    if choice.random() < 0.2:
        world.remove(manifest)
    else:
        world.add(manifest)


@settings(max_examples=scaled(30), deadline=None)
@given(st.integers(0, 2**32))
@example(4438)
def test_what_is_kept_across_cycles_equals_what_is_counted_afresh(seed: int) -> None:
    choice = random.Random(seed)
    world = World(policy=policy("enqueue, allocate", "gang", "overcommit"))
    world.add(queue("q"), node("n0", cpu="8"), node("n1", cpu="4"))
    for _ in range(12):
        for _ in range(choice.randrange(4)):
            _change(world, choice)
        world.step()
        session = world.engine._session(world.cluster, NOON)
        kept, fresh = world.plugin("overcommit"), Overcommit(OvercommitArguments(), {})
        kept.opening(session, session.changed)
        fresh.opening(session, Dirty())
        assert (kept.inqueue, kept.idle) == (fresh.inqueue, fresh.idle)


def test_a_quiet_cycle_looks_at_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(policy=GATE).add(node("n", cpu="4"), group("j", 1, minResources={"cpu": "1"}))
    world.step()
    world.step()
    look = "stromboli.engine.job_needs.JobNeeds.reserved"
    monkeypatch.setattr(look, lambda self, job, in_full: pytest.fail(f"looked at {job}"))
    world.step()
