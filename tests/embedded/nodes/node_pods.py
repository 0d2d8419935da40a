"""Pods as nodes see them, for tests."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.nodes.node_types import NodePod


def pod(name: str = "p", phase: str = "Pending", started: str = "", **more: Any) -> NodePod:
    """A pod on node n1 with one container; `annotations`, `meta`, `spec`, `status` and `command` say more."""
    container: dict[str, Any] = {"name": "main", "image": "busybox"}
    if "command" in more:
        container["command"] = more["command"]
    status: dict[str, Any] = {"phase": phase, **more.get("status", {})}
    if started:
        status["containerStatuses"] = [{"name": "main", "state": {"running": {"startedAt": started}}}]
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "annotations": more.get("annotations", {}),
                **more.get("meta", {}),
            },
            "spec": {
                "nodeName": "n1",
                "restartPolicy": "Never",
                "containers": [container],
                **more.get("spec", {}),
            },
            "status": status,
        },
        NodePod,
    )
