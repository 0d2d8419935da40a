"""An allocator that tries everything and counts everything anew, as an oracle for small worlds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from stromboli.api.resources.quantity import whole
from tests.model.devices.random_worlds import SELECTORS, RandomWorld

MOST = 32
GIB = 2**30


class ConstraintViolated(Exception):
    """By a request for all devices, which is an error."""


class Chosen(NamedTuple):
    claim: int
    request: str
    option: str
    asked: dict[str, Any]
    device: int


def naive_allocation(world: RandomWorld, used: set[str]) -> list[list[str]] | None:
    """`request=device` by claim, for the first solution in order; None if there is none, or if it is an error."""
    claims = [msgspec.to_builtins(claim.spec.devices) for claim in world.claims]
    counters = {
        name: int(counter.value)
        for slice in world.slices
        for each in slice.spec.shared_counters
        for name, counter in each.counters.items()
    }
    try:
        solution = next(_Naive(world.devices, counters, claims, used).claim(0, []), None)
    except ConstraintViolated:
        return None
    if solution is None:
        return None
    results: list[list[str]] = [[] for _ in claims]
    for each in solution:
        request = f"{each.request}/{each.option}" if each.option else each.request
        results[each.claim].append(f"{request}={world.devices[each.device]['name']}")
    return results


class _Naive:
    def __init__(
        self, devices: list[dict[str, Any]], counters: dict[str, int], claims: list[Any], used: set[str]
    ) -> None:
        self.devices, self.counters, self.claims, self.used = devices, counters, claims, used

    def claim(self, place: int, chosen: list[Chosen]) -> Iterator[list[Chosen]]:
        if place == len(self.claims):
            yield chosen
            return
        yield from self.request(place, 0, chosen)

    def request(self, claim: int, place: int, chosen: list[Chosen]) -> Iterator[list[Chosen]]:
        requests = self.claims[claim]["requests"]
        if place == len(requests):
            yield from self.claim(claim + 1, chosen)
            return
        asked = requests[place]
        options = asked.get("firstAvailable") or [{"name": "", **asked["exactly"]}]
        for option in options:
            for more in self.devices_for(claim, asked["name"], option, chosen):
                yield from self.request(claim, place + 1, more)

    def devices_for(
        self, claim: int, request: str, option: dict[str, Any], chosen: list[Chosen]
    ) -> Iterator[list[Chosen]]:
        """All ways to serve an option: increasing combinations of devices, each step allowed by itself."""
        matching = [
            place
            for place, device in enumerate(self.devices)
            if all(
                SELECTORS[each["cel"]["expression"]]({"capacity": {}, **device})
                for each in option.get("selectors", ())
            )
        ]
        if option.get("allocationMode") == "All":
            wanted = [place for place in matching if self._consumed(option, place) is not None]
            more = chosen
            for place in wanted:
                more = [*more, Chosen(claim, request, option.get("name", ""), option, place)]
                if not self.allowed(more):
                    if self._available(more) and not self._all_constraints_hold(more):
                        raise ConstraintViolated
                    return
            if wanted:
                yield more
            return
        yield from self._combinations(claim, request, option, chosen, matching, option.get("count", 1) or 1)

    def _combinations(
        self,
        claim: int,
        request: str,
        option: dict[str, Any],
        chosen: list[Chosen],
        places: list[int],
        count: int,
    ) -> Iterator[list[Chosen]]:
        if count == 0:
            yield chosen
            return
        for at, place in enumerate(places):
            more = [*chosen, Chosen(claim, request, option.get("name", ""), option, place)]
            if self.allowed(more):
                yield from self._combinations(claim, request, option, more, places[at + 1 :], count - 1)

    # -- is it allowed?

    def allowed(self, chosen: list[Chosen]) -> bool:
        return (
            self._available(chosen) and self._capacity_suffices(chosen) and self._all_constraints_hold(chosen)
        )

    def _all_constraints_hold(self, chosen: list[Chosen]) -> bool:
        return all(self._constraints_hold(claim, chosen) for claim in range(len(self.claims)))

    def _available(self, chosen: list[Chosen]) -> bool:
        return (
            all(self._tolerated(each) for each in chosen)
            and self._whole_devices_once(chosen)
            and self._counters_suffice(chosen)
        )

    def _tolerated(self, each: Chosen) -> bool:
        taints = self.devices[each.device].get("taints", ())
        return bool(each.asked.get("tolerations")) or all(taint["effect"] == "None" for taint in taints)

    def _is_shared(self, place: int) -> bool:
        return bool(self.devices[place].get("allowMultipleAllocations"))

    def _whole_devices_once(self, chosen: list[Chosen]) -> bool:
        taken = [each.device for each in chosen if not self._is_shared(each.device)]
        in_use = any(self.devices[each.device]["name"] in self.used for each in chosen)
        return len(taken) == len(set(taken)) and not in_use

    def _consumed(self, asked: dict[str, Any], place: int) -> int | None:
        """Bytes of memory that a choice consumes; None if it cannot have as much."""
        memory = self.devices[place].get("capacity", {}).get("memory")
        requested = (asked.get("capacity") or {}).get("requests", {}).get("memory")
        if memory is None:
            return 0 if requested is None else None
        total, policy = whole(memory["value"]), memory.get("requestPolicy")
        if requested is None:
            amount = total if policy is None else whole(policy["default"])
        else:
            amount = whole(requested) if policy is None else max(GIB, -(-whole(requested) // GIB) * GIB)
        return amount if amount <= total else None

    def _capacity_suffices(self, chosen: list[Chosen]) -> bool:
        amounts: dict[int, int] = {}
        for each in chosen:
            consumed = self._consumed(each.asked, each.device)
            if consumed is None:
                return False
            if self._is_shared(each.device):
                amounts[each.device] = amounts.get(each.device, 0) + consumed
        return all(
            amount <= whole(self.devices[place].get("capacity", {}).get("memory", {"value": 0})["value"])
            for place, amount in amounts.items()
        )

    def _counters_suffice(self, chosen: list[Chosen]) -> bool:
        left = dict(self.counters)
        names = {self.devices[each.device]["name"] for each in chosen} | self.used
        consumers = [device for device in self.devices if device["name"] in names]
        for device in consumers:
            for consumption in device.get("consumesCounters", ()):
                for name, counter in consumption["counters"].items():
                    left[name] -= int(counter["value"])
        touched = any(self.devices[each.device].get("consumesCounters") for each in chosen)
        return not touched or all(amount >= 0 for amount in left.values())

    def _constraints_hold(self, claim: int, chosen: list[Chosen]) -> bool:
        for constraint in self.claims[claim].get("constraints", ()):
            match = constraint.get("matchAttribute")
            attribute = (match or constraint["distinctAttribute"]).partition("/")[2]
            names = constraint.get("requests", ())
            values = [
                str(self.devices[each.device]["attributes"][attribute])
                for each in chosen
                if each.claim == claim and (not names or each.request in names)
            ]
            if len(set(values)) > 1 if match else len(set(values)) < len(values):
                return False
        return True
