"""How much work a search for devices is, and that it is bounded whatever claims ask for (spec 04 2.12)."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.devices import claim_shape, device_selection
from stromboli.model.devices.allocator import Allocation, DeviceShortage, DevicesInUse, Solution, StepBudget
from stromboli.model.node_columns import Node
from tests.model.devices.device_worlds import (
    DRIVER,
    DeviceWorld,
    device,
    exactly,
    held,
    make_claim,
    make_slice,
    request,
)

MODEL = f'device.attributes["{DRIVER}"].model'


def short(answer: Allocation | Solution | DeviceShortage) -> DeviceShortage:
    assert isinstance(answer, DeviceShortage), answer
    return answer


def test_nodes_with_equal_pools_in_equal_use_share_the_answer() -> None:
    slices = [
        make_slice(f"s{place}", ["d0", device("d1", uuid=f"{place}")], nodeName=f"n{place}")
        for place in range(3)
    ]
    world = DeviceWorld(*slices)
    search = world.allocator.prepare([make_claim(request()).spec])
    in_use = held("d0", pool="s2")
    answers = [search.answer(Node(f"n{place}"), in_use) for place in range(3)]
    assert answers[0] is answers[1]
    assert answers[0] is not answers[2]


def test_answers_are_forgotten_before_they_take_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_shape, "MAX_STATES", 40)
    world = DeviceWorld(make_slice("s", [f"d{place}" for place in range(30)]))
    search = world.allocator.prepare([make_claim(request()).spec])
    in_use = DevicesInUse()
    for place in range(30):
        answer = search.allocate(Node("a"), in_use)
        assert isinstance(answer, Allocation)
        assert answer.results[0].devices.results[0].device == f"d{place}"
        in_use.add(answer.results[0])
    assert isinstance(search.answer(Node("a"), in_use), DeviceShortage)


def test_a_search_without_end_is_given_up() -> None:
    devices = [device(f"d{place}", model=str(place), x=place % 2) for place in range(30)]
    world = DeviceWorld(make_slice("s", devices))
    never = request("y", f"device.attributes['{DRIVER}'].x > 1")
    claim = make_claim(
        request("x", f'{MODEL} != ""', count=15),
        never,
        constraints=[{"distinctAttribute": f"{DRIVER}/model"}],
    )
    answer = short(world.allocate(claim))
    assert answer.is_error
    assert "no devices found within 100000 steps" in answer.message


def test_a_search_that_was_stopped_has_the_same_answer_for_equal_nodes_until_it_may_take_more_steps() -> None:
    slices = [make_slice(f"s{node}", ["d0", "d1"], nodeName=node) for node in "ab"]
    search = DeviceWorld(*slices).allocator.prepare([make_claim(request(count=2)).spec])
    stopped = search.answer(Node("a"), DevicesInUse(), StepBudget(1))
    assert "no devices found within 1 steps" in short(stopped).message
    assert search.answer(Node("b"), DevicesInUse(), StepBudget(1)) is stopped
    assert not isinstance(search.answer(Node("a"), DevicesInUse()), DeviceShortage)


def test_a_search_that_was_stopped_while_it_evaluated_selectors_gets_further_the_next_time() -> None:
    devices = [device(f"d{place}", model=str(place)) for place in range(100)]
    search = DeviceWorld(make_slice("s", devices)).allocator.prepare(
        [make_claim(request("r", f'{MODEL} == "99"')).spec]
    )
    assert isinstance(search.answer(Node("a"), DevicesInUse(), StepBudget(150)), DeviceShortage)
    answers = (search.answer(Node("a"), DevicesInUse(), StepBudget(150)) for _ in range(100))
    assert any(not isinstance(answer, DeviceShortage) for answer in answers)


def one_of_all(count: int) -> list[dict[str, Any]]:
    """Alternatives that each take a certain device, as all that there are of its kind."""
    selectors = [f'{MODEL} == "{place}"' for place in range(count)]
    return [
        {"name": f"o{place}", **exactly(selector, allocationMode="All")}
        for place, selector in enumerate(selectors)
    ]


def test_alternatives_that_take_all_devices_count_as_steps() -> None:
    """More requests than devices: the search would try all orders of the devices."""
    world = DeviceWorld(make_slice("s", [device(f"d{place}", model=str(place)) for place in range(8)]))
    requests = [{"name": f"r{place}", "firstAvailable": one_of_all(8)} for place in range(20)]
    answer = short(world.allocate(make_claim(*requests)))
    assert answer.is_error
    assert "no devices found within" in answer.message


def test_finding_all_devices_of_many_alternatives_counts_as_steps() -> None:
    world = DeviceWorld(make_slice("s", [device(f"d{place}", model=str(place)) for place in range(100)]))
    requests = [{"name": f"r{place}", "firstAvailable": one_of_all(8)} for place in range(8)]
    search, budget = world.allocator.prepare([make_claim(*requests).spec]), StepBudget(5000)
    assert (
        "no devices found within 5000 steps"
        in short(search.answer(Node("a"), DevicesInUse(), budget)).message
    )


def test_devices_that_are_passed_over_count_as_steps() -> None:
    devices = [device(f"d{place}", x=place % 2) for place in range(128)]
    world = DeviceWorld(make_slice("s", devices))
    claim = make_claim(request("x", count=3), request("y", f"device.attributes['{DRIVER}'].x > 1"))
    search, budget = world.allocator.prepare([claim.spec]), StepBudget()
    assert not short(search.answer(Node("a"), DevicesInUse(), budget)).is_error
    looked_at = 4 * 128
    """For `y` with each mixture of both kinds for `x`."""
    assert budget.spent > looked_at + 3 * 120 // 8


def test_compiling_and_evaluating_selectors_counts_as_steps_once() -> None:
    rounds = ", ".join(["1"] * 10)
    slow = f"[{rounds}].all(a, [{rounds}].all(b, [{rounds}].all(c, {MODEL} != string(a + b + c))))"
    world = DeviceWorld(
        make_slice("s", [device("d0", model="x")]), make_slice("t", [device("d1", model="y")])
    )
    search = world.allocator.prepare([make_claim(request("r", slow, f'{MODEL} == "y"')).spec])
    budgets = [StepBudget(), StepBudget()]
    for budget, in_use in zip(budgets, (DevicesInUse(), held("d9")), strict=True):
        assert not isinstance(search.answer(Node("a"), in_use, budget), DeviceShortage)
    assert budgets[0].spent > 100
    assert budgets[1].spent == 2  # devices that it looks at


def test_long_selectors_are_compiled_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose outcomes are known are not needed again."""
    monkeypatch.setattr(device_selection, "MAX_COMPILED", 10)
    world = DeviceWorld(make_slice("s", [f"d{place}" for place in range(8)]))
    selectors = [f"device.driver != '{place}'" for place in range(20)]
    search = world.allocator.prepare([make_claim(request("r", *selectors, count=8)).spec])
    compiled: list[str] = []
    compile = device_selection.compiled_selector
    monkeypatch.setattr(
        device_selection, "compiled_selector", lambda text: compiled.append(text) or compile(text)
    )
    assert not isinstance(search.answer(Node("a"), DevicesInUse()), DeviceShortage)
    assert len(compiled) == 40  # to know what they read, and for the outcome


def test_a_pod_has_a_limit_on_the_length_of_all_its_selectors() -> None:
    selectors = [f"device.driver != '{place}{'x' * 9000}'" for place in range(8)]
    claims = [
        make_claim(request("r", selector), name=f"c{place}") for place, selector in enumerate(selectors)
    ]
    world = DeviceWorld(make_slice("s", ["d"]))
    assert "at most 65536 are allowed for a pod" in short(world.allocate(*claims)).message


def test_a_pod_may_have_as_many_alternatives_as_devices_are_allowed() -> None:
    """The search goes deeper with each of them; Python allows a thousand calls."""
    slices = [make_slice(f"s{part}", [f"d{part}-{place}" for place in range(100)]) for part in range(2)]
    claims = [
        make_claim(
            *({"name": f"r{place}", "firstAvailable": [{"name": "o", **exactly()}]} for place in range(32)),
            name=f"c{part}",
        )
        for part in range(5)
    ]
    world = DeviceWorld(*slices)
    assert [len(result) for result in world.devices(*claims[:4])] == [32] * 4
    assert "at most 128 are allowed for a pod" in short(world.allocate(*claims)).message


def test_thousands_of_full_devices_and_impossible_requests_are_decided_quickly() -> None:
    """Of devices between which a claim sees no difference only one is tried in each place."""
    devices = [device(f"d{place}", uuid=str(place)) for place in range(100)]
    world = DeviceWorld(make_slice("s", devices))
    claims = [make_claim(request(count=20), name=str(place)) for place in range(6)]
    budget = StepBudget(20_000)
    search = world.allocator.prepare([claim.spec for claim in claims])
    answer = search.answer(Node("a"), DevicesInUse(), budget)
    assert isinstance(answer, DeviceShortage)
    assert not answer.is_error
