"""Rollouts whatever happens to the pods: never too many, never made too few available."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.controllers.workloads.deployment.reconcile import Outcome, reconcile
from stromboli.controllers.workloads.deployment.rollout_limits import least_available, most_pods, size
from stromboli.controllers.workloads.workload_kinds import Deployment, ReplicaSet
from tests.controllers.workloads.replicated_objects import NOW, deployment, rolling, template
from tests.number_of_examples import scaled

AMOUNTS = st.one_of(st.integers(0, 6), st.integers(0, 100).map("{}%".format))
ACTS = st.sampled_from(["reconcile", "sync", "ready", "unready", "image"])


class World:
    """A Deployment, its ReplicaSets, and how many of their pods exist and are ready."""

    def __init__(self, owner: Deployment) -> None:
        self.owner = owner
        self.sets: dict[str, ReplicaSet] = {}
        self.pods: dict[str, list[bool]] = {}
        self.images = 0

    def reconcile(self) -> Outcome:
        outcome = reconcile(self.owner, list(self.sets.values()), False, NOW)
        for update in outcome.updates:
            update.replica_set.spec.replicas = update.size
            update.replica_set.metadata.annotations |= update.annotations
        for gone in outcome.delete:
            del self.sets[gone.name], self.pods[gone.name]
        if outcome.create is not None:
            made = msgspec.convert(outcome.create, ReplicaSet)
            made.metadata.uid = f"uid-{made.name}"
            self.sets[made.name], self.pods[made.name] = made, []
        self.owner.status = outcome.status
        self.owner.metadata.annotations["deployment.kubernetes.io/revision"] = outcome.revision
        return outcome

    def sync(self) -> None:
        """What the ReplicaSet controller does: pods that are not ready go first."""
        for name, replica_set in self.sets.items():
            pods = sorted(self.pods[name], reverse=True)[: size(replica_set)]
            pods += [False] * (size(replica_set) - len(pods))
            self.pods[name] = pods
            replica_set.status.replicas = len(pods)
            replica_set.status.ready_replicas = replica_set.status.available_replicas = sum(pods)
            replica_set.status.observed_generation = replica_set.metadata.generation

    def set_ready(self, ready: bool) -> None:
        """One pod, if there is another to be."""
        for pods in self.pods.values():
            if (not ready) in pods:
                pods[pods.index(not ready)] = ready
                return

    def image(self) -> None:
        self.images += 1
        self.owner.spec.template = template(f"image-{self.images % 3}")
        self.owner.metadata.generation += 1

    @property
    def progress(self) -> str:
        conditions = self.owner.status.conditions
        return next((each.reason for each in conditions if each.type == "Progressing"), "")

    @property
    def ready(self) -> int:
        return sum(map(sum, self.pods.values()))

    @property
    def known_ready(self) -> int:
        """As far as the ReplicaSets have counted them: a Deployment knows of no others."""
        available = {name: each.status.available_replicas for name, each in self.sets.items()}
        return sum(min(sum(pods), available[name]) for name, pods in self.pods.items())

    def act(self, act: str) -> None:
        before = self.known_ready
        if act in ("ready", "unready"):
            self.set_ready(act == "ready")
            return
        getattr(self, act)()
        if self.sets:
            assert sum(map(size, self.sets.values())) <= most_pods(self.owner)
        assert self.ready >= min(before, least_available(self.owner))


@settings(max_examples=scaled(60), deadline=None)
@example(1, 1, 0, ["reconcile", "image", "reconcile", "sync", "ready", "image", "reconcile"])
@given(st.integers(0, 12), AMOUNTS, AMOUNTS, st.lists(ACTS, max_size=60))
def test_a_rollout_stays_within_its_limits_and_ends(
    replicas: int, surge: Any, unavailable: Any, acts: list[str]
) -> None:
    world = World(deployment(replicas, strategy=rolling(surge, unavailable)))
    for act in acts:
        world.act(act)
    for _ in range(40 * (replicas + 1)):
        for act in ("reconcile", "sync", *["ready"] * (2 * replicas)):
            world.act(act)
        if world.progress == "NewReplicaSetAvailable" and world.owner.status.updated_replicas == replicas:
            break
    sizes = {each.spec.template["spec"]["containers"][0]["image"]: size(each) for each in world.sets.values()}
    image = world.owner.spec.template["spec"]["containers"][0]["image"]
    assert {name: count for name, count in sizes.items() if count} == ({image: replicas} if replicas else {})
    assert world.progress == "NewReplicaSetAvailable"
