import asyncio
import time

from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.nodes.timer_heap import TimerHeap


def test_timers_expire_in_order_once_and_not_if_cancelled():
    async def scenario():
        expired = []
        timers = TimerHeap(expired.append)
        now = time.time()
        timers.set("late", now + 0.08)
        timers.set("early", now + 0.02)
        timers.set("never", now + 0.04)
        timers.set("moved", now + 0.01)
        timers.set("moved", now + 0.06)
        timers.cancel("never")
        await asyncio.sleep(0.3)
        assert expired == ["early", "moved", "late"]
        assert len(timers) == 0

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
