"""The seam between the event loop and the cycle's thread: calls both ways, results, and flags."""

from __future__ import annotations

import asyncio
import threading

import pytest

from stromboli.scheduler import thread_seam
from stromboli.scheduler.thread_seam import ThreadSeam, Unavailable


def test_calls_are_made_in_the_cycles_thread_in_their_order() -> None:
    seam, made = ThreadSeam(), []
    for number in range(3):
        seam.to_cycle(lambda number=number: made.append((number, threading.current_thread().name)))  # type: ignore[misc]
    assert made == []
    thread = threading.Thread(target=seam.run_calls, name="cycles")
    thread.start()
    thread.join()
    assert made == [(0, "cycles"), (1, "cycles"), (2, "cycles")]


def test_a_result_comes_back_from_the_cycles_thread() -> None:
    async def run() -> str:
        seam = ThreadSeam()
        awaited = asyncio.create_task(seam.result_from_cycle(lambda: threading.current_thread().name))
        await asyncio.sleep(0)
        threading.Thread(target=seam.run_calls, name="cycles").start()
        return await awaited

    assert asyncio.run(run()) == "cycles"


def test_a_call_that_fails_fails_for_whoever_awaits_it() -> None:
    async def run() -> None:
        seam = ThreadSeam()
        awaited = asyncio.create_task(seam.result_from_cycle(lambda: 1 // 0))
        await asyncio.sleep(0)
        seam.run_calls()
        with pytest.raises(ZeroDivisionError):
            await awaited

    asyncio.run(run())


def test_a_result_that_nobody_awaits_any_more_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_seam, "TIMEOUT", 0.001)
    made: list[int] = []

    async def run() -> None:
        seam = ThreadSeam()
        with pytest.raises(Unavailable, match="no cycle began"):
            await seam.result_from_cycle(lambda: made.append(1))
        seam.run_calls()

    asyncio.run(run())
    assert made == []


def test_the_event_loop_is_called_from_the_cycles_thread_until_it_ends() -> None:
    made: list[str] = []

    async def run() -> ThreadSeam:
        seam = ThreadSeam(asyncio.get_running_loop())
        call = lambda: made.append(threading.current_thread().name)  # noqa: E731
        threading.Thread(target=seam.to_event_loop, args=(call,)).start()
        while not made:
            await asyncio.sleep(0.001)
        return seam

    seam = asyncio.run(run())
    seam.to_event_loop(lambda: made.append("too late"))
    assert made == [threading.main_thread().name]


def test_a_replica_leads_from_when_it_is_told_until_it_is_stopped() -> None:
    seam = ThreadSeam()
    assert not seam.wait_to_lead(0)
    assert not seam.leads
    seam.lead()
    assert seam.wait_to_lead(0)
    assert seam.leads
    assert not seam.wait_to_stop(0)
    seam.stop()
    assert not seam.leads
    assert seam.wait_to_stop(60)


def test_a_standby_that_is_stopped_never_leads() -> None:
    seam = ThreadSeam()
    seam.stop()
    assert seam.wait_to_lead(60)
    assert not seam.leads
