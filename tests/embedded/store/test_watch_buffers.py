"""What waits for slow readers is counted in bytes and bounded, for all and for each user; others are left alone."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.store import watch as watch_module
from stromboli.embedded.store import watch_buffers
from stromboli.embedded.store.history import kept_bytes
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.query_selectors import Selector, parse_labels
from stromboli.embedded.store.records import Change, Key, Record
from stromboli.embedded.store.watch import Watch, encode_whole
from stromboli.embedded.store.watch_buffers import LineCache, WatchBuffers
from stromboli.embedded.store.watch_hub import WatchHub
from tests.number_of_examples import scaled

KIND = Kind("", "v1", "things", "Thing")


class Copier(NamedTuple):
    """An encoder that makes something of its own of an object, as tables do, and counts how often."""

    calls: list[int]

    def __call__(self, record: Record, first: bool) -> bytes:
        self.calls.append(record.revision)
        return json.dumps(record.object()).encode()

    def __hash__(self) -> int:
        return id(self.calls)


def change(revision: int, size: int, name: str = "a") -> Change:
    data = {"metadata": {"name": name, "resourceVersion": str(revision)}, "data": "x" * size}
    record = Record(Key("things", "default", name), revision, json.dumps(data).encode())
    return Change(revision, record.key, None, record)


def opened(hub: WatchHub, user: str, encode: Any = encode_whole) -> Watch:
    watch = Watch(KIND, "", Selector(), user, encode)
    hub.add(watch)
    return watch


def test_an_event_is_encoded_once_for_all_watches_that_ask_for_the_same() -> None:
    async def scenario() -> None:
        hub, tables, others = WatchHub(), Copier([]), Copier([])
        watches = [opened(hub, f"user{number}", tables) for number in range(20)]
        other = opened(hub, "user0", others)
        for revision in (1, 2):
            hub.publish([change(revision, 1000)])
            lines = {await watch.next_lines() for watch in watches}
            assert len(lines) == 1
            await other.next_lines()
        assert (tables.calls, others.calls) == ([1, 2], [1, 2])

    asyncio.run(scenario())


def test_what_many_watches_leave_unread_takes_no_more_than_what_few_do() -> None:
    async def scenario() -> None:
        hub = WatchHub()
        watches = [opened(hub, f"user{number % 5}", Copier([])) for number in range(1000)]
        for revision in range(1, 51):
            hub.publish([change(revision, 100_000)])
        assert hub.buffers.bytes == 1000 * 50 * watch_buffers.REFERENCE_BYTES
        assert not any(watch.ended for watch in watches)

    asyncio.run(scenario())


def test_the_slowest_reader_of_a_user_who_holds_too_much_is_cut_off() -> None:
    async def scenario() -> None:
        hub = WatchHub(WatchBuffers(1_000_000))
        prompt, slow, slower, other = (opened(hub, user, Copier([])) for user in "aaab")
        hub.publish([change(1, 120_000)])
        for watch in (slower, other):
            await watch.next_lines()  # half of the line is sent, the rest waits
        for watch in (prompt, slow):
            await read_all(watch)
        hub.publish([change(2, 120_000)])
        await slow.next_lines()
        assert hub.buffers.bytes_of_users["a"] > 240_000
        assert not slower.ended
        await read_all(prompt)
        assert (slower.ended, slow.ended, prompt.ended, other.ended) == (True, False, False, False)
        assert 120_000 < hub.buffers.bytes_of_users["a"] < 130_000

    asyncio.run(scenario())


def test_of_all_users_who_has_taken_nothing_for_the_longest_time_is_cut_off() -> None:
    async def scenario() -> None:
        hub = WatchHub(WatchBuffers(1_000_000))
        watches = [opened(hub, user, Copier([])) for user in "aabbccddeef"]
        hub.publish([change(1, 95_000)])
        for watch in watches:
            await watch.next_lines()  # a part of the line is sent, the rest waits
        assert [number for number, watch in enumerate(watches) if watch.ended] == [0]
        assert hub.buffers.bytes <= 1_000_000

    asyncio.run(scenario())


async def read_all(watch: Watch) -> bytes:
    """Everything that is queued."""
    lines = b""
    while watch.oldest_revision is not None:
        lines += await watch.next_lines()
    return lines


def test_lines_are_cached_for_a_while_and_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LineCache(1000)
    first = cache.get("a", lambda: b"x" * 600)
    assert cache.get("a", lambda: b"y") is first
    cache.get("b", lambda: b"x" * 600)
    assert cache.bytes == 600
    again = cache.get("a", lambda: b"z" * 10)
    assert (again.data, cache.bytes) == (b"z" * 10, 610)
    monkeypatch.setattr(watch_buffers, "LINE_LIFETIME", -1.0)
    assert cache.get("a", lambda: b"older").data == b"older"
    assert cache.bytes == 605
    cache.get("c", lambda: b"x" * 2000)
    assert cache.bytes == 0


# -- anything that may happen

HISTORY_BYTES = 30_000
WATCH_BYTES = 16_000


@dataclass(eq=False)
class Client:
    """Keeps a copy of the objects by list and watch, as informers do."""

    store: Store
    hub: WatchHub
    user: str
    labels: str = ""
    copies: bool = False
    objects: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    lists: int = 0
    unread: bytes = b""
    watch: Watch | None = None

    def open(self) -> None:
        """Resume from the last revision, or list if that is too old."""
        selector = Selector(parse_labels(self.labels))
        self.unread = b""
        self.watch = Watch(KIND, "", selector, self.user, Copier([]) if self.copies else encode_whole)
        self.hub.add(self.watch)
        if self.lists and self.revision >= self.store.compacted_revision:
            self.watch.resume(self.store.changes_since(self.revision, "things"), self.revision)
            return
        self.objects, self.lists = {}, self.lists + 1
        self.watch.begin(self.store.list("things"), self.store.revision)
        self.listed = self.store.revision

    async def read(self, writes: int) -> None:
        """So many pieces of what waits; if it was cut off, it begins again."""
        assert self.watch is not None
        while writes and self.watch.oldest_revision is not None:
            writes -= 1
            *lines, self.unread = (self.unread + await self.watch.next_lines()).split(b"\n")
            for line in lines:
                self._apply(json.loads(line))
        if self.watch.oldest_revision is None and not self.watch.ended:
            self.revision = max(self.revision, self.watch.revision)
        if self.watch.ended:
            self.hub.remove(self.watch)
            self.open()

    def _apply(self, event: Any) -> None:
        metadata = event["object"]["metadata"]
        if event["type"] == "DELETED":
            self.objects.pop(metadata["name"])
        else:
            self.objects[metadata["name"]] = int(metadata["resourceVersion"])
        if int(metadata["resourceVersion"]) > self.listed:
            self.revision = int(metadata["resourceVersion"])

    def expected(self) -> dict[str, int]:
        selector = Selector(parse_labels(self.labels))
        records = self.store.list("things")
        return {
            record.key.name: record.revision for record in records if selector.matches(record.labels, str)
        }


WRITE = st.tuples(
    st.just("write"), st.sampled_from("abcd"), st.integers(0, 3700), st.sampled_from(["", "red", "blue"])
)
REMOVE = st.tuples(st.just("remove"), st.sampled_from("abcd"))
READ = st.tuples(st.just("read"), st.integers(0, 7), st.integers(1, 20))
STEPS = st.lists(st.one_of(WRITE, WRITE, WRITE, REMOVE, READ), max_size=60)


@settings(max_examples=scaled(30), deadline=None)
@given(STEPS)
@example([("write", "a", 3000, "red")] * 30 + [("read", 7, 40), ("write", "a", 10, "blue")])
@example([("write", "a", 3700, ""), *(("read", number, 1) for number in range(6)), ("write", "a", 10, "")])
@example([("write", "a", 3000, ""), ("read", 0, 1), ("write", "a", 3000, ""), ("remove", "a")] * 6)
def test_budgets_hold_whoever_keeps_up_is_never_cut_off_and_everybody_sees_everything(
    steps: list[Any],
) -> None:
    async def scenario(folder: str) -> None:
        store = Store(Path(folder) / "db", history_bytes=HISTORY_BYTES)
        hub = WatchHub(WatchBuffers(WATCH_BYTES))
        store.on_commit(hub.publish)
        store.on_compaction(hub.buffers.compact)
        slow = [Client(store, hub, user, copies=True) for user in "aabcde"]
        slow += [Client(store, hub, "a"), Client(store, hub, "b", "color=red", True)]
        prompt = [Client(store, hub, "a", "color=red"), Client(store, hub, "a", copies=True)]
        for client in (*slow, *prompt):
            client.open()
        for step in steps:
            if step[0] == "read":
                await slow[step[1]].read(step[2])
            else:
                await write(store, *step)
            for client in prompt:
                await client.read(10_000)
                assert (client.lists, client.objects) == (1, client.expected())
            check_bytes(store, hub)
        for client in slow:
            for _ in range(10):  # it may be cut off in between
                await client.read(10_000)
            assert client.objects == client.expected()
        for client in (*slow, *prompt):
            assert client.watch is not None
            hub.remove(client.watch)
        assert (hub.buffers.bytes, dict(hub.buffers.bytes_of_users)) == (0, {})
        await store.close()

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(watch_module, "LARGEST_WRITE", 700)
        asyncio.run(scenario(folder))


async def write(store: Store, verb: str, name: str, size: int = 0, color: str = "") -> None:
    key = Key("things", "default", name)
    content: Any = {"metadata": {"name": name, "uid": name, "labels": {"color": color}}, "data": "x" * size}
    if verb == "write":
        store.put(key, content)
    elif store.get(*key) is not None:
        store.remove(key, content)
    await store.wait_committed()


def check_bytes(store: Store, hub: WatchHub) -> None:
    """What is counted is what is held, and it is within the limits."""
    buffers, watches = hub.buffers, list(hub)
    lines = {id(watch.line): watch.line for watch in watches if watch.line is not None}
    references = Counter[str]()
    for watch in watches:
        held = (len(watch._initial) + len(watch._queue)) * watch_buffers.REFERENCE_BYTES
        references[watch.user] += held
        assert watch.held_bytes == held + (len(watch.line.data) if watch.line is not None else 0)
    assert buffers.bytes == references.total() + sum(len(line.data) for line in lines.values())
    for user in references:
        own = {
            id(watch.line): watch.line for watch in watches if watch.user == user and watch.line is not None
        }
        held = references[user] + sum(len(line.data) for line in own.values())
        assert buffers.bytes_of_users[user] == held <= WATCH_BYTES // 4
    assert buffers.bytes <= WATCH_BYTES
    changes = list(reversed(store.history))
    assert store.history.bytes == sum(map(kept_bytes, changes))
    assert store.history.bytes <= HISTORY_BYTES or len(changes) == 1
    known = {id(record) for change in changes for record in change[2:] if record is not None}
    known |= {id(record) for record in store.list("things")}
    for watch in watches:
        waiting = [*watch._initial, *(event.record for event in watch._queue if hasattr(event, "record"))]
        assert known.issuperset(map(id, waiting)), "nothing is kept for the sake of a watch"
