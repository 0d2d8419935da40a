"""HyperNodes from UFM's ports: leaf switches that share nodes are one, all are below one."""

from __future__ import annotations

import base64
import json
import random

import pytest

from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.scheduling import HyperNodeSpec
from stromboli.controllers.hypernode.discovered_hyper_nodes import (
    DiscoveredHyperNode,
    DiscoveryFailed,
    member_names,
)
from stromboli.controllers.hypernode.discovery_config import UfmSource
from stromboli.controllers.hypernode.ufm_client import decode_ports, read_credentials
from stromboli.controllers.hypernode.ufm_discovery import Port, leaf_groups
from stromboli.controllers.hypernode.ufm_discovery import discover as discover_groups
from stromboli.controllers.watched_kinds import HyperNode

SOURCE = UfmSource("https://ufm", "secret", "ns")


def port(leaf: str | None, node: str | None, description: str | None = "Computer IB Port") -> Port:
    return Port(description, node, leaf)


def discover(ports: list[Port], existing: dict[str, HyperNode]) -> list[DiscoveredHyperNode]:
    return discover_groups(leaf_groups(ports), existing)


def members(discovered: list[DiscoveredHyperNode]) -> dict[str, list[str]]:
    return {each.name: sorted(member_names(each.members)) for each in discovered}


def stored(discovered: list[DiscoveredHyperNode]) -> dict[str, HyperNode]:
    return {
        each.name: HyperNode(
            metadata=ObjectMeta(each.name, labels={"volcano.sh/network-topology-source": "ufm"}),
            spec=HyperNodeSpec(each.tier, each.tier_name, each.members),
        )
        for each in discovered
    }


def test_leaf_switches_that_share_a_node_are_one_hyper_node() -> None:
    ports = [
        port("leaf-b", "n3"),
        port("leaf-a", "n1"),
        port("leaf-c", "n2"),
        port("leaf-a", "n2"),
        port("leaf-c", "n4"),
        port("spine", "leaf-a", "Switch IB Port"),
    ]
    discovered = discover(ports, {})
    assert members(discovered) == {
        "leaf-hn-0": ["n1", "n2", "n4"],
        "leaf-hn-1": ["n3"],
        "spine-hn": ["leaf-hn-0", "leaf-hn-1"],
    }
    assert [each.tier for each in discovered] == [1, 1, 2]
    assert {member.type for member in discovered[0].members} == {"Node"}
    assert {member.type for member in discovered[2].members} == {"HyperNode"}


def test_the_order_of_ports_does_not_matter() -> None:
    ports = [port(f"leaf-{n % 7}", f"n{n}") for n in range(50)]
    mixed = random.Random(1).sample(ports, len(ports))
    assert discover(ports, {}) == discover(mixed, {})


def test_a_port_without_a_peer_joins_nobody() -> None:
    """Volcano would put all nodes with such a port below one leaf switch that does not exist."""
    ports = [port("a", "n1"), port("", "n1"), port("b", "n2"), port(None, "n2"), port("", "n3")]
    assert members(discover(ports, {}))["spine-hn"] == ["leaf-hn-0", "leaf-hn-1"]


@pytest.mark.parametrize("bad", ["", None, "not a name", "a" * 254, "-a"])
def test_what_cannot_be_a_node_is_left_out(bad: str | None) -> None:
    """The API server would refuse the whole HyperNode for it."""
    assert members(discover([port("a", "N1"), port("a", bad)], {}))["leaf-hn-0"] == ["n1"]


def test_no_ports_of_computers_are_no_hyper_nodes() -> None:
    assert discover([], {}) == []
    assert discover([port("a", "n", "Switch"), port("a", "n", None)], {}) == []


def test_a_group_keeps_its_name_when_another_comes_before_it() -> None:
    """In Volcano all names move on by one, and every HyperNode has other nodes than before."""
    before = discover([port("b", "n1"), port("b", "n2"), port("c", "n3")], {})
    assert members(before)["leaf-hn-0"] == ["n1", "n2"]
    after = discover([port("a", "n9"), port("b", "n1"), port("c", "n3"), port("c", "n4")], stored(before))
    assert members(after) == {
        "leaf-hn-0": ["n1"],
        "leaf-hn-1": ["n3", "n4"],
        "leaf-hn-2": ["n9"],
        "spine-hn": ["leaf-hn-0", "leaf-hn-1", "leaf-hn-2"],
    }


def test_the_name_goes_with_most_of_the_nodes() -> None:
    before = discover([port("a", f"n{n}") for n in range(5)], {})
    split = [port("a" if number < 2 else "b", f"n{number}") for number in range(5)]
    after = discover(split, stored(before))
    assert members(after)["leaf-hn-0"] == ["n2", "n3", "n4"]
    assert members(after)["leaf-hn-1"] == ["n0", "n1"]


def test_a_name_that_somebody_else_has_is_not_taken() -> None:
    foreign = {"leaf-hn-0": HyperNode(metadata=ObjectMeta("leaf-hn-0"))}
    assert "leaf-hn-1" in members(discover([port("a", "n1")], foreign))


def test_ports_are_read_with_whatever_else_ufm_tells_of_them() -> None:
    body = json.dumps([{"description": "Computer", "system_name": "n", "peer_node_name": "l", "tier": 1}, {}])
    assert decode_ports(body.encode()) == [Port("Computer", "n", "l"), Port()]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b'["a"]',
        b'[{"system_name": 5}]',
        b"[" * 100_000,
        b"\xff",
        b'[{"description": "\xff"}]',
    ],
)
def test_a_body_that_is_no_list_of_ports_is_a_failure(body: bytes) -> None:
    with pytest.raises(DiscoveryFailed, match="no list of ports"):
        decode_ports(body)


def secret(**data: str) -> bytes:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return json.dumps({"data": encoded}).encode()


def test_name_and_password_come_from_the_secret() -> None:
    assert read_credentials(secret(username="me", password="pass:word", other="x"), SOURCE) == (
        "me",
        "pass:word",
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "Secret ns/secret does not exist"),
        (secret(username="me"), "Secret ns/secret: needs username and password"),
        (b"{}", "needs username and password"),
        (b'{"data": {"username": "###", "password": "bWU="}}', "cannot be read"),
        (b'{"data": {"username": "/w==", "password": "bWU="}}', "cannot be read"),
        (b"rubbish", "cannot be read"),
    ],
)
def test_a_secret_without_them_is_named(content: bytes | None, problem: str) -> None:
    with pytest.raises(DiscoveryFailed, match=problem):
        read_credentials(content, SOURCE)
