"""Choose CPUs: whole sockets, then whole cores, then single CPUs, in Volcano's orders with its quirks (spec 04 7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial

from stromboli.model.cpus.cpu_topology import CpuTopology, cpu_numbers

SORTED_BY_INSERTION = 12
"""Up to so many elements Go sorts by insertion, which decides where a comparison is no order."""


def take_cpus(topology: CpuTopology, available: int, needed: int) -> int | None:
    """Some of the available CPUs, possibly a few more than requested; none if there are not enough."""
    if needed < 1:
        return 0
    picking = _Picking(topology, available & topology.cpus, needed)
    return picking.result if picking.succeeds() else None


@lru_cache(maxsize=1024)
def reserved_cpus(topology: CpuTopology, reserved: int) -> int:
    """The CPUs that a node reserves for the system."""
    return take_cpus(topology, topology.cpus, reserved) or 0


class _Picking:
    """The state of one choice."""

    def __init__(self, topology: CpuTopology, free: int, needed: int):
        self._topology = topology
        self._free = free
        self._needed = needed
        self.result = 0

    def succeeds(self) -> bool:
        if self._needed > self._free.bit_count():
            return False
        topology = self._topology
        return (
            self._take_all(self._free_sockets(), topology.sockets, topology.cpus_per_socket)
            or self._take_all(self._free_cores(), topology.cores, topology.cpus_per_core)
            or self._take_single()
        )

    def _take_all(self, numbers: Iterable[int], sets: dict[int, int], size: int) -> bool:
        """Take whole sockets or cores while at least one whole one is needed; whether nothing more is needed."""
        for number in numbers if self._needed >= size else ():
            self._take(self._free & sets[number])
            if self._needed < size or self._needed < 1:
                break
        return self._needed < 1

    def _take_single(self) -> bool:
        for core in self._cores_of_single_cpus():
            for cpu in cpu_numbers(self._free & self._topology.cores[core]):
                self._take(1 << cpu)
                if self._needed < 1:
                    return True
        return False

    def _take(self, cpus: int) -> None:
        self.result |= cpus
        self._free &= ~cpus
        self._needed -= cpus.bit_count()

    def _is_free(self, number: int) -> bool:
        """# quirk: spec 04 7: a socket or core counts as free if the CPU of the same number is."""
        return self._free >> number & 1 == 1

    def _free_sockets(self) -> list[int]:
        sockets = self._topology.sockets
        return [socket for socket, cpus in sockets.items() if cpus & self._free and self._is_free(socket)]

    def _free_cores(self) -> list[int]:
        topology, free_cores = self._topology, dict[int, list[int]]()
        for socket, cores in topology.socket_cores.items():
            present = topology.sockets[socket] & self._free
            if present:
                free_cores[socket] = [
                    core for core in cores if topology.cores[core] & present and self._is_free(core)
                ]
        keys = {socket: (len(cores), socket) for socket, cores in free_cores.items()}
        return [core for socket in _sorted(list(free_cores), keys) for core in free_cores[socket]]

    def _cores_of_single_cpus(self) -> list[int]:
        """Cores on sockets of which CPUs were taken first, then those on fuller sockets, then fuller cores."""
        topology = self._topology
        taken = {socket: (cpus & self.result).bit_count() for socket, cpus in topology.sockets.items()}
        free = {socket: (cpus & self._free).bit_count() for socket, cpus in topology.sockets.items()}
        keys: dict[int, tuple[int, ...]] = {}
        for core, cpus in topology.cores.items():
            if cpus & self._free:
                socket = topology.core_socket[core]
                keys[core] = (-taken[socket], free[socket], (cpus & self._free).bit_count(), socket, core)
        return _sorted(list(keys), keys)


def _sorted(numbers: list[int], keys: Mapping[int, tuple[int, ...]]) -> list[int]:
    """By insertion with a comparison that holds if any part of the key is smaller; long lists by the whole key.

    # quirk: spec 04 7: that comparison is no order.
    """
    if len(numbers) > SORTED_BY_INSERTION:
        return sorted(numbers, key=keys.__getitem__)
    comes_before: Callable[[int, int], bool] = partial(_any_smaller, keys)
    for end in range(1, len(numbers)):
        place = end
        while place > 0 and comes_before(numbers[place], numbers[place - 1]):
            numbers[place], numbers[place - 1] = numbers[place - 1], numbers[place]
            place -= 1
    return numbers


def _any_smaller(keys: Mapping[int, tuple[int, ...]], left: int, right: int) -> bool:
    return any(a < b for a, b in zip(keys[left], keys[right], strict=True))
