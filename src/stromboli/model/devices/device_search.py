"""The search for devices on a node: the first full solution, depth first, as Kubernetes finds it (spec 04 2.12).

Claims, requests and devices are tried in order, each request with combinations of devices in increasing order. Only
attempts that cannot change the outcome are skipped: if a device led to no solution, no other of the same kind in the
same state is tried in its place, since exchanging the two would turn a solution with one into one with the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.model.devices.claim_plan import (
    FEWER_IN_CLAIM,
    FEWER_IN_POD,
    MAX_DEVICES,
    MAX_RESULTS,
    DeviceShortage,
    Lack,
    Option,
    Rejection,
    SearchStopped,
    unserved,
)
from stromboli.model.devices.claim_shape import ConstraintState
from stromboli.model.devices.device_selection import DeviceChoice, Solution, StepBudget
from stromboli.model.devices.pools.pool_devices import consumption, lacking
from stromboli.model.devices.search_candidates import Candidate, Candidates

if TYPE_CHECKING:
    from stromboli.model.devices.claim_shape import ClaimShape
    from stromboli.model.devices.devices_in_use import DevicesInUse
    from stromboli.model.devices.pools.node_pools import NodePool

_DONE, _FAILED, _TOO_MANY = range(3)
"""`_TOO_MANY`: no choice of devices helps, only an alternative that needs fewer of them."""
SKIPPED_IN_STEP = 8
"""Devices that can be skipped, because equal ones failed, in the time of a step."""
_Refusal = tuple[Lack, str]
_IN_USE: _Refusal = (Lack.IN_USE, "")


class DeviceSearch:
    """One search: claims on a node."""

    def __init__(
        self, shape: ClaimShape, pools: Sequence[NodePool], in_use: DevicesInUse, budget: StepBudget
    ) -> None:
        self._shape = shape
        self._claims = shape.claims
        self._pools = pools
        self._budget = budget
        self._candidates = Candidates(shape, pools, in_use)
        self._constraints = [
            [ConstraintState(constraint) for constraint in claim.constraints] for claim in self._claims
        ]
        self._all: dict[int, list[int]] = {}
        """The devices of options that take all."""
        self._selected: dict[tuple[int, int], _Refusal | None] = {}
        self._choices: list[list[DeviceChoice]] = [[] for _ in self._claims]
        self._alternatives: dict[tuple[int, int], Option] = {}
        """The chosen options, by claim and request."""
        self._deepest: tuple[int, int, int] = (-1, -1, -1)
        self._shortage = DeviceShortage(
            f"no choice of alternatives needs at most {MAX_RESULTS} devices for a claim"
        )

    def run(self) -> Solution | DeviceShortage:
        try:
            self._check_sizes()
            if self._place(0, 0, None, 0, 0) == _DONE:
                return Solution(tuple(tuple(choices) for choices in self._choices), self._options())
        except SearchStopped as stopped:
            return stopped.shortage
        return self._shortage

    def _options(self) -> tuple[tuple[Option, ...], ...]:
        return tuple(
            tuple(
                self._alternatives.get((claim, place), request.options[0])
                for place, request in enumerate(plan.requests)
            )
            for claim, plan in enumerate(self._claims)
        )

    # -- before the search

    def _check_sizes(self) -> None:
        """Find the devices of options that take all, and whether there are too many."""
        total = 0
        for claim, plan in enumerate(self._claims):
            least = 0
            for request in plan.requests:
                counts = [self._count(claim, option) for option in request.options]
                least += min(counts)
                total += max((count for count in counts if count <= MAX_RESULTS), default=0)
            if least > MAX_RESULTS:
                message = f"number of requested devices {least} exceeds the claim limit of {MAX_RESULTS}"
                raise SearchStopped(DeviceShortage(message, True, claim, mistake=FEWER_IN_CLAIM))
        if total > MAX_DEVICES:
            message = f"the claims request up to {total} devices, at most {MAX_DEVICES} are allowed for a pod"
            raise SearchStopped(DeviceShortage(message, True, mistake=FEWER_IN_POD))

    def _count(self, claim: int, option: Option) -> int:
        if not option.takes_all:
            return option.asked.devices
        for pool in self._pools:
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else f"invalid: {pool.invalid}"
                message = f"asks for all devices, but resource pool {'/'.join(pool.id)} is {state}"
                raise self._stop(message, claim, option)
        places = self._all[option.place] = []
        for place, candidate in enumerate(self._candidates):
            self._spend(claim, option)
            if (
                self._selection(claim, option, place) is None
                and lacking(candidate.content.capacities, option.capacity, candidate.used) is None
            ):
                places.append(place)
        return len(places)

    # -- the search

    def _place(self, claim: int, request: int, option: Option | None, index: int, start: int) -> int:
        """Choose the devices that are still missing: from the `index`-th of an option on."""
        is_next_claim = False
        while True:
            if claim == len(self._claims):
                return _DONE
            plan = self._claims[claim]
            if request == len(plan.requests):
                claim, request, option, is_next_claim = claim + 1, 0, None, True
                continue
            if option is None and plan.requests[request].has_alternatives:
                result = self._first_available(claim, request)
                break
            if option is None:
                option, index, start = plan.requests[request].options[0], 0, 0
            count = len(self._all[option.place]) if option.takes_all else option.asked.devices
            if option.takes_all and not count:
                self._note(claim, request, 0, option, Counter())
                result = _FAILED
                break
            if index >= count:
                request, option = request + 1, None
                continue
            if len(self._choices[claim]) + count - index > MAX_RESULTS:
                result = _TOO_MANY
            elif option.takes_all:
                result = self._take_all(claim, request, option, index)
            else:
                result = self._take_next(claim, request, option, index, start)
            break
        return _FAILED if result == _TOO_MANY and is_next_claim else result

    def _first_available(self, claim: int, request: int) -> int:
        """Try the alternatives of a request in order."""
        result = _TOO_MANY
        for option in self._claims[claim].requests[request].options:
            outcome = self._place(claim, request, option, 0, 0)
            if outcome == _DONE:
                self._alternatives[claim, request] = option
                return _DONE
            if outcome == _FAILED:
                result = _FAILED
        return result

    def _take_all(self, claim: int, request: int, option: Option, index: int) -> int:
        """All devices of an option in order; if one is not available, there is no solution."""
        self._spend(claim, option)
        place = self._all[option.place][index]
        refusal = self._choose(claim, option, place)
        if refusal is not None:
            if refusal[0] is Lack.CONSTRAINT:
                name = self._candidates[place].device.name
                message = f"cannot add device {name} because {refusal[1]} would not be satisfied"
                raise self._stop(message, claim, option)
            self._note(claim, request, index, option, Counter([refusal]))
            return _FAILED
        result = self._place(claim, request, option, index + 1, 0)
        if result != _DONE:
            self._release(claim, place)
        return result

    def _take_next(self, claim: int, request: int, option: Option, index: int, start: int) -> int:
        """The first device from `start` on that leads to a solution."""
        refusals: Counter[_Refusal] = Counter()
        fruitless: set[object] = set()
        skipped = 0
        for place in range(start, len(self._candidates)):
            candidate = self._candidates[place]
            if fruitless and candidate.state in fruitless:
                skipped += 1
                if skipped % SKIPPED_IN_STEP == 0:
                    self._spend(claim, option)
                continue
            refusal = self._refusal(claim, option, place) or self._choose(claim, option, place)
            if refusal is not None:
                refusals[refusal] += 1
                continue
            result = self._place(claim, request, option, index + 1, place + 1)
            if result == _DONE:
                return _DONE
            self._release(claim, place)
            if result == _TOO_MANY:
                return _TOO_MANY
            fruitless.add(candidate.state)
        self._note(claim, request, index, option, refusals)
        return _FAILED

    def _refusal(self, claim: int, option: Option, place: int) -> _Refusal | None:
        """Why a device cannot serve an option, independent of other choices."""
        self._spend(claim, option)
        candidate = self._candidates[place]
        if self._is_taken(claim, option, candidate):
            return _IN_USE
        refusal = self._selection(claim, option, place)
        if refusal is not None:
            return refusal
        lack = lacking(candidate.content.capacities, option.capacity, candidate.used, candidate.consumed)
        return (Lack.CAPACITY, lack) if lack is not None else None

    def _spend(self, claim: int, option: Option) -> None:
        self._budget.spend()
        if self._budget.is_exceeded:
            message = (
                f"no devices found within {self._budget.limit} steps: "
                "request fewer devices at once, or select them more narrowly"
            )
            raise self._stop(message, claim, option)

    def _is_taken(self, claim: int, option: Option, candidate: Candidate) -> bool:
        if option.asked.admin_access:
            return claim in candidate.claims
        return candidate.in_use or bool(candidate.claims)

    def _selection(self, claim: int, option: Option, place: int) -> _Refusal | None:
        key = (option.place, place)
        if key not in self._selected:
            candidate = self._candidates[place]
            expression = self._shape.selects(claim, option, candidate.content, self._budget)
            refusal: _Refusal | None = (Lack.SELECTOR, expression) if expression is not None else None
            if refusal is None and not candidate.is_reachable:
                refusal = (Lack.NODE, "")
            self._selected[key] = refusal
        return self._selected[key]

    def _choose(self, claim: int, option: Option, place: int) -> _Refusal | None:
        """Choose a device for an option, or return why that is not possible."""
        candidate = self._candidates[place]
        content = candidate.content
        if self._is_taken(claim, option, candidate):
            return _IN_USE
        counts = candidate.counts
        if counts:
            candidate.pool.consume(candidate.device, 1)
        refusal = self._refusal_by_state(claim, option, candidate, counts)
        if refusal is not None:
            if counts:
                candidate.pool.consume(candidate.device, -1)
            return refusal
        consumed = consumption(content.capacities, option.capacity) if candidate.is_shared else {}
        candidate.take(claim, consumed)
        self._choices[claim].append(DeviceChoice(option, place, consumed))
        return None

    def _refusal_by_state(
        self, claim: int, option: Option, candidate: Candidate, counts: bool
    ) -> _Refusal | None:
        """Counters, taints and constraints, in this order; constraints that allow the device have counted it."""
        content = candidate.content
        if counts and (counter := candidate.pool.exhausted()) is not None:
            return (Lack.COUNTER, counter)
        for taint in content.taints:
            if not option.tolerates(taint):
                return (Lack.TAINT, f"{taint.key}={taint.value}:{taint.effect}")
        concerned = [each for each in self._constraints[claim] if each.concerns(option)]
        for place, constraint in enumerate(concerned):
            if not constraint.add(content):
                for added in concerned[:place]:
                    added.remove()
                return (Lack.CONSTRAINT, str(constraint))
        lack = lacking(content.capacities, option.capacity, candidate.used, candidate.consumed)
        if lack is None:
            return None
        for added in concerned:
            added.remove()
        return (Lack.CAPACITY, lack)

    def _release(self, claim: int, place: int) -> None:
        """Undo the choice of the last device."""
        candidate, choice = self._candidates[place], self._choices[claim].pop()
        candidate.give_back(claim, choice.consumed)
        for constraint in self._constraints[claim]:
            if constraint.concerns(choice.option):
                constraint.remove()
        if candidate.counts:
            candidate.pool.consume(candidate.device, -1)

    # -- explanation

    def _stop(self, problem: str, claim: int, option: Option) -> SearchStopped:
        message = f"request {option.name}: {problem}"
        return SearchStopped(
            DeviceShortage(message, True, claim, option.name, option.asked.device_class_name)
        )

    def _note(
        self, claim: int, request: int, index: int, option: Option, refusals: Counter[_Refusal]
    ) -> None:
        """Record why the request failed that the search got furthest with."""
        if (claim, request, index) <= self._deepest:
            return
        self._deepest = (claim, request, index)
        invalid = [pool for pool in self._pools if pool.invalid]
        rejections = tuple(Rejection(*refusal, count) for refusal, count in refusals.most_common())
        self._shortage = DeviceShortage(
            unserved(option, index, rejections, invalid),
            False,
            claim,
            option.name,
            option.asked.device_class_name,
            rejections,
            0 if option.takes_all else option.asked.devices,
            index,
        )
