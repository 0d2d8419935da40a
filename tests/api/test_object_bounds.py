"""Pods that are larger than any that is meant: left out while they wait, and counted where they are."""

from __future__ import annotations

import msgspec
import pytest

from stromboli.api.errors import BadObject
from stromboli.api.object_checks import check_object
from stromboli.api.types.pod import Pod


def pod(containers: int, init: int = 0, node: str = "") -> Pod:
    spec = {
        "nodeName": node,
        "containers": [{"name": f"c{index}"} for index in range(containers)],
        "initContainers": [{"name": f"i{index}"} for index in range(init)],
    }
    return msgspec.convert({"metadata": {"name": "p", "namespace": "a"}, "spec": spec}, Pod)


def test_a_pod_of_too_many_containers_is_left_out_unless_it_is_on_a_node() -> None:
    check_object(pod(1000))
    check_object(pod(1001, node="n1"))
    for large in (pod(1001), pod(500, init=501)):
        with pytest.raises(
            BadObject, match="has 1001 containers, at most 1000 are allowed: use several pods"
        ):
            check_object(large)
