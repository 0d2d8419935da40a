"""Critical pods are never named as victims."""

from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.engine.plugin import NoArguments
from stromboli.plugins.conformance import Conformance


def _task(name: str, namespace: str = "default", priority_class: str = "") -> Any:
    return SimpleNamespace(name=name, namespace=namespace, priority_class=priority_class)


@pytest.mark.parametrize("point", ["preemptable", "reclaimable", "unified_evictable"])
def test_system_pods_are_spared_and_the_order_is_kept(point: str) -> None:
    ask = getattr(Conformance(NoArguments(), {}), point)
    candidates = [
        _task("b"),
        _task("dns", namespace="kube-system"),
        _task("proxy", priority_class="system-node-critical"),
        _task("ingress", priority_class="system-cluster-critical"),
        _task("a", priority_class="high"),
    ]
    assert [task.name for task in ask(_task("wants"), candidates)] == ["b", "a"]
