"""What a Node object says of itself: whether it is ready, and whether new pods may come to it."""

from __future__ import annotations

from stromboli.api import names
from stromboli.api.types.node import Node


def node_state(node: Node) -> str:
    """As `kubectl get nodes` shows it."""
    ready = (condition for condition in node.status.conditions if condition.type == names.CONDITION_READY)
    states = ["Ready" if condition.status == "True" else "NotReady" for condition in ready] or ["Unknown"]
    return f"{states[0]},SchedulingDisabled" if node.spec.unschedulable else states[0]


def is_usable(node: Node) -> bool:
    """Whether new pods may come to a node: it is ready, as far as it says, and not cordoned."""
    return node_state(node) in ("Ready", "Unknown")


def is_gpu(resource: str) -> bool:
    """Whether a resource of a node counts whole GPUs, whoever made them."""
    return resource.endswith(("/gpu", "/gpus"))
