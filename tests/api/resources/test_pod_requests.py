"""What a pod asks for, in every way a pod can say it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.decoding import decode
from stromboli.api.resources.pod_requests import pod_request, view_request
from stromboli.api.types.pod import Pod

MIB = 1024 * 1024


def pod(*containers: dict[str, Any], status: dict[str, Any] | None = None, **spec: Any) -> Pod:
    manifest = {
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": containers, **spec},
        "status": status or {},
    }
    result = decode(manifest)
    assert isinstance(result, Pod)
    return result


def asks(name: str = "main", restart: str = "", **requests: str) -> dict[str, Any]:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def test_containers_add_up_and_a_pod_counts_as_one() -> None:
    assert pod_request(pod(asks(cpu="1", memory="1Ki"), asks(cpu="500m"))) == {
        "cpu": 1500,
        "memory": 1024,
        "pods": 1,
    }


def test_a_pod_that_asks_for_nothing_still_counts_as_one() -> None:
    assert pod_request(pod({"name": "main"})) == {"pods": 1}


def test_an_explicit_zero_is_kept() -> None:
    assert pod_request(pod(asks(cpu="0"))) == {"cpu": 0, "pods": 1}


def test_init_containers_count_by_their_peak() -> None:
    result = pod_request(pod(asks(cpu="1"), asks(cpu="1"), initContainers=[asks(cpu="3"), asks(memory="5")]))
    assert result == {"cpu": 3000, "memory": 5, "pods": 1}


def test_sidecars_run_beside_containers_and_beside_later_init_containers() -> None:
    init = [asks("first", cpu="4"), asks("side", "Always", cpu="1"), asks("second", cpu="4")]
    assert pod_request(pod(asks(cpu="2"), initContainers=init))["cpu"] == 5000
    assert pod_request(pod(asks(cpu="6"), initContainers=init))["cpu"] == 7000


def test_pod_level_requests_replace_and_overhead_adds() -> None:
    result = pod_request(
        pod(
            asks(cpu="1", memory="1"),
            resources={"requests": {"cpu": "5", "example.com/fpga": "9"}},
            overhead={"cpu": "250m", "memory": "10"},
        )
    )
    assert result == {"cpu": 5250, "memory": 11, "pods": 1}


def resized(**status: Any) -> dict[str, Any]:
    resized_status = {
        "name": "main",
        "resources": {"requests": {"cpu": "2"}},
        "allocatedResources": {"cpu": "3", "memory": "7"},
    }
    return {"containerStatuses": [resized_status], **status}


def test_while_resized_the_largest_of_asked_given_and_promised_counts() -> None:
    assert pod_request(pod(asks(cpu="1"), status=resized())) == {"cpu": 3000, "memory": 7, "pods": 1}
    assert pod_request(pod(asks(cpu="8"), status=resized()))["cpu"] == 8000


def test_an_infeasible_resize_does_not_count() -> None:
    pending = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    assert pod_request(pod(asks(cpu="8"), status=resized(conditions=pending)))["cpu"] == 3000
    assert pod_request(pod(asks(cpu="8"), status=resized(resize="Infeasible")))["cpu"] == 3000


def test_a_status_without_resources_is_no_resize() -> None:
    status = {"containerStatuses": [{"name": "main", "allocatedResources": {"cpu": "9"}}]}
    assert pod_request(pod(asks(cpu="1"), status=status))["cpu"] == 1000


def test_a_resized_pod_as_a_whole_counts_by_its_status_in_scores() -> None:
    status = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "5"}}
    built = pod({"name": "main"}, resources={"requests": {"cpu": "4"}}, status=status)
    assert view_request(built).requested == {"cpu": 5000}
    assert view_request(built).incoming == {"cpu": 4000}
    assert pod_request(built) == {"cpu": 4000, "pods": 1}


def test_only_sidecars_among_init_containers_can_be_resized() -> None:
    status = {"initContainerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "9"}}}]}
    assert pod_request(pod(initContainers=[asks(cpu="1")], status=status))["cpu"] == 1000
    assert pod_request(pod(initContainers=[asks("main", "Always", cpu="1")], status=status))["cpu"] == 9000


def test_containers_that_state_nothing_count_a_little_in_scores() -> None:
    view = view_request(pod(asks(cpu="1"), asks(memory="0")))
    assert view.requested == view.incoming == {"cpu": 1000, "memory": 0}
    assert (view.nonzero_cpu, view.nonzero_memory) == (1100, 200 * MIB)
    assert (view.incoming_nonzero_cpu, view.incoming_nonzero_memory) == (1100, 200 * MIB)


def test_the_view_counts_devices_whole() -> None:
    assert view_request(pod({"name": "m", "resources": {"requests": {"nvidia.com/gpu": 2}}})).incoming == {
        "nvidia.com/gpu": 2
    }


def test_an_arriving_pod_hides_its_pod_level_requests_from_the_nonzero_numbers() -> None:
    view = view_request(pod({"name": "main"}, resources={"requests": {"cpu": "4"}}))
    assert view.requested == view.incoming == {"cpu": 4000}
    assert (view.nonzero_cpu, view.nonzero_memory) == (4000, 200 * MIB)
    assert (view.incoming_nonzero_cpu, view.incoming_nonzero_memory) == (100, 200 * MIB)


def test_an_arriving_pod_is_taken_at_its_word_and_an_existing_one_at_its_status() -> None:
    view = view_request(pod(asks(cpu="1", memory="1"), status=resized()))
    assert view.incoming["cpu"] == view.incoming_nonzero_cpu == 1000
    assert view.requested["cpu"] == view.nonzero_cpu == 3000


amount = st.integers(0, 50)
role = st.sampled_from(["container", "init", "sidecar"])


@given(st.lists(st.tuples(role, amount), max_size=6))
def test_the_request_covers_every_moment_of_the_pods_life(parts: list[tuple[str, int]]) -> None:
    main = [size for kind, size in parts if kind == "container"]
    init = [(kind, size) for kind, size in parts if kind != "container"]
    moments = [sum(main) + sum(size for kind, size in init if kind == "sidecar")]
    for index, (_, size) in enumerate(init):
        moments.append(size + sum(other for kind, other in init[:index] if kind == "sidecar"))

    built = pod(
        *(asks(f"c{i}", memory=str(size)) for i, size in enumerate(main)),
        initContainers=[
            asks(f"i{i}", "Always" if kind == "sidecar" else "", memory=str(size))
            for i, (kind, size) in enumerate(init)
        ],
    )
    assert pod_request(built).get("memory", 0) == max(moments)
