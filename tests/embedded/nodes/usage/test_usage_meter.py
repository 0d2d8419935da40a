"""Usage from readings: by whom, when and over which time."""

import asyncio

import pytest

from stromboli.embedded.nodes.usage.cluster_usage import Usage, total
from stromboli.embedded.nodes.usage.process_usage import Reading
from stromboli.embedded.nodes.usage.usage_meter import UsageMeter


class Machine:
    """A machine on which time passes when it is told to, and containers use half a CPU."""

    def __init__(self):
        self.now, self.reads, self.running = 100.0, 0, {"a"}

    async def read(self):
        self.reads += 1
        return {name: Reading(self.now / 2, 1000) for name in self.running}


@pytest.fixture
def machine(monkeypatch):
    given = Machine()

    async def sleep(seconds):
        given.now += seconds

    monkeypatch.setattr("stromboli.embedded.nodes.usage.usage_meter.asyncio.sleep", sleep)
    return given


def test_the_first_who_asks_waits_for_a_window_and_nobody_else(machine):
    async def scenario():
        meter = UsageMeter(machine.read, lambda: machine.now)
        assert meter.usage("a") is None
        await asyncio.gather(*(meter.measure() for _ in range(5)))
        assert meter.usage("a") == Usage(0.5, 1000, 1.0)
        assert machine.reads == 2
        machine.now += 0.5
        await meter.measure()
        assert machine.reads == 2
        machine.now += 20
        await meter.measure()
        assert machine.reads == 3
        assert meter.usage("a") == Usage(0.5, 1000, 20.5)
        machine.now += 3600
        await meter.measure()
        assert meter.usage("a") == Usage(0.5, 1000, 1.0)

    asyncio.run(scenario())


def test_a_container_that_has_just_started_is_not_known_and_one_that_ended_is_gone(machine):
    async def scenario():
        meter = UsageMeter(machine.read, lambda: machine.now)
        await meter.measure()
        machine.running = {"b"}
        machine.now += 5
        await meter.measure()
        assert (meter.usage("a"), meter.usage("b")) == (None, None)
        machine.now += 5
        await meter.measure()
        assert meter.usage("b") == Usage(0.5, 1000, 5.0)

    asyncio.run(scenario())


def test_usages_add_up():
    assert total([Usage(0.5, 10, 15.0), Usage(1.0, 20, 2.0)]) == Usage(1.5, 30, 2.0)
    assert total([]) == Usage(0.0, 0, 0.0)
