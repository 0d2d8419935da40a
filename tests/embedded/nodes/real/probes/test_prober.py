"""When a container is probed, in fractions of seconds."""

import asyncio
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

from stromboli.embedded.nodes.real.probes.probe_spec import Probe, ProbeType
from stromboli.embedded.nodes.real.probes.prober import Prober
from tests.embedded.nodes.node_pods import pod

STARTUP, LIVENESS, READINESS = ProbeType


@asynccontextmanager
async def listening(silent=False):
    """A server that accepts connections, and the times when it did."""
    times, connections = [], []

    def accept(_, writer):
        times.append(asyncio.get_running_loop().time())
        connections.append(writer)
        if not silent:
            writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        try:
            yield server.sockets[0].getsockname()[1], times
        finally:
            for writer in connections:
                writer.close()


@asynccontextmanager
async def probing(**probes):
    """Probes by type; yields the prober, its sandbox and the events so far."""
    events, changes = [], []
    sandbox = SimpleNamespace(
        pod=pod(), stopping=asyncio.Event(), quiet=False, record=lambda *event: events.append(event)
    )
    by_type = {ProbeType(type.capitalize()): probe for type, probe in probes.items()}
    prober = Prober({"name": "main"}, by_type, sandbox, lambda: changes.append(prober.health.ready))
    task = asyncio.create_task(prober.run(SimpleNamespace(exited=False)))
    try:
        yield prober, sandbox, events, task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds):
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def tcp(port, **fields):
    return Probe({"tcpSocket": {"port": port}}, **{"period": 0.05, "timeout": 5.0, **fields})


def test_a_probe_begins_after_its_delay_and_repeats_with_its_period():
    async def scenario():
        async with listening() as (port, times):
            begin = asyncio.get_running_loop().time()
            async with probing(readiness=tcp(port, initial_delay=0.2, period=0.1)):
                await until(lambda: len(times) >= 4)
            assert times[0] - begin >= 0.2
            assert times[3] - times[0] >= 0.2
            assert times[3] - begin >= 0.5

    asyncio.run(scenario())


def test_other_probes_begin_when_the_startup_probe_has_succeeded_which_then_ends():
    async def scenario():
        async with listening() as (port, startup), listening() as (other, liveness):
            probes = {"startup": tcp(port, success_threshold=3), "liveness": tcp(other)}
            async with probing(**probes) as (prober, *_):
                await until(lambda: len(liveness) >= 3)
                assert prober.health.started
            assert len(startup) == 3
            assert liveness[0] >= startup[2]

    asyncio.run(scenario())


def test_a_probe_that_takes_long_keeps_no_other_waiting():
    slow = Probe({"httpGet": {"port": 0}}, period=0.05, timeout=60.0)

    async def scenario():
        async with listening(silent=True) as (port, asked), listening() as (other, times):
            slow.handler["httpGet"]["port"] = port
            async with probing(liveness=slow, readiness=tcp(other)) as (prober, *_):
                await until(lambda: len(times) >= 3)
                assert prober.health.ready
            assert len(asked) == 1

    asyncio.run(scenario())


def test_a_container_that_is_to_be_killed_is_not_probed_any_more():
    async def scenario():
        async with probing(liveness=tcp(1, failure_threshold=2)) as (prober, _, events, task):
            await asyncio.wait_for(task, 10)
            assert prober.health.failed is LIVENESS
            assert [event[1] for event in events] == ["Unhealthy", "Unhealthy"]

    asyncio.run(scenario())


def test_a_pod_that_stops_is_probed_for_its_readiness_alone():
    async def scenario():
        async with (
            listening() as (port, liveness),
            listening() as (other, readiness),
            probing(liveness=tcp(port), readiness=tcp(other)) as (_, sandbox, *_),
        ):
            await until(lambda: len(liveness) >= 2)
            sandbox.stopping.set()
            count, more = len(liveness), len(readiness) + 4
            await until(lambda: len(readiness) >= more)
            assert len(liveness) <= count + 1  # one had begun

    asyncio.run(scenario())
