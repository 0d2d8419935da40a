"""The column of nodes on which devices can be had."""

from __future__ import annotations

import pytest

from stromboli.plugins.predicates import device_claims
from stromboli.plugins.predicates.device_claims import MAX_SECONDS, MAX_STEPS, STEPS_PER_SECOND, SearchLimit
from stromboli.testing import World
from tests.device_manifests import DRIVER, claim, device_class, resource_slice, uses


@pytest.mark.parametrize(
    ("seconds", "counted"), [(1, 1), (10, 10), (-3, 10), (0, MAX_SECONDS), (9999, MAX_SECONDS)]
)
def test_seconds_are_counted_in_steps(seconds: int, counted: int) -> None:
    assert SearchLimit(seconds).steps == counted * STEPS_PER_SECOND


def world() -> World:
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), resource_slice("a", 8), resource_slice("b", 7))
    return made.add(claim("c", 4)).job("j", cpu=1, spec=uses("c"))


def test_a_search_for_devices_ends_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_claims, "STEPS_PER_SECOND", 0)
    result = world().run("enqueue, allocate", "gang, predicates")
    assert result.binds == {}
    assert "no devices found within" in result.why("j-0")


def test_nodes_for_which_a_cycle_has_no_time_left_are_looked_at_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_claims, "MAX_STEPS", 0)
    made = world()
    first = made.run("enqueue, allocate", "gang, predicates")
    assert first.binds == {}
    assert "timed out trying to allocate devices" in first.why("j-0")
    monkeypatch.setattr(device_claims, "MAX_STEPS", 1_000_000)
    assert made.step().binds == {"default/j-0": "a"}


def test_a_namespace_leaves_as_many_steps_to_the_others_as_it_takes() -> None:
    limit = SearchLimit(10)
    limit.spend("greedy", MAX_STEPS // 2)
    assert limit.is_spent("greedy")
    assert not limit.is_spent("modest")
    limit.spend("modest", MAX_STEPS // 4)
    assert limit.is_spent("modest")
    assert not limit.is_spent("another")
    limit.opening()
    assert not limit.is_spent("greedy")


def test_claims_that_no_search_comes_to_an_end_with_do_not_keep_those_of_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten pods with different claims, each of which would take all the steps, come first."""
    monkeypatch.setattr(device_claims, "MAX_STEPS", 20_000)
    model = f"device.attributes['{DRIVER}'].model"
    devices = [{"name": f"g{place}", "attributes": {"model": {"int": place}}} for place in range(8)]
    made = World(nodes="a cpu=80", queues="default").add(device_class(), resource_slice("a", devices))
    for place in range(10):
        alternatives = [
            {
                "name": f"o{number}",
                "deviceClassName": "gpu",
                "allocationMode": "All",
                "selectors": [{"cel": {"expression": f"{model} == {number} && {place} < 10"}}],
            }
            for number in range(8)
        ]
        requests = [{"name": f"r{number}", "firstAvailable": alternatives} for number in range(12)]
        made.add(claim(f"h{place}", 1, *requests, namespace="hostile"))
        made.job(f"h{place}", cpu=1, spec=uses(f"h{place}"), namespace="hostile")
    made.add(claim("c")).job("j", cpu=1, spec=uses("c"))
    assert made.run("enqueue, allocate", "gang, predicates").binds == {"default/j-0": "a"}


def test_nodes_for_which_there_was_no_time_are_dropped_once_their_pod_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_claims, "MAX_STEPS", 0)
    made = world()
    made.run("enqueue, allocate", "gang, predicates")
    claims = made.plugin("predicates")._claims
    waiting = [claims.version(made.task("j-0")) for _ in range(3) if made.step()]
    assert len(set(waiting)) == 3
    task = made.task("j-0")
    made.finish("j-0").step()
    gone = [claims.version(task) for _ in range(3) if made.step()]
    assert len(set(gone)) == 1


def test_slices_that_come_change_and_go_are_seen_at_once() -> None:
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), claim("c", 2)).job("j", cpu=1, spec=uses("c"))
    assert made.run("enqueue, allocate", "gang, predicates").binds == {}
    assert made.add(resource_slice("b", 1)).step().binds == {}
    assert made.remove(resource_slice("b", 1)).step().binds == {}
    assert made.add(resource_slice("b", 2)).step().binds == {"default/j-0": "b"}
