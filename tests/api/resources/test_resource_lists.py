"""Resource lists in internal units, and back."""

import pytest

from stromboli.api.errors import BadObject
from stromboli.api.resources.resource_lists import amounts, check_amounts, resource_list, view_amounts


def test_each_name_has_its_unit() -> None:
    assert amounts(
        {
            "cpu": "1500m",
            "memory": "1Gi",
            "pods": "110",
            "ephemeral-storage": "1k",
            "nvidia.com/gpu": 2,
            "hugepages-2Mi": "4Mi",
            "attachable-volumes-csi-disk": "1",
            "deviceclass/gpu": "3",
        },
        "here",
    ) == {
        "cpu": 1500,
        "memory": 2**30,
        "pods": 110,
        "ephemeral-storage": 1_000_000,
        "nvidia.com/gpu": 2000,
        "hugepages-2Mi": 4 * 2**20 * 1000,
        "attachable-volumes-csi-disk": 1000,
        "deviceclass/gpu": 3000,
    }


@pytest.mark.parametrize(
    "name", ["count/pods", "requests.cpu", "requests.nvidia.com/gpu", "limits.memory", "storage", "x"]
)
def test_names_that_are_not_counted_are_dropped(name: str) -> None:
    assert amounts({name: "1", "cpu": "0"}, "here") == {"cpu": 0}


def test_kubernetes_scores_count_whole_units() -> None:
    assert view_amounts({"cpu": "1", "memory": "1Ki", "nvidia.com/gpu": "2"}, "here") == {
        "cpu": 1000,
        "memory": 1024,
        "nvidia.com/gpu": 2,
    }


@pytest.mark.parametrize("quantity", ["-1", "-1n", "9e18", "much"])
def test_a_bad_amount_names_the_resource_and_the_value(quantity: str) -> None:
    with pytest.raises(BadObject) as caught:
        amounts({"example.com/fpga": quantity}, "spec.capability")
    assert caught.value.field == "spec.capability.example.com/fpga"
    assert quantity in caught.value.problem


def test_even_what_is_not_counted_must_be_a_quantity() -> None:
    with pytest.raises(BadObject, match=r"hard\.count/pods"):
        check_amounts({"count/pods": "many"}, "hard")


def test_a_queue_status_reads_like_kubernetes_wrote_it() -> None:
    quantities = resource_list(
        {"cpu": 1500, "memory": 2**30, "pods": 3, "nvidia.com/gpu": 2000, "a.b/c": 500}
    )
    assert quantities == {
        "cpu": "1500m",
        "memory": "1Gi",
        "pods": "3",
        "nvidia.com/gpu": "2",
        "a.b/c": "500m",
    }
    assert resource_list({}) == {"cpu": "0", "memory": "0"}
