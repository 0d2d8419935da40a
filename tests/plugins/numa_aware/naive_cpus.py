"""Hints and CPUs as specified, over all sets of NUMA nodes and with plain sets (spec 04 7)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from stromboli.api.types.numa_topology import CpuDetail

Details = dict[int, CpuDetail]


def best_hint(policy: str, details: Details, free: set[int], request: int) -> tuple[set[int], bool]:
    """The NUMA nodes for a container, and whether they are preferred."""
    numa_nodes = sorted({detail.numa for detail in details.values()})
    least, hints = len(numa_nodes), []
    for size in range(1, len(numa_nodes) + 1):
        for chosen in combinations(numa_nodes, size):
            if sum(detail.numa in chosen for detail in details.values()) >= request:
                least = min(least, size)
            if sum(details.get(cpu, CpuDetail()).numa in chosen for cpu in free) >= request:
                hints.append(set(chosen))
    best, best_preferred = set(numa_nodes), False
    for hint in hints:
        preferred = len(hint) == least
        if policy == "single-numa-node" and not (preferred and len(hint) == 1):
            continue
        if preferred and not best_preferred:
            best, best_preferred = hint, True
        elif preferred == best_preferred and (len(hint), mask(hint)) < (len(best), mask(best)):
            best = hint
    return best, best_preferred


def mask(numbers: set[int]) -> int:
    return sum(1 << number for number in numbers)


def take(details: Details, available: set[int], needed: int) -> set[int] | None:
    """Whole sockets, whole cores, single CPUs; none if there are not enough."""
    free = available & details.keys()
    if needed < 1:
        return set()
    if needed > len(free):
        return None
    taken: set[int] = set()
    sockets = len({detail.socket for detail in details.values()})
    cores = len({(detail.socket, detail.core) for detail in details.values()})
    for kind, size, numbers in (
        ("socket", len(details) // sockets, _sockets),
        ("core", len(details) // cores, _cores),
        ("cpu", 1, _single),
    ):
        for number in numbers(details, free, taken) if len(taken) <= needed - size else []:
            taken |= {cpu for cpu in free - taken if _belongs(details, cpu, kind, number)}
            if len(taken) > needed - size:
                break
        if len(taken) >= needed:
            return taken
    return None


def _belongs(details: Details, cpu: int, kind: str, number: int) -> bool:
    return cpu == number if kind == "cpu" else getattr(details[cpu], kind) == number


def _sockets(details: Details, free: set[int], taken: set[int]) -> list[int]:
    return sorted({details[cpu].socket for cpu in free} & free)


def _cores(details: Details, free: set[int], taken: set[int]) -> list[int]:
    left = free - taken
    cores_of = {
        socket: sorted({details[cpu].core for cpu in left if details[cpu].socket == socket} & left)
        for socket in sorted({details[cpu].socket for cpu in left})
    }
    order = insertion_sort(list(cores_of), lambda a, b: len(cores_of[a]) < len(cores_of[b]) or a < b)
    return [core for socket in order for core in cores_of[socket]]


def _single(details: Details, free: set[int], taken: set[int]) -> list[int]:
    left = free - taken

    def rank(core: int) -> tuple[int, ...]:
        socket = details[min(cpu for cpu in details if details[cpu].core == core)].socket
        near = sum(details[cpu].socket == socket for cpu in taken)
        on_socket = sum(details[cpu].socket == socket for cpu in left)
        on_core = sum(details[cpu].core == core for cpu in left)
        return (-near, on_socket, on_core, socket, core)

    def before(a: int, b: int) -> bool:
        return any(x < y for x, y in zip(rank(a), rank(b), strict=True))

    order = insertion_sort(sorted({details[cpu].core for cpu in left}), before)
    return [cpu for core in order for cpu in sorted(left) if details[cpu].core == core]


def insertion_sort(numbers: list[int], before: Callable[[int, int], bool]) -> list[int]:
    for end in range(1, len(numbers)):
        place = end
        while place > 0 and before(numbers[place], numbers[place - 1]):
            numbers[place - 1 : place + 1] = [numbers[place], numbers[place - 1]]
            place -= 1
    return numbers
