"""The quality of service class of a pod."""

from typing import Any

import pytest

from stromboli.api.resources.qos import qos_class
from stromboli.api.types.pod import pod_resources

LIMITED = {"cpu": "1", "memory": "1Gi"}


def container(limits: dict[str, Any] | None = None, **requests: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests, "limits": limits or {}}}


def class_of(*containers: dict[str, Any], **spec: Any) -> str:
    return qos_class(pod_resources({"spec": {"containers": containers, **spec}}))


@pytest.mark.parametrize("stated", [{}, {"cpu": 0}, {"nvidia.com/gpu": 1}])
def test_a_pod_that_states_neither_cpu_nor_memory_is_best_effort(stated: dict[str, Any]) -> None:
    assert class_of(container(stated, **stated)) == "BestEffort"


def test_a_pod_is_guaranteed_if_all_containers_are_limited_to_what_they_request() -> None:
    assert class_of(container(LIMITED, cpu="1000m", memory=1 << 30)) == "Guaranteed"
    assert class_of(container(LIMITED, **LIMITED), container()) == "Burstable"
    assert class_of(container(LIMITED, **LIMITED), initContainers=[container()]) == "Burstable"
    assert class_of(container(LIMITED, cpu="500m", memory="1Gi")) == "Burstable"
    assert class_of(container({"cpu": "1"}, cpu="1")) == "Burstable"
    assert class_of(container(cpu="1")) == "Burstable"


def test_what_the_pod_states_as_a_whole_decides_alone() -> None:
    resources = {"requests": LIMITED, "limits": LIMITED}
    assert class_of(container(cpu="1"), resources=resources) == "Guaranteed"
    assert class_of(container(LIMITED, **LIMITED), resources={"requests": {"cpu": "1"}}) == "Burstable"
    assert class_of(container(LIMITED, **LIMITED), resources={}) == "BestEffort"
