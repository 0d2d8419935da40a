"""What a ResourceQuota charges for a pod (spec 06 2.10)."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from stromboli.api.errors import BadObject
from stromboli.api.resources.quota_charges import (
    Charges,
    add_charges,
    as_resource_list,
    pod_charges,
    same_amounts,
)
from stromboli.api.types.pod import PodSpec


def charged(times: int = 1, **spec: Any) -> dict[str, str]:
    total: Charges = {}
    add_charges(total, pod_charges(msgspec.convert(spec, PodSpec)), times)
    return as_resource_list(total)


def container(**requests: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def test_a_pod_that_asks_for_nothing_is_charged_as_a_pod() -> None:
    assert charged(3, containers=[{}]) == {"pods": "3", "count/pods": "3"}


def test_requests_are_charged_under_both_names_and_limits_under_their_own() -> None:
    resources = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1}}
    assert charged(2, containers=[{"resources": resources}]) == {
        "pods": "2",
        "count/pods": "2",
        "cpu": "1",
        "requests.cpu": "1",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "limits.cpu": "2",
    }


def test_devices_are_charged_and_unknown_plain_names_are_not() -> None:
    charges = charged(
        containers=[
            container(**{"nvidia.com/gpu": 2, "odd": 1, "kubernetes.io/odd": 1, "hugepages-2Mi": "4Mi"})
        ]
    )
    assert charges.keys() - {"pods", "count/pods"} == {
        "nvidia.com/gpu",
        "requests.nvidia.com/gpu",
        "hugepages-2Mi",
        "requests.hugepages-2Mi",
    }


def test_init_containers_count_by_their_peak_and_sidecars_on_top() -> None:
    sidecar = container(cpu=1) | {"restartPolicy": "Always"}
    inits = [sidecar, container(cpu=4)]
    assert charged(containers=[container(cpu=1)], initContainers=inits)["cpu"] == "5"
    assert charged(containers=[container(cpu=6)], initContainers=inits)["cpu"] == "7"


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("pods", 1024, "1024"),
        ("count/jobs.batch", 1024, "1024"),
        ("services", 2048, "2048"),
        ("requests.cpu", 1024, "1024"),
        ("limits.memory", 1024, "1Ki"),
        ("requests.storage", 1 << 30, "1Gi"),
        ("requests.cpu", Fraction(1, 3), "334m"),
    ],
)
def test_only_bytes_are_written_with_binary_suffixes(name: str, amount: Fraction, text: str) -> None:
    assert as_resource_list({name: Fraction(amount)}) == {name: text}


def test_overhead_adds_to_limits_only_where_there_is_one() -> None:
    limited = {"resources": {"limits": {"cpu": 1}}}
    charges = charged(containers=[limited], overhead={"cpu": "250m", "memory": "1Mi"})
    assert charges["limits.cpu"] == "1250m"
    assert "limits.memory" not in charges


def test_what_the_pod_states_as_a_whole_stands_and_overhead_is_added() -> None:
    pod = {
        "containers": [container(cpu=1)],
        "resources": {"requests": {"cpu": 3}},
        "overhead": {"cpu": "250m"},
    }
    assert charged(**pod)["cpu"] == "3250m"


def test_a_bad_quantity_is_a_bad_object() -> None:
    with pytest.raises(BadObject, match="lots"):
        charged(containers=[container(cpu="lots")])


def test_the_same_amount_may_be_written_in_many_ways() -> None:
    assert same_amounts({"cpu": "1000m"}, {"cpu": 1})
    assert not same_amounts({"cpu": "1"}, {"cpu": "2"})
    assert not same_amounts({"cpu": "1"}, {})
    assert not same_amounts({"cpu": "lots"}, {"cpu": "lots"})
