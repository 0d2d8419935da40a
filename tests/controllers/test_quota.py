"""What a pod is charged, in ResourceQuota's names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.errors import BadObject
from stromboli.controllers.kinds import PodSpec
from stromboli.controllers.quota import plus, pod_usage, written

ALWAYS = {"pods": "1", "count/pods": "1"}


def container(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any
) -> Any:
    return {"resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def usage(times: int = 1, **spec: Any) -> dict[str, str]:
    pod = msgspec.convert(spec, PodSpec)
    return written(plus({}, pod_usage(pod), times))


def test_a_pod_that_states_nothing_is_charged_as_a_pod() -> None:
    assert usage(containers=[container()]) == ALWAYS


def test_compute_is_charged_under_two_names_and_limits_under_a_third() -> None:
    one = container({"cpu": "250m", "memory": "1Gi"}, {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"})
    assert usage(containers=[one, one]) == {
        **ALWAYS,
        "cpu": "500m",
        "requests.cpu": "500m",
        "memory": "2Gi",
        "requests.memory": "2Gi",
        "limits.cpu": "2",
        "limits.memory": "4Gi",
    }


def test_huge_pages_and_extended_resources_are_charged_as_requests_and_plainly() -> None:
    one = container({"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "2", "x.kubernetes.io/y": "1", "odd": "1"})
    assert usage(containers=[one]) == {
        **ALWAYS,
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
    }


def test_init_containers_count_by_their_peak_and_sidecars_on_top() -> None:
    sidecar = container({"cpu": "1"}, restartPolicy="Always")
    charged = usage(containers=[container({"cpu": "2"})], initContainers=[sidecar, container({"cpu": "4"})])
    assert charged["cpu"] == "5"


def test_pod_level_resources_replace_the_sum_and_overhead_is_added() -> None:
    charged = usage(
        containers=[container({"cpu": "1", "memory": "1Gi"}, {"cpu": "2"})],
        resources={"requests": {"cpu": "3"}},
        overhead={"cpu": "100m", "memory": "1Mi"},
    )
    assert (charged["cpu"], charged["memory"]) == ("3100m", "1025Mi")
    assert charged["limits.cpu"] == "2100m"
    assert "limits.memory" not in charged


def test_several_pods_are_charged_as_many_times() -> None:
    charged = usage(3, containers=[container({"cpu": "100m"})])
    assert (charged["cpu"], charged["pods"]) == ("300m", "3")


def test_what_is_no_quantity_is_said() -> None:
    with pytest.raises(BadObject, match="bad quantity"):
        usage(containers=[container({"cpu": "plenty"})])
