"""The network of an embedded cluster: nodes in racks and racks below switches, by labels that discovery reads."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from stromboli.api import names
from stromboli.api.types.scheduling import HyperNode
from stromboli.controllers.hypernode.discovery_config import KEY
from stromboli.controllers.hypernode.label_discovery import Place
from stromboli.embedded.nodes.node_groups import BadNodes
from stromboli.embedded.nodes.node_types import Content
from stromboli.embedded.nodes.write_queue import NODES
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, Resource
from stromboli.kube.request import ApiError

log = logging.getLogger(__name__)

RACK, SWITCH = "topology.kubernetes.io/rack", "topology.kubernetes.io/switch"
"""Labels of nodes; the first is the one that Kubernetes' own documentation has in examples."""
DISCOVERY_WAIT = 5.0
"""Seconds to wait for the next HyperNode, or the next count, when a cluster starts."""
HYPER_NODES = RESOURCES[HyperNode]
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DISCOVERY = f"""\
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks:
      - nodeLabel: {SWITCH}
      - nodeLabel: {RACK}
      - nodeLabel: {names.HOSTNAME}
"""
"""Two tiers, racks and switches; nodes without a switch have one."""


_MESSAGE = (
    "HyperNodes do not follow the racks of the nodes; events of ConfigMap %s/%s, which configures their discovery, "
    "may say why: kubectl describe configmap -n %s %s"
)


def place_in_racks(nodes: list[Content], racks: int, switches: int) -> None:
    """Label nodes with racks, and with switches if there are any, in equal parts and in order; 0 is none."""
    if switches and not racks:
        raise BadNodes(f"--switches {switches}: switches connect racks; say how many with --racks")
    if not racks:
        return
    if racks > len(nodes):
        raise BadNodes(f"--racks {racks}: more racks than nodes; at most {len(nodes)}, or more --nodes")
    if switches > racks:
        raise BadNodes(f"--switches {switches}: more switches than racks; at most {racks}, or more --racks")
    for number, node in enumerate(nodes):
        labels = node["metadata"]["labels"]
        if taken := sorted({RACK, SWITCH} & labels.keys()):
            name = node["metadata"]["name"]
            raise BadNodes(
                f"--racks {racks}: node {name} has the label {taken[0]} already; leave out one of the two"
            )
        rack = number * racks // len(nodes)
        labels[RACK] = f"rack-{rack + 1}"
        if switches:
            labels[SWITCH] = f"switch-{rack * switches // racks + 1}"


def has_racks(nodes: Iterable[Content]) -> bool:
    """Whether HyperNodes can be discovered from the labels of nodes."""
    return any(RACK in node["metadata"]["labels"] for node in nodes)


def label_patch(labels: Mapping[str, str]) -> dict[str, str | None]:
    """What to merge into the labels of a node that exists: whoever comes into a rack leaves its former switch."""
    return {SWITCH: None, **labels} if RACK in labels else {**labels}


async def configure_discovery(client: Client, namespace: str, name: str) -> None:
    """Have HyperNodes discovered from these labels, unless discovery is configured already."""
    await create_missing(client, NAMESPACES, {"metadata": {"name": namespace}})
    config_map = {"metadata": {"name": name, "namespace": namespace}, "data": {KEY: DISCOVERY}}
    await create_missing(client, CONFIG_MAPS, config_map, namespace)


async def wait_until_discovered(client: Client, namespace: str, name: str) -> None:
    """Wait until HyperNodes follow the labels of nodes; not for long, as somebody may have configured it otherwise."""
    expected, last = await _nodes_by_place(client), Counter[Place]()
    clock = asyncio.get_running_loop().time
    deadline, pause = clock() + DISCOVERY_WAIT, 0.02
    while expected != (counts := await _counts_by_place(client)):
        if counts != last:
            last, deadline = counts, clock() + DISCOVERY_WAIT
        elif clock() > deadline:
            log.warning(_MESSAGE, namespace, name, namespace, name)
            return
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.5)


async def _nodes_by_place(client: Client) -> Counter[Place]:
    """How many nodes each rack and switch has; only racks are below switches."""
    items = msgspec.json.decode(await client.list(NODES))["items"]
    labels = [item["metadata"].get("labels", {}) for item in items]
    return Counter(
        Place(key, each[key]) for each in labels if RACK in each for key in (RACK, SWITCH) if key in each
    )


async def _counts_by_place(client: Client) -> Counter[Place]:
    """How many nodes discovered HyperNodes count, by their racks and switches."""
    counts: Counter[Place] = Counter()
    for item in msgspec.json.decode(await client.list(HYPER_NODES))["items"]:
        labels = item["metadata"].get("labels", {})
        for key in labels.keys() & {RACK, SWITCH} if names.TOPOLOGY_SOURCE in labels else ():
            counts[Place(key, labels[key])] += item.get("status", {}).get("nodeCount", 0)
    return counts


async def create_missing(client: Client, resource: Resource, body: Content, namespace: str = "") -> None:
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    try:
        await client.create(resource, manifest, namespace)
    except ApiError as error:
        if error.status != 409:
            raise
