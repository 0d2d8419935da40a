"""The work queue: nothing is lost, nothing runs twice at once, failures wait longer each time."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stromboli.controllers.workqueue import WorkQueue
from tests.controllers.manual_clock import Clock
from tests.number_of_examples import scaled


def taken(queue: WorkQueue[str]) -> list[str]:
    """All keys that may be taken just now."""

    async def take() -> list[str]:
        return [await queue.get() for _ in range(len(queue))]

    return asyncio.run(take())


def test_a_key_waits_once_however_often_it_is_added() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=Clock())
    for key in "abaab":
        queue.add(key)
    assert taken(queue) == ["a", "b"]


def test_what_is_added_while_it_is_worked_on_is_done_once_more_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue(clock=Clock())
    queue.add("a")
    assert taken(queue) == ["a"]
    queue.add("a")
    queue.add("a")
    assert taken(queue) == []
    queue.done("a")
    assert taken(queue) == ["a"]
    queue.done("a")
    assert taken(queue) == []
    assert queue.idle


def test_of_several_times_the_first_counts() -> None:
    clock = Clock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    assert clock.pending == 1
    clock.pass_(4.9)
    assert taken(queue) == []
    clock.pass_(0.2)
    assert taken(queue) == ["a"]
    queue.done("a")
    clock.pass_(100)
    assert taken(queue) == []


def pauses(failures: int, **limits: float) -> list[float]:
    """How long a key waits after each of so many failures in a row."""
    queue: WorkQueue[str] = WorkQueue(Clock(), **limits)
    return [queue.add_rate_limited("a") for _ in range(failures)]


@pytest.mark.parametrize(("failures", "pause"), [(1, 0.005), (2, 0.01), (3, 0.02), (15, 81.92), (30, 1000)])
def test_each_failure_waits_twice_as_long(failures: int, pause: float) -> None:
    assert pauses(failures)[-1] == pytest.approx(pause)


def test_fifteen_failures_take_under_three_minutes() -> None:
    assert sum(pauses(15)) == pytest.approx(163.8, abs=0.1)


def test_a_queue_may_wait_less_after_many_failures() -> None:
    assert pauses(30, max_pause=60.0)[-2:] == [60.0, 60.0]


def test_a_success_forgets_the_failures() -> None:
    clock = Clock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    pauses = []
    for _ in range(3):
        pauses.append(queue.add_rate_limited("a"))
        clock.pass_(1)
    queue.forget("a")
    pauses.append(queue.add_rate_limited("a"))
    assert pauses == pytest.approx([0.005, 0.01, 0.02, 0.005])
    assert queue.num_requeues("a") == 1


def test_many_failures_of_many_keys_share_ten_a_second() -> None:
    queue: WorkQueue[int] = WorkQueue(clock=Clock())
    pauses = [queue.add_rate_limited(number) for number in range(150)]
    assert max(pauses[:100]) == pytest.approx(0.005)
    assert pauses[149] == pytest.approx(5.0)


def test_a_closed_queue_gives_out_nothing_and_lets_no_timer_ring() -> None:
    clock = Clock()
    queue: WorkQueue[str] = WorkQueue(clock=clock)
    queue.add_after("a", 1)
    queue.close()
    queue.add_after("b", 1)
    assert clock.pending == 0


class Workers(RuleBasedStateMachine):
    """Keys come, are worked on, fail and are put off in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.queue: WorkQueue[int] = WorkQueue(clock=self.clock)
        self.busy: list[int] = []
        self.owed: Counter[int] = Counter()
        """Keys that were asked for and not begun since."""

    keys = st.integers(0, 4)

    @rule(key=keys)
    def add(self, key: int) -> None:
        self.queue.add(key)
        self.owed[key] = 1

    @rule(key=keys, seconds=st.floats(0.001, 50))
    def put_off(self, key: int, seconds: float) -> None:
        self.queue.add_after(key, seconds)
        self.owed[key] = 1

    @precondition(lambda self: len(self.queue))
    @rule()
    def begin(self) -> None:
        key = asyncio.run(self.queue.get())
        assert key not in self.busy
        self.busy.append(key)
        if key not in self.queue._delayed:
            self.owed[key] = 0

    @precondition(lambda self: self.busy)
    @rule(index=st.integers(0, 9), fails=st.booleans())
    def end(self, index: int, fails: bool) -> None:
        key = self.busy.pop(index % len(self.busy))
        if fails:
            assert self.queue.add_rate_limited(key) <= 1000
            self.owed[key] = 1
        else:
            self.queue.forget(key)
        self.queue.done(key)

    @rule(seconds=st.floats(0.001, 100))
    def wait(self, seconds: float) -> None:
        self.clock.pass_(seconds)

    @invariant()
    def memory_is_bounded(self) -> None:
        assert len(self.queue) <= 5
        assert self.clock.pending <= 5

    def teardown(self) -> None:
        """Whatever was asked for is begun in the end."""
        for key in self.busy:
            self.queue.done(key)
        for _ in range(20):
            self.clock.pass_(2000)
            while len(self.queue):
                key = asyncio.run(self.queue.get())
                self.owed[key] = 0
                self.queue.forget(key)
                self.queue.done(key)
        assert not +self.owed
        assert self.queue.idle


TestWorkers = Workers.TestCase
TestWorkers.settings = settings(max_examples=scaled(20), stateful_step_count=30, deadline=None)


@settings(max_examples=scaled(25), deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 4))
def test_workers_never_hold_one_key_twice_and_leave_nothing_behind(adds: list[int], workers: int) -> None:
    async def run() -> None:
        queue: WorkQueue[int] = WorkQueue()
        held: set[int] = set()
        done: Counter[int] = Counter()
        version: Counter[int] = Counter()

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in held
                held.add(key)
                seen = version[key]
                await asyncio.sleep(0)
                done[key] = seen
                held.discard(key)
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for key in adds:
            version[key] += 1
            queue.add(key)
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            while not queue.idle:
                await asyncio.sleep(0)
        assert done == version
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
