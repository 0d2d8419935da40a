"""The devices that a search chooses from, and what happens to them during the search."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stromboli.model.devices.devices_in_use import DevicesInUse
    from stromboli.model.devices.pools.node_pools import NodePool
    from stromboli.model.devices.pools.pool_devices import PoolDevice


class Candidate:
    """A device, and what happens to it during a search."""

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
        self.in_use = use is not None and device.name in use.whole
        shares = use.shared.get(device.name) if use is not None else None
        self.used = shares.consumed if shares is not None else {}
        """What others consume of it."""
        self.claims: list[int] = []
        """The claims that it was chosen for."""
        self.shares = 0
        self.consumed: dict[str, int] = {}
        """What these claims consume of it."""

    @property
    def state(self) -> object:
        """Equal for devices of the same kind that are worth the same."""
        if not self.is_shared:
            return (self.pool.place, self.kind)
        consumed = tuple(sorted(self.consumed.items()))
        return (self.pool.place, self.kind, tuple(sorted(self.used.items())), consumed, self.shares)


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
        """A counter of which more is taken than there is."""
        return next(("/".join(counter) for counter, left in self.counters.items() if left < 0), None)
