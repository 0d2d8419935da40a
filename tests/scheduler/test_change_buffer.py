"""What is new, each object once: whatever happened in between, the model ends up the same."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.types.meta import Object, ObjectMeta
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.scheduler.thread_seam import ChangeBuffer


def pod(name: str, uid: str = "", version: str = "") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=uid or name, resource_version=version))


def node(name: str, uid: str = "", version: str = "") -> Node:
    return Node(metadata=ObjectMeta(name=name, uid=uid or name, resource_version=version))


def seen(buffer: ChangeBuffer) -> list[tuple[str, str, bool]]:
    return [
        (change.object.name, change.object.metadata.resource_version, change.gone)
        for change in buffer.take()[0]
    ]


def test_of_many_states_only_the_last_is_told() -> None:
    buffer = ChangeBuffer()
    buffer.put(pod("a", version="1"), new=True)
    buffer.put(pod("a", version="2"), new=False)
    assert seen(buffer) == [("a", "2", False)]
    assert seen(buffer) == []


def test_what_came_and_went_leaves_no_trace() -> None:
    buffer = ChangeBuffer()
    buffer.put(pod("a"), new=True)
    buffer.drop(pod("a"))
    assert seen(buffer) == []


def test_whoever_observes_is_shown_every_state_at_once() -> None:
    buffer, shown = ChangeBuffer(), []
    buffer.observe = lambda object, gone: shown.append((object.metadata.resource_version, gone))
    buffer.put(pod("a", version="1"), new=True)
    buffer.put(pod("a", version="2"), new=False)
    buffer.drop(pod("a"))
    assert shown == [("1", False), ("2", False), ("", True)]


def test_what_the_model_knows_must_be_told_to_be_gone() -> None:
    buffer = ChangeBuffer()
    buffer.put(pod("a"), new=True)
    buffer.take()
    buffer.put(pod("a", version="2"), new=False)
    buffer.drop(pod("a"))
    assert seen(buffer) == [("a", "", True)]


def test_a_pod_that_takes_the_name_of_another_does_not_hide_its_end() -> None:
    buffer = ChangeBuffer()
    buffer.put(pod("a", "first"), new=True)
    buffer.take()
    buffer.drop(pod("a", "first"))
    buffer.put(pod("a", "second"), new=True)
    assert [(change.object.metadata.uid, change.gone) for change in buffer.take()[0]] == [
        ("first", True),
        ("second", False),
    ]


def test_a_node_that_takes_the_place_of_another_is_told_once() -> None:
    buffer = ChangeBuffer()
    buffer.put(node("n", "first"), new=True)
    buffer.take()
    buffer.drop(node("n", "first"))
    buffer.put(node("n", "second"), new=True)
    buffer.drop(node("n", "second"))
    assert [change.gone for change in buffer.take()[0]] == [True]


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "drop", "take"]), st.sampled_from("abc"), st.booleans()),
        max_size=40,
    )
)
def test_applied_late_or_at_once_is_the_same(steps: list[tuple[str, str, bool]]) -> None:
    buffer, late, exact = ChangeBuffer(), dict[str, str](), dict[str, str]()
    uids: dict[str, str] = {}
    for turn, (what, name, is_pod) in enumerate(steps):
        make = pod if is_pod else node
        key = f"{make.__name__} {name}"
        if what == "take":
            apply(buffer, late)
        elif what == "put":
            new = key not in uids
            uids.setdefault(key, f"{key} {turn}")
            buffer.put(make(name, uids[key], str(turn)), new=new)
            exact[uids[key] if is_pod else key] = str(turn)
        elif key in uids:
            buffer.drop(make(name, uids[key]))
            exact.pop(uids[key] if is_pod else key)
            del uids[key]
    apply(buffer, late)
    assert late == exact


def apply(buffer: ChangeBuffer, model: dict[str, str]) -> None:
    for object, gone in buffer.take()[0]:
        at = object.metadata.uid if isinstance(object, Pod) else f"node {object.name}"
        if gone:
            model.pop(at, None)
        else:
            model[at] = object.metadata.resource_version


def test_the_age_of_the_oldest_news_is_known() -> None:
    now = [10.0]
    buffer = ChangeBuffer(clock=lambda: now[0])
    assert buffer.age == 0
    buffer.put(pod("a"), new=True)
    now[0] = 13.0
    buffer.put(pod("b"), new=True)
    assert buffer.age == 3
    buffer.take()
    assert buffer.age == 0


def test_a_watch_waits_while_there_is_no_room() -> None:
    buffer = ChangeBuffer(capacity=2)

    async def story() -> bool:
        objects: list[Object] = [pod("a"), pod("b")]
        for object in objects:
            buffer.put(object, new=True)
        waiting = asyncio.create_task(buffer.wait_for_room())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        buffer.take()
        await asyncio.wait_for(waiting, 2)
        return True

    assert asyncio.run(story())
