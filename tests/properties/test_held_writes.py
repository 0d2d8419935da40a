"""Whatever happens, and whenever a scheduler dies: objects show in the end what they would if nothing was held back."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.scheduler.writes.held_orders import HOLD, MAX_HOLD
from tests.manifests import Manifest, group, node, pod, queue
from tests.properties.strategies import examples
from tests.scheduler.writes.written_world import WrittenWorld, group_path, pod_path

GROUPS = ("train", "web")
MEMBERS = 3
LEADER_CHANGE = 2.0
"""Seconds until the next leader decides, so that the ids of its cycles are later ones (`_cycle`)."""

Step = tuple[Any, ...]

names = st.sampled_from([f"{name}-{number}" for name in GROUPS for number in range(MEMBERS)])
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("group"), st.sampled_from(GROUPS), st.integers(1, MEMBERS)),
    st.tuples(st.just("pod"), names, st.sampled_from((1, 3, 9))),
    st.tuples(st.just("touch"), st.sampled_from(GROUPS)),
    st.tuples(st.just("become"), names, st.sampled_from(("Running", "Succeeded", "Failed"))),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("node"), st.sampled_from(("n2", "n3"))),
    st.tuples(st.just("cycle"), st.sampled_from((0.0, 0.01, 0.4, 1.5))),
    st.tuples(st.just("cycle"), st.sampled_from((0.0, 0.01, 0.4, 1.5))),
    st.tuples(st.just("crash")),
)


async def follow(world: WrittenWorld, step: Step) -> None:
    server = world.server
    match step:
        case ("group", str(name), int(minimum)):
            if group_path(name) not in server.objects:
                made = group(name, minimum)
                del made["status"]
                server.put(made)
        case ("pod", str(name), int(cpu)):
            if pod_path(name) not in server.objects:
                server.put(pod(name, name.partition("-")[0], cpu=cpu, uid=f"{name}-{len(server.requests)}"))
        case ("touch", str(name)):
            server.update(group_path(name), {"metadata": {"labels": {"at": str(world.clock.now)}}})
        case ("become", str(name), str(phase)):
            if server.objects.get(pod_path(name), {}).get("spec", {}).get("nodeName"):
                server.update(pod_path(name), {"status": {"phase": phase}})
        case ("delete", str(name)):
            server.delete(pod_path(name))
        case ("node", str(name)):
            server.put(node(name, cpu=4))
        case ("cycle", float(seconds)):
            await world.cycle(seconds)
        case ("crash",):
            await world.close()
            world.clock.now += LEADER_CHANGE
            await world.restart()


async def end(story: list[Step], hold: tuple[float, float]) -> WrittenWorld:
    world = WrittenWorld(hold)
    world.server.put(queue(), node("n1", cpu=4))
    await world.restart()
    for step in story:
        await follow(world, step)
    await world.settle()
    await world.close()
    return world


def shown(content: Manifest) -> object:
    """What users see of an object, without times.

    Of `Scheduled` and `Unschedulable` the later one is true now (spec 05 9.2). The earlier one stays where it was
    written, and is never written if it was held back until the scheduler died.
    """
    status = content.get("status", {})
    entries = {entry["type"]: entry for entry in status.get("conditions", ())}
    if entries.keys() >= {"Scheduled", "Unschedulable"}:
        del entries[min("Scheduled", "Unschedulable", key=lambda type: _cycle(entries[type]))]
    conditions = {
        type: (entry["status"], entry.get("reason", ""), entry.get("message", ""))
        for type, entry in entries.items()
    }
    counts = {name: status.get(name, 0) for name in ("running", "succeeded", "failed")}
    return status.get("phase"), counts, conditions, status.get("allocated"), content["spec"].get("nodeName")


def _cycle(condition: Manifest) -> tuple[int, ...]:
    """The cycle that set a condition: its second, and its number in the process."""
    return tuple(map(int, condition["transitionID"].split("-")))


def told(world: WrittenWorld) -> dict[tuple[str, str], str]:
    """What each pod and group that waits was told last, without the counts of pods.

    The group of a single pod is left out: it gets no event, so the last one may be from a time without pods.
    """
    objects = world.server.objects.values()
    pods = Counter(
        content["metadata"]["name"].partition("-")[0] for content in objects if content["kind"] == "Pod"
    )
    waiting = {
        (content["kind"], content["metadata"]["name"])
        for content in objects
        if (content["kind"] == "Pod" and not content["spec"].get("nodeName"))
        or (
            content["kind"] == "PodGroup"
            and content.get("status", {}).get("phase") in ("Pending", "Inqueue", "Unknown")
            and pods[content["metadata"]["name"]] != 1
        )
    }
    events = [*world.server.events("FailedScheduling"), *world.server.events("Unschedulable")]
    return {
        (kind, name): message.partition(" (")[0] for kind, name, message in events if (kind, name) in waiting
    }


@examples(25)
@given(st.lists(steps, min_size=4, max_size=25))
@example(
    [
        ("group", "train", 1),
        ("pod", "train-0", 9),
        ("cycle", 0.01),
        ("node", "n2"),
        ("cycle", 0.01),
        ("crash",),
    ]
)
@example([("group", "train", 1), ("cycle", 0.0), ("pod", "train-0", 9), ("crash",)])
@example([("group", "web", 1), ("pod", "web-0", 1), ("cycle", 0.0), ("delete", "web-0"), ("crash",)])
def test_objects_show_in_the_end_what_an_eager_writer_would_have_left(story: list[Step]) -> None:
    eager, holding = (asyncio.run(end(story, hold)) for hold in ((0.0, 0.0), (HOLD, MAX_HOLD)))
    for path, content in eager.server.objects.items():
        assert shown(holding.server.objects[path]) == shown(content), path
    assert told(holding) == told(eager)
    conflicts = holding.server.conflicts  # others wrote in the meantime
    assert len(holding.server.requests) <= len(eager.server.requests) + 2 * conflicts
