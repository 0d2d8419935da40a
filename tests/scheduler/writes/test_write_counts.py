"""How many requests a gang and a single pod cost, from creation to Running, and that none of them is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests import manifests
from tests.manifests import Manifest, node, pod, queue
from tests.scheduler.writes.written_world import WrittenWorld, group_path, pod_path

OWNER = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "name": "train",
    "uid": "ju",
    "controller": True,
}


def group(name: str, minimum: int) -> Manifest:
    """As its user makes it: nobody has written its status."""
    made = manifests.group(name, minimum)
    del made["status"]
    return made


def story(tell: Callable[[WrittenWorld], Awaitable[None]]) -> WrittenWorld:
    """A world with two nodes and a queue after a story."""
    world = WrittenWorld()

    async def run() -> None:
        world.server.put(queue(), node("n1", cpu=16), node("n2", cpu=16))
        await world.restart()
        await world.settle()
        world.server.requests.clear()
        await tell(world)
        await world.settle()
        await world.close()

    asyncio.run(run())
    return world


def members(size: int) -> list[Manifest]:
    return [pod(f"train-{number}", "train") for number in range(size)]


def start(world: WrittenWorld, size: int) -> None:
    """Kubelets run the pods that were bound."""
    for number in range(size):
        assert world.server.objects[pod_path(f"train-{number}")]["spec"]["nodeName"]
        world.server.update(pod_path(f"train-{number}"), {"status": {"phase": "Running"}})


def counts(world: WrittenWorld) -> dict[str, int]:
    sent = world.server.sent
    return {
        "binds": len(sent("/binding")),
        "statuses": len(sent("/podgroups/")),
        "conditions": len(sent("/pods/", "PATCH")),
        "queues": len(sent("/queues/")),
        "events": len(sent("/events")),
    }


@pytest.mark.parametrize(("size", "events"), [(20, 21), (1, 1)], ids=["gang", "single"])
def test_a_gang_whose_pods_exist_has_one_status_write_until_it_runs(size: int, events: int) -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", size), *members(size))
        for _ in range(3):
            await world.cycle(0.02)
        start(world, size)
        await world.cycle(0.3)

    world = story(tell)
    assert counts(world) == {
        "binds": size,
        "statuses": 1,
        "conditions": 0,
        "queues": 1,
        "events": events,
    }
    (patch,) = world.server.sent("/podgroups/")
    assert (patch["status"]["phase"], patch["status"]["running"]) == ("Running", size)
    assert [entry["type"] for entry in patch["status"]["conditions"]] == ["Scheduled"]


def test_a_gang_that_arrives_pod_by_pod_is_never_told_that_it_waits() -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", 20))
        for member in members(20):
            world.server.put(member)
            await world.cycle(0.05)
        await world.cycle(0.02)
        start(world, 20)
        await world.cycle(0.3)

    world = story(tell)
    assert counts(world) == {"binds": 20, "statuses": 1, "conditions": 0, "queues": 1, "events": 21}


def test_a_job_has_two_status_writes_let_in_and_running() -> None:
    """Its controller makes pods only once it is let in, so that is told at once."""

    async def tell(world: WrittenWorld) -> None:
        owned = group("train", 20)
        owned["metadata"]["ownerReferences"] = [OWNER]
        world.server.put(owned)
        await world.cycle(0.02)
        assert world.server.objects[group_path("train")]["status"]["phase"] == "Inqueue"
        for member in members(20):
            world.server.put(member)
            await world.cycle(0.02)
        await world.cycle(0.02)
        start(world, 20)
        await world.cycle(0.3)

    world = story(tell)
    assert counts(world) == {"binds": 20, "statuses": 2, "conditions": 0, "queues": 1, "events": 21}
    assert [patch["status"]["phase"] for patch in world.server.sent("/podgroups/")] == ["Inqueue", "Running"]


def test_a_gang_that_waits_tells_it_once_and_then_nothing_more() -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", 3), *(pod(f"train-{number}", "train", cpu=15) for number in range(3)))
        for _ in range(40):
            await world.cycle(0.1)

    world = story(tell)
    assert counts(world) == {"binds": 0, "statuses": 1, "conditions": 3, "queues": 0, "events": 4}
    assert {kind for kind, _, _ in world.server.events()} == {"Pod", "PodGroup"}


@pytest.mark.parametrize("seen_first", [True, False], ids=["before its pod", "with its pod"])
def test_a_plain_pod_hears_once_that_it_waits(seen_first: bool) -> None:
    """Its PodGroup, made by a controller, belongs to the pod: neither of the two is told what the pod is told."""

    async def tell(world: WrittenWorld) -> None:
        made = group("podgroup-1", 1)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "train-0", "uid": "u", "controller": True}
        made["metadata"]["ownerReferences"] = [owner]
        made["spec"]["minResources"] = {"cpu": "99"}
        world.server.put(made)
        if seen_first:
            await world.cycle(0.02)
        world.server.put(pod("train-0", "podgroup-1", cpu=99))
        await world.cycle(0.02)

    world = story(tell)
    assert counts(world) == {"binds": 0, "statuses": 1, "conditions": 1, "queues": 0, "events": 1}
    ((kind, name, message),) = world.server.events("FailedScheduling")
    assert (kind, name) == ("Pod", "train-0")
    assert message.startswith("Pod train-0 waits: no node is large enough for its cpu request")


def test_what_was_held_back_when_the_process_died_is_written_by_the_next_leader() -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", 2), *(pod(f"train-{number}", "train", cpu=16) for number in range(3)))
        world.server.put(group("late", 2), pod("late-0", "late", cpu=1))
        await world.cycle(0.02)
        assert counts(world)["statuses"] == 0
        await world.restart()
        await world.cycle(0.02)

    world = story(tell)
    statuses = {name: world.server.objects[group_path(name)]["status"]["phase"] for name in ("train", "late")}
    assert statuses == {"train": "Running", "late": "Inqueue"}
    assert {name for _, name, _ in world.server.events("FailedScheduling")} == {"late-0", "train-2"}
    assert {name for _, name, _ in world.server.events("Unschedulable")} == {"late"}


def test_a_job_that_was_let_in_stays_so_though_its_group_changes_before_that_is_shown() -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", 2), pod("train-0", "train"))
        await world.cycle(0.02)
        world.server.update(group_path("train"), {"metadata": {"labels": {"team": "a"}}})
        world.server.update(
            "/apis/scheduling.volcano.sh/v1beta1/queues/default", {"spec": {"capability": {"cpu": 0}}}
        )
        await world.cycle(0.02)

    world = story(tell)
    assert world.server.objects[group_path("train")]["status"]["phase"] == "Inqueue"
    assert counts(world)["statuses"] == 1


def test_nothing_is_written_again_when_our_own_write_comes_back() -> None:
    async def tell(world: WrittenWorld) -> None:
        world.server.put(group("train", 2), *members(2))
        await world.settle()
        world.server.requests.clear()
        for path, content in list(world.server.objects.items()):
            world.server.update(path, content)
        await world.settle()

    assert story(tell).server.requests == []
