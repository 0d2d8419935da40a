"""StatefulSets and DaemonSets whose pods come, fail and go at random: their limits hold, and they end as wanted."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from stromboli.api.pods import is_available
from stromboli.api.types.controlled_pod import Pod
from stromboli.controllers.workloads.daemonset.failed_pods import FailedPods
from stromboli.controllers.workloads.daemonset.node_eligibility import Eligibility
from stromboli.controllers.workloads.daemonset.reconcile import reconcile as reconcile_daemons
from stromboli.controllers.workloads.statefulset.reconcile import reconcile as reconcile_stateful
from stromboli.controllers.workloads.statefulset.set_actions import CreatePod, DeletePod
from stromboli.controllers.workloads.statefulset.set_status import Revision, Revisions
from tests.controllers.workloads.workload_objects import NOW, TEMPLATE, daemon_set, pod, stateful_set

REVISIONS = ("r0", "r1")
STEPS, CALM = 60, 40


class World:
    """Pods by name, with a kubelet that starts, breaks and removes them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.pods: dict[str, Pod] = {}
        self.revision = "r0"
        self.now = NOW

    def happen(self, calm: bool) -> None:
        """Something that is not the controller's doing; calm, pods only become ready and go."""
        self.now += 1000 if calm else 1
        if not calm and self.random.random() < 0.1:
            self.revision = self.random.choice(REVISIONS)
        for name, each in list(self.pods.items()):
            if each.metadata.deletion_timestamp is not None and (calm or self.random.random() < 0.5):
                del self.pods[name]
            elif calm or self.random.random() < 0.5:
                state = (
                    "ready" if calm else self.random.choice(["ready", "ready", "ready", "unready", "Failed"])
                )
                self.put(name, state if each.status.phase != "Failed" else "Failed", each)

    def put(self, name: str, state: str, before: Pod) -> None:
        made = pod(name, state, before.metadata.labels["controller-revision-hash"], before.spec.node_name)
        made.metadata.labels = before.metadata.labels
        made.metadata.deletion_timestamp = before.metadata.deletion_timestamp
        self.pods[name] = made

    def delete(self, gone: Pod) -> None:
        metadata = msgspec.structs.replace(gone.metadata, deletion_timestamp=gone.metadata.creation_timestamp)
        self.pods[gone.name] = msgspec.structs.replace(gone, metadata=metadata)

    def up(self, name: str) -> bool:
        each = self.pods.get(name)
        leaving = each is not None and each.metadata.deletion_timestamp is not None
        return each is not None and is_available(each, 0, self.now) and not leaving


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize("seed", range(8))
def test_a_stateful_set_becomes_what_is_wanted_in_its_order(policy: str, seed: int) -> None:
    world, current = World(seed), "r0"
    for step in range(STEPS + CALM):
        world.happen(calm=step >= STEPS)
        owned = stateful_set(3 if step >= STEPS else world.random.choice([1, 3]), podManagementPolicy=policy)
        revisions = Revisions(Revision(current, TEMPLATE), Revision(world.revision, TEMPLATE))
        outcome = reconcile_stateful(owned, revisions, list(world.pods.values()), {}.get, world.now)
        if policy == "OrderedReady":
            assert len(outcome.actions) <= 1
        for action in outcome.actions:
            if isinstance(action, CreatePod):
                meta = action.pod["metadata"]
                ordinal = int(meta["name"].removeprefix("web-"))
                assert meta["name"] not in world.pods
                assert policy == "Parallel" or all(world.up(f"web-{each}") for each in range(ordinal))
                made = pod(meta["name"], "Pending", meta["labels"]["controller-revision-hash"])
                made.metadata.labels = meta["labels"]
                world.pods[made.name] = made
            elif isinstance(action, DeletePod):
                world.delete(action.pod)
        current = outcome.status.current_revision
    assert sorted(world.pods) == ["web-0", "web-1", "web-2"]
    assert {each.metadata.labels["controller-revision-hash"] for each in world.pods.values()} == {
        world.revision
    }
    assert (outcome.actions, current, outcome.status.ready_replicas) == ([], world.revision, 3)


@pytest.mark.parametrize("rolling", [{"maxUnavailable": 2}, {"maxSurge": 2, "maxUnavailable": 0}])
@pytest.mark.parametrize("seed", range(8))
def test_a_daemon_set_becomes_what_is_wanted_within_its_limits(rolling: Any, seed: int) -> None:
    world, failed, number = World(seed), FailedPods(), 0
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    owned = daemon_set(updateStrategy=strategy)
    nodes = {f"n{each}": Eligibility(True, True) for each in range(5)}
    for step in range(STEPS + CALM):
        world.happen(calm=step >= STEPS)
        before = served(world)
        pods = list(world.pods.values())
        outcome = reconcile_daemons(owned, world.revision, pods, nodes, failed, world.now)
        for gone in outcome.delete:
            world.delete(gone)
        for node in outcome.create:
            number += 1
            made = pod(f"web-{number}", "Pending", world.revision, node)
            world.pods[made.name] = made
        if "maxSurge" in rolling:
            assert served(world) == before, "no node loses its last available pod"
        elif len(served(world)) < len(before):
            assert len(served(world)) >= len(nodes) - rolling["maxUnavailable"]
    assert sorted(each.spec.node_name for each in world.pods.values()) == sorted(nodes)
    assert (outcome.create, outcome.delete) == ([], [])
    status = outcome.status
    assert status.number_available == status.updated_number_scheduled == len(nodes)


def served(world: World) -> set[str]:
    """The nodes with a pod that is available."""
    return {each.spec.node_name for each in world.pods.values() if world.up(each.name)}
