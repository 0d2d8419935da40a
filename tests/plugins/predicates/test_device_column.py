"""The column of nodes on which devices can be had."""

from __future__ import annotations

import pytest

from stromboli.plugins.predicates import device_column
from stromboli.plugins.predicates.device_column import MOST_SECONDS, STEPS_PER_SECOND, SearchLimit
from stromboli.testing import World
from tests.device_manifests import claim, device_class, resource_slice, uses


@pytest.mark.parametrize(
    ("seconds", "counted"), [(1, 1), (10, 10), (-3, 10), (0, MOST_SECONDS), (9999, MOST_SECONDS)]
)
def test_seconds_are_counted_in_steps(seconds: int, counted: int) -> None:
    assert SearchLimit(seconds).budget().steps == counted * STEPS_PER_SECOND


def world() -> World:
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), resource_slice("a", 8), resource_slice("b", 7))
    return made.add(claim("c", 4)).job("j", cpu=1, spec=uses("c"))


def test_a_search_for_devices_ends_after_so_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_column, "STEPS_PER_SECOND", 0)
    result = world().run("enqueue, allocate", "gang, predicates")
    assert result.binds == {}
    assert "no devices found within" in result.why("j-0")


def test_nodes_for_which_a_cycle_has_no_time_left_are_looked_at_in_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(device_column, "MOST_STEPS", 0)
    made = world()
    first = made.run("enqueue, allocate", "gang, predicates")
    assert first.binds == {}
    assert "timed out trying to allocate devices" in first.why("j-0")
    monkeypatch.setattr(device_column, "MOST_STEPS", 1_000_000)
    assert made.step().binds == {"default/j-0": "a"}


def test_slices_that_come_change_and_go_are_seen_at_once() -> None:
    made = World(nodes="a cpu=8; b cpu=8").add(device_class(), claim("c", 2)).job("j", cpu=1, spec=uses("c"))
    assert made.run("enqueue, allocate", "gang, predicates").binds == {}
    assert made.add(resource_slice("b", 1)).step().binds == {}
    assert made.remove(resource_slice("b", 1)).step().binds == {}
    assert made.add(resource_slice("b", 2)).step().binds == {"default/j-0": "b"}
