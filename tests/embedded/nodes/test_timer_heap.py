import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.timer_heap import TimerHeap


def test_timers_expire_in_order_once_and_not_if_cancelled():
    async def scenario():
        expired = []
        now = 0.0
        timers = TimerHeap(expired.append, lambda: now)
        timers.set("late", 8.0)
        timers.set("early", 2.0)
        timers.set("never", 4.0)
        timers.set("moved", 1.0)
        timers.set("moved", 6.0)
        timers.cancel("never")
        for now in (1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 9.0):
            timers._fire()
            assert expired == [key for key, due in (("early", 2), ("moved", 6), ("late", 8)) if due <= now]
        assert len(timers) == 0

    asyncio.run(scenario())


def test_a_timer_expires_by_the_clock_of_the_machine():
    async def scenario():
        expired = asyncio.Event()
        TimerHeap(lambda _: expired.set()).set("soon", time.time() + 0.01)
        await asyncio.wait_for(expired.wait(), 30)

    asyncio.run(scenario())


def test_what_fails_when_it_is_due_holds_up_no_other_timer(caplog):
    async def scenario():
        expired = []

        def expire(key):
            if key == "fails":
                raise ValueError("no")
            expired.append(key)

        now = 0.0
        timers = TimerHeap(expire, lambda: now)
        timers.set("fails", 1.0)
        timers.set("next", 2.0)
        now = 3.0
        timers._fire()
        assert expired == ["next"]

    asyncio.run(scenario())
    assert "fails: what was due could not be done" in caplog.text


STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "cancel", "wait"]), st.integers(0, 4), st.integers(0, 10)), max_size=30
)


@given(STEPS)
def test_timers_expire_like_a_plain_table_of_times(steps):
    async def scenario():
        now = 0.0
        expired, expected, table = [], [], {}
        timers = TimerHeap(expired.append, lambda: now)
        for operation, key, amount in steps:
            if operation == "set":
                timers.set(key, now + amount)
                table[key] = now + amount
            elif operation == "cancel":
                timers.cancel(key)
                table.pop(key, None)
            else:
                now += amount
                timers._fire()
                due = sorted((when, key) for key, when in table.items() if when <= now)
                expected += [key for _, key in due]
                table = {key: when for key, when in table.items() if when > now}
        assert sorted(map(str, expired)) == sorted(map(str, expected))
        assert len(timers) == len(table)
        timers.clear()

    asyncio.run(scenario())
