"""Leases of nodes: there for every node, and renewed so seldom that nobody notices."""

import asyncio
import heapq

import msgspec
import pytest

from stromboli.embedded.nodes import node_leases
from stromboli.embedded.nodes.node_leases import NodeLeases
from stromboli.embedded.nodes.node_types import NodeView
from stromboli.embedded.nodes.write_queue import LEASES
from tests.embedded.nodes.node_services import NODES, running_nodes


class Timers:
    """A heap of timers with a clock of its own."""

    def __init__(self, expired, clock):
        self.expired, self.clock, self.due = expired, clock, []

    def set(self, key, when):
        heapq.heappush(self.due, (when, key))

    def cancel(self, key):
        self.due = [entry for entry in self.due if entry[1] != key]
        heapq.heapify(self.due)


class Renewals:
    """Plays the renewals of leases."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(node_leases, "TimerHeap", Timers)
        self.now, self.written = 1000.0, []
        self.leases = NodeLeases(self, lambda: self.now)

    def renew_lease(self, lease):
        self.written.append((self.now, lease))

    def until(self, end):
        timers = self.leases._timers
        while timers.due and timers.due[0][0] <= end:
            self.now, key = heapq.heappop(timers.due)
            timers.expired(key)
        self.now = end


def node(name, uid="u"):
    return msgspec.convert({"metadata": {"name": name, "uid": uid}}, NodeView)


@pytest.mark.parametrize(("nodes", "per_second"), [(1, 1 / 200), (4, 1 / 50), (5000, 1 / 3)])
def test_few_or_many_leases_cost_next_to_nothing(monkeypatch, nodes, per_second):
    renewals = Renewals(monkeypatch)
    for number in range(nodes):
        renewals.leases.put(node(f"n{number}"))
        renewals.leases.put(node(f"n{number}"))
    renewals.until(1000 + 10 + 0.05 * nodes)
    assert len({lease["metadata"]["name"] for _, lease in renewals.written}) == nodes
    renewals.written.clear()
    hours = 12 * 3600
    renewals.until(renewals.now + hours)
    assert len(renewals.written) / hours < per_second
    by_node = {}
    for at, lease in renewals.written:
        name = lease["metadata"]["name"]
        assert at - by_node.get(name, at) < lease["spec"]["leaseDurationSeconds"], "it never expires"
        by_node[name] = at
    assert len(by_node) == nodes


def test_the_lease_of_a_failed_node_is_not_renewed(monkeypatch):
    renewals = Renewals(monkeypatch)
    renewals.leases.put(node("n1"))
    renewals.until(1010)
    renewals.leases.drop("n1")
    renewals.until(90_000)
    assert len(renewals.written) == 1
    renewals.leases.put(node("n1"))
    renewals.until(90_010)
    assert len(renewals.written) == 2


def test_a_lease_comes_and_goes_with_its_node(tmp_path):
    async def scenario():
        async with running_nodes(tmp_path, "1x8cpu") as cluster:

            async def lease():
                found = msgspec.json.decode(await cluster.client.list(LEASES, "kube-node-lease"))["items"]
                return found[0] if found else None

            async with asyncio.timeout(20):
                while (held := await lease()) is None:
                    await asyncio.sleep(0.02)
            owner = (await cluster.get("n1", NODES))["metadata"]["uid"]
            assert held["metadata"]["name"] == held["spec"]["holderIdentity"] == "n1"
            assert held["metadata"]["ownerReferences"][0]["uid"] == owner
            assert held["spec"]["leaseDurationSeconds"] == 1200
            await cluster.client.delete(NODES, "n1")
            async with asyncio.timeout(20):
                while await lease() is not None:
                    await asyncio.sleep(0.02)

    asyncio.run(scenario())
