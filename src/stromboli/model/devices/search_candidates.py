"""The devices that a search chooses from, and their state during the search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from stromboli.model.devices.claim_shape import ClaimShape
    from stromboli.model.devices.devices_in_use import DevicesInUse
    from stromboli.model.devices.pools.node_pools import NodePool
    from stromboli.model.devices.pools.pool_devices import Amount, PoolDevice


class Candidate:
    """A device, and its state during a search."""

    __slots__ = (
        "claims",
        "consumed",
        "content",
        "device",
        "in_use",
        "is_reachable",
        "is_shared",
        "kind",
        "pool",
        "shares",
        "used",
    )

    def __init__(self, device: PoolDevice, pool: CandidatePool, kind: int, is_reachable: bool) -> None:
        self.device, self.content, self.pool, self.kind = device, device.content, pool, kind
        self.is_reachable = is_reachable
        self.is_shared = device.content.device.allow_multiple_allocations
        use = pool.use
        shares = use.shared.get(device.name) if use is not None else None
        self.in_use = use is not None and device.name in use.whole
        if shares is not None and not self.is_shared:
            self.in_use = True  # it was shareable when it was allocated
        self.used = shares.consumed if shares is not None else {}
        """What other claims consume of it."""
        self.claims: list[int] = []
        """The claims that it was chosen for."""
        self.shares = 0
        self.consumed: dict[str, int] = {}
        """What these claims consume of it."""

    @property
    def counts(self) -> bool:
        """Whether it takes from counters: a device that is shared does so once."""
        return bool(self.content.counters) and not (self.is_shared and (self.used or self.shares))

    def take(self, claim: int, consumed: Mapping[str, Amount]) -> None:
        """Give the device to a claim."""
        for name, taken in consumed.items():
            self.consumed[name] = self.consumed.get(name, 0) + taken.value
        if self.is_shared:
            self.shares += 1
        else:
            self.claims.append(claim)

    def give_back(self, claim: int, consumed: Mapping[str, Amount]) -> None:
        """Undo `take`."""
        for name, taken in consumed.items():
            self.consumed[name] -= taken.value
        if self.is_shared:
            self.shares -= 1
        else:
            self.claims.remove(claim)

    @property
    def state(self) -> object:
        """A key that is equal for interchangeable devices of the same kind."""
        state = (self.pool.place, self.kind, self.in_use, tuple(self.claims))
        if not self.is_shared:
            return state
        consumed = tuple(sorted(self.consumed.items()))
        return (*state, tuple(sorted(self.used.items())), consumed, self.shares)


class CandidatePool:
    """A pool with what is left of its counters."""

    def __init__(self, place: int, pool: NodePool, in_use: DevicesInUse) -> None:
        self.place = place
        self.use = in_use.of(pool.id)
        self.counters = dict(pool.counters)
        if self.use is not None:
            for device in pool.consumers:
                if self.use.holds(device.name):
                    self.consume(device, 1)

    def consume(self, device: PoolDevice, sign: int) -> None:
        for counter, value in device.content.counters:
            self.counters[counter] = self.counters.get(counter, 0) - sign * value

    def exhausted(self) -> str | None:
        """A counter whose consumption exceeds its value."""
        return next(("/".join(counter) for counter, left in self.counters.items() if left < 0), None)


def usable_devices(pools: Sequence[NodePool]) -> list[PoolDevice]:
    """The devices of a node in the order in which they are tried."""
    return [device for pool in pools if pool.is_usable for device in pool.devices]


class Candidates(Sequence[Candidate]):
    """The devices of a node in order, each evaluated on access."""

    def __init__(self, shape: ClaimShape, pools: Sequence[NodePool], in_use: DevicesInUse) -> None:
        self._shape = shape
        self._pools: list[tuple[int, NodePool, CandidatePool]] = []
        """With the place of their first device."""
        count = 0
        for place, pool in enumerate(pools):
            if pool.is_usable and pool.devices:
                self._pools.append((count, pool, CandidatePool(place, pool, in_use)))
                count += len(pool.devices)
        self._known: list[Candidate | None] = [None] * count

    def __len__(self) -> int:
        return len(self._known)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Candidate]: ...

    def __getitem__(self, place: int | slice) -> Candidate | Sequence[Candidate]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        candidate = self._known[place]
        if candidate is None:
            candidate = self._known[place] = self._look_at(place)
        return candidate

    def _look_at(self, place: int) -> Candidate:
        first, pool, state = self._pools[bisect_right(self._pools, place, key=itemgetter(0)) - 1]
        at = place - first
        device = pool.devices[at]
        is_reachable = pool.reachable is None or pool.reachable[at]
        return Candidate(device, state, self._shape.kind(device.content), is_reachable)
