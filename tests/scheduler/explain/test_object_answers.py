"""What the leader says of an object; and of what follows from API objects, that anybody would say the same."""

from __future__ import annotations

import random

import msgspec
import pytest

from stromboli.engine.cycle import Outcome
from stromboli.engine.explanation.closest_domain import ELSEWHERE
from stromboli.engine.plugin import Plugin
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.scheduler.explain.decision_history import DecisionHistory
from stromboli.scheduler.explain.explain_paths import Question
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.object_answers import MAX_REMEMBERED, ObjectAnswers
from tests.manifests import group, hyper_node, native_group, node, pod, queue
from tests.properties.living import LivingWorld, engine

TIERS = ("priority, gang", "drf, predicates, proportion, nodeorder")


def answer(outcome: Outcome, resource: str, name: str) -> LeaderAnswer:
    namespace = "" if resource in ("queues", "nodes") else "default"
    given = ObjectAnswers(DecisionHistory(1.0)).of(Question(resource, namespace, name), outcome)
    assert msgspec.json.decode(msgspec.json.encode(given), type=LeaderAnswer) == given
    return given


def full_world() -> LivingWorld:
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "train",
        "uid": "j",
        "controller": True,
    }
    owned = group("train-pg", 2)
    owned["metadata"]["ownerReferences"] = [owner]
    pods = [pod(f"train-{n}", "train-pg", cpu=3) for n in (0, 1)]
    objects = [queue(), node("n1"), pod("old", cpu=2, on="n1", phase="Running"), owned, *pods]
    return LivingWorld(objects, lambda: engine(*TIERS, actions="enqueue, allocate"))


@pytest.mark.parametrize(
    ("resource", "name"), [("podgroups", "train-pg"), ("jobs", "train"), ("pods", "train-1")]
)
def test_a_job_is_found_by_its_group_its_owner_and_its_pods(resource: str, name: str) -> None:
    given = answer(full_world().cycle(), resource, name)
    assert given.known
    assert given.job == "train-pg"
    assert given.explanation is not None
    assert given.explanation.reason == "Insufficient cpu" or given.explanation.shortages
    assert bool(given.pod) is (resource == "pods")


@pytest.mark.parametrize(
    ("resource", "name"),
    [("podgroups", "other"), ("jobs", "train-pg"), ("pods", "train-2"), ("queues", "nix"), ("nodes", "n2")],
)
def test_what_is_not_there_is_not_known(resource: str, name: str) -> None:
    given = answer(full_world().cycle(), resource, name)
    assert not given.known
    assert not given.history.entries


def test_queues_and_nodes_are_known_by_their_names() -> None:
    outcome = full_world().cycle()
    assert answer(outcome, "queues", "default").known
    assert answer(outcome, "nodes", "n1").known


class Mindful(Plugin):
    """Remembers too much."""

    name = "mindful"

    def remembered(self, subject: Job | Queue) -> dict[str, str]:
        return {f"text {number}": "x" * 10_000 for number in range(1000)}


class Forgetful(Plugin):
    """Cannot tell."""

    name = "forgetful"

    def remembered(self, subject: Job | Queue) -> dict[str, str]:
        raise OverflowError("no idea")


def test_texts_of_plugins_are_bounded_and_a_failing_plugin_has_none() -> None:
    objects = [queue(), node("n1"), group("train", 1), pod("train-0", "train", cpu=64)]
    tier = "gang, forgetful, mindful, predicates"
    world = LivingWorld(objects, lambda: engine(tier, plugin_classes=(Mindful, Forgetful)))
    given = answer(world.cycle(), "podgroups", "train")
    assert list(given.remembered) == ["mindful"]
    assert len(given.remembered["mindful"]) == 16
    assert {len(text) for text in given.remembered["mindful"].values()} == {MAX_REMEMBERED}


def test_fair_shares_are_remembered_for_jobs_and_queues() -> None:
    objects = [
        queue(),
        node("n1"),
        group("now", 1),
        pod("now-0", "now", cpu=2, on="n1", phase="Running"),
        group("train", 1),
        pod("train-0", "train", cpu=64),
    ]
    world = LivingWorld(objects, lambda: engine("gang, fairshare, predicates"))
    for _ in range(3):
        outcome = world.step()
        world.now += 3600
    job = answer(outcome, "podgroups", "train").remembered["fairshare"]
    assert job["user"] == "default"
    assert job["usage of the user"].endswith("and 50 % of it now")
    assert not job["usage of the user"].startswith("0 ")
    assert answer(outcome, "queues", "default").remembered["fairshare"]["usage"].endswith("50 % of it now")


def test_holders_in_other_namespaces_are_not_named() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    objects = [
        queue(),
        node("n1", cpu=6),
        node("n2", cpu=4),
        hyper_node("r1", nodes=["n1"]),
        hyper_node("r2", nodes=["n2"]),
        group("secret", 1, namespace="rivals"),
        pod("secret-0", "secret", cpu=2, on="n1", namespace="rivals"),
        pod("lonely", cpu=0.5, on="n1", namespace="rivals"),
        group("ours", 1),
        pod("ours-0", "ours", cpu=1, on="n1"),
        pod("ours-1", "ours", cpu=4, on="n2"),
        group("train", 4, networkTopology=topology),
        *(pod(f"train-{n}", "train", cpu=1) for n in range(4)),
    ]
    actions = "enqueue, allocate"
    world = LivingWorld(objects, lambda: engine("gang, predicates, network-topology-aware", actions=actions))
    outcome = world.cycle()
    given = answer(outcome, "podgroups", "train")
    assert given.explanation is not None
    assert given.explanation.closest is not None
    text = msgspec.json.encode(given).decode() + answer(outcome, "pods", "train-1").pod
    assert "rivals" not in text
    assert {holder.job for holder in given.explanation.closest.holders} == {ELSEWHERE, "default/ours"}
    assert given.explanation.closest.text in given.explanation.message


@pytest.mark.parametrize("elsewhere", ["default-2", "defaul", "pod", "t0p-secret"])
def test_names_that_look_like_those_of_the_reader_are_not_named_either(elsewhere: str) -> None:
    """Names of objects are chosen by other users: no name of theirs may make the leader take a job for the reader's."""
    names = ("default", "train", "pod-default", "closest", "cpu")
    objects = [
        queue(),
        *(node(f"n{number}", cpu=6) for number in range(2)),
        hyper_node("default", nodes=["n0"]),
        hyper_node("pod", nodes=["n1"]),
        *(group(name, 1, namespace=elsewhere) for name in names),
        *(pod(f"{name}-{elsewhere}", name, cpu=1, on="n0", namespace=elsewhere) for name in names),
        pod(f"lone-{elsewhere}", cpu=5, on="n1", namespace=elsewhere),
        group("train", 4, networkTopology={"mode": "hard", "highestTierAllowed": 1}),
        *(pod(f"train-{n}", "train", cpu=1) for n in range(4)),
    ]
    actions = "enqueue, allocate"
    world = LivingWorld(objects, lambda: engine("gang, predicates, network-topology-aware", actions=actions))
    outcome = world.cycle()
    given = answer(outcome, "podgroups", "train").explanation
    assert given is not None
    assert given.closest is not None
    assert {holder.job for holder in given.closest.holders} == {ELSEWHERE}
    assert given.closest.text in given.message
    text = msgspec.json.encode(given).decode() + answer(outcome, "pods", "train-1").pod
    assert f"{elsewhere}/" not in text
    assert f"-{elsewhere}" not in text
    (job,) = (each for each in world.intake.cluster.jobs.values() if each.key == "default/train")
    everything = outcome.explain(job)
    assert everything is not None
    assert f"{elsewhere}/" in everything.message


def test_a_group_of_kubernetes_itself_has_a_history_of_its_own() -> None:
    gang = [native_group("train", 1), pod("native-0", native="train", cpu=1)]
    objects = [queue(), node("n1"), group("train", 1), pod("train-0", "train", cpu=64), *gang]
    world = LivingWorld(objects, lambda: engine(*TIERS, actions="enqueue, allocate"))
    history, outcome = DecisionHistory(1.0), world.cycle()
    history.note_decisions(world.intake.cluster, outcome.decisions, 2.0)
    history.note_outcome(outcome)
    kinds = {
        resource: [
            entry.kind
            for entry in ObjectAnswers(history)
            .of(Question(resource, "default", "train"), outcome)
            .history.entries
        ]
        for resource in ("podgroups", "podgroups.scheduling.k8s.io")
    }
    assert "bound" in kinds["podgroups.scheduling.k8s.io"]
    assert "waits" in kinds["podgroups"]
    assert "bound" not in kinds["podgroups"]


def random_world(chance: random.Random) -> LivingWorld:
    objects = [
        queue(),
        queue("small", capability={"cpu": "4"}),
        *(node(f"n{n}", cpu=chance.choice((2, 4, 8))) for n in range(chance.randint(1, 4))),
    ]
    for number in range(chance.randint(1, 6)):
        objects += job(chance, f"job-{number}")
    return LivingWorld(objects, lambda: engine(*TIERS, actions="enqueue, allocate, backfill"))


def job(chance: random.Random, name: str) -> list[dict[str, object]]:
    pods, cpu = chance.randint(1, 4), chance.choice((1, 2, 3, 6))
    made = group(
        name,
        chance.randint(1, pods),
        phase="Pending",
        queue=chance.choice(("default", "default", "small", "missing")),
    )
    return [made, *(pod(f"{name}-{n}", name, cpu=cpu) for n in range(pods))]


@pytest.mark.parametrize("seed", range(60))
def test_a_leader_that_has_lived_says_what_anybody_computes_from_the_objects(seed: int) -> None:
    """Cycle after cycle things change; then the explanations are those of a new engine that reads the same objects."""
    chance = random.Random(seed)
    world = random_world(chance)
    for number in range(chance.randint(1, 5)):
        world.step()
        if chance.random() < 0.5:
            for made in job(chance, f"late-{number}"):
                world.put(made)
    outcome = world.step()
    while any(type(decision).__name__ in ("Bind", "PodGroupStatus") for decision in outcome.decisions):
        outcome = world.step()
    fresh = LivingWorld(list(world.objects.values()), world.make_engine)
    fresh.now = world.now
    own = fresh.cycle()
    groups = [key.partition("/")[2] for kind, key in world.objects if kind.__name__ == "PodGroup"]
    assert groups
    for name in sorted(groups):
        ObjectAnswers(DecisionHistory()).look_again(
            Question("podgroups", "default", name), world.intake.cluster
        )
        given, computed = answer(world.cycle(), "podgroups", name), answer(own, "podgroups", name)
        assert given.explanation == computed.explanation, name
        assert (given.phase, given.queue, given.promise) == (computed.phase, computed.queue, computed.promise)
