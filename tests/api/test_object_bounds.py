"""Pods that are larger than any that is meant: left out while they wait, and counted where they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.errors import BadObject
from stromboli.api.object_bounds import manifest_sizes
from stromboli.api.object_checks import check_object
from stromboli.api.types.pod import Pod


def with_spec(spec: dict[str, Any]) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "namespace": "a"}, "spec": spec}, Pod)


def pod(containers: int, init: int = 0, node: str = "") -> Pod:
    spec = {
        "nodeName": node,
        "containers": [{"name": f"c{index}"} for index in range(containers)],
        "initContainers": [{"name": f"i{index}"} for index in range(init)],
    }
    return with_spec(spec)


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
TERM = {"topologyKey": "zone", "labelSelector": {}}
PREFERRED_TERM = {"weight": 1, "podAffinityTerm": TERM}


def placed(spreads: int, required: int, preferred: int) -> dict[str, Any]:
    """The spec of a pod with so many constraints and terms."""
    return {
        "topologySpreadConstraints": [SPREAD] * spreads,
        "affinity": {
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED_TERM] * preferred},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM] * required},
        },
    }


@pytest.mark.parametrize("counts", [(100, 0, 0), (0, 100, 0), (0, 0, 100), (50, 25, 25)])
def test_a_pod_of_too_many_constraints_is_left_out(counts: tuple[int, int, int]) -> None:
    spec = placed(*counts)
    check_object(with_spec(spec))
    assert list(manifest_sizes(spec)) == []
    spec["topologySpreadConstraints"] = [*spec["topologySpreadConstraints"], SPREAD]
    text = "has 101 topology spread constraints and terms of pod affinity, at most 100 are allowed"
    assert [str(size) for size in manifest_sizes(spec)] == [text]
    with pytest.raises(BadObject, match=text):
        check_object(with_spec(spec))
    check_object(with_spec({**spec, "nodeName": "n1"}))


@pytest.mark.parametrize(
    "junk", [None, 7, [], {"affinity": []}, {"affinity": {"podAffinity": 1}, "containers": {}}]
)
def test_a_spec_of_any_form_is_measured(junk: Any) -> None:
    assert list(manifest_sizes(junk)) == []


def test_a_pod_of_too_many_containers_is_left_out_unless_it_is_on_a_node() -> None:
    check_object(pod(1000))
    check_object(pod(1001, node="n1"))
    for large in (pod(1001), pod(500, init=501)):
        with pytest.raises(
            BadObject, match="has 1001 containers, at most 1000 are allowed: use several pods"
        ):
            check_object(large)
