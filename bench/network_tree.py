"""A cluster of GPU nodes below switches, for measurements of placement in the network's shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Manifest = dict[str, Any]
NODE = "cpu=64,memory=512Gi,nvidia.com/gpu=8"
WIDTHS = (16, 4, 4)
"""Nodes of a leaf, leaves of a spine, spines of a core."""


def node_names(count: int) -> list[str]:
    return [f"n{number:04}" for number in range(count)]


def node_text(count: int) -> str:
    """So many nodes, in the notation of `World`."""
    return "; ".join(f"{name} {NODE}" for name in node_names(count))


def hyper_nodes(count: int, widths: tuple[int, ...] = WIDTHS) -> Iterator[Manifest]:
    """A tree over so many nodes, tier by tier."""
    below, kind = node_names(count), "Node"
    for tier, width in enumerate(widths, 1):
        groups = [below[first : first + width] for first in range(0, len(below), width)]
        below = [f"t{tier}-{number:03}" for number in range(len(groups))]
        for name, members in zip(below, groups, strict=True):
            yield {
                "apiVersion": "topology.volcano.sh/v1alpha1",
                "kind": "HyperNode",
                "metadata": {"name": name},
                "spec": {"tier": tier, "members": [_member(kind, member) for member in members]},
            }
        kind = "HyperNode"


def _member(kind: str, name: str) -> Manifest:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def policy(**arguments: Any) -> str:
    """The plugins of the presets, with these arguments of network-topology-aware."""
    lines = [f"      {key}: {_yaml(value)}" for key, value in arguments.items()]
    return "\n".join([_POLICY, *(["    arguments:", *lines] if lines else [])]) + "\n"


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_POLICY = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
  - name: network-topology-aware"""
