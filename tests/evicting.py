"""Policies and pods for stories in which somebody has to go."""

from __future__ import annotations

import json
from typing import Any

from stromboli.simulator.job_manifests import merged
from stromboli.testing.policy_text import policy_text

STOCK = "priority gang conformance | predicates nodeorder"
SHARES = "priority gang conformance | predicates proportion nodeorder"
LOOSE = "priority conformance | predicates nodeorder"
"""Without gang, so that no gang protects its members."""
GENTLE = {"fewestVictims": True, "doNoHarm": True, "holdFor": "5m", "minRunTime": "0s"}


def policy(actions: str, plugins: str = STOCK, **arguments: dict[str, Any]) -> str:
    """`policy("enqueue, preempt", preempt=GENTLE)`: a configuration file with arguments by action."""
    text = policy_text(actions, plugins)
    if arguments:
        listed = [{"name": name, "arguments": some} for name, some in arguments.items()]
        text += f"configurations: {json.dumps(listed)}\n"
    return text


def pod(name: str, job: str, cpu: int | str = 0, on: str = "", **more: Any) -> dict[str, Any]:
    """A pod of its own making, on a node if given; more fields go into the manifest."""
    requests = {"cpu": cpu} if cpu else {}
    base: dict[str, Any] = {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"scheduling.k8s.io/group-name": job}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running" if on else "Pending"},
    }
    if on:
        base["spec"]["nodeName"] = on
    return merged(base, more)


DYING = {"metadata": {"deletionTimestamp": "2026-11-01T12:00:30Z"}}
