"""Cycles among names that depend on one another."""

from collections.abc import Callable, Iterable, Mapping, Sequence

MAX_NAMES_SHOWN = 8
"""Names of a cycle that a message shows."""


def find_cycle(dependencies: Mapping[str, Iterable[str]]) -> list[str]:
    """The names on one cycle, in order, or nothing. Unknown names depend on nothing."""
    done: set[str] = set()
    for start in dependencies:
        if cycle := _cycle_from(start, dependencies, done):
            return cycle
    return []


def _cycle_from(start: str, dependencies: Mapping[str, Iterable[str]], done: set[str]) -> list[str]:
    """Depth first, without recursion because users decide how deep the graph is."""
    path: list[str] = []
    on_path: set[str] = set()
    stack = [(start, False)]
    while stack:
        name, visited = stack.pop()
        if visited:
            path.pop()
            on_path.discard(name)
            done.add(name)
        elif name in on_path:
            return path[path.index(name) :]
        elif name not in done and name in dependencies:
            path.append(name)
            on_path.add(name)
            stack.append((name, True))
            stack += [(other, False) for other in dependencies[name]]
    return []


def cycle_above(name: str, parent_of: Callable[[str], str | None]) -> list[str]:
    """The names on the cycle that following parents from a name leads to, in order, or nothing."""
    path: dict[str, None] = {}
    current: str | None = name
    while current is not None and current not in path:
        path[current] = None
        current = parent_of(current)
    members = list(path)
    return members[members.index(current) :] if current is not None else []


def format_cycle(members: Sequence[str], start: int = 0) -> str:
    """`a -> b -> a`, from one of its members on; of a long cycle a few names."""
    count = len(members)
    shown = [members[(start + step) % count] for step in range(min(count, MAX_NAMES_SHOWN))]
    more = [f"{count - len(shown)} more"] if count > len(shown) else []
    return " -> ".join([*shown, *more, members[start]])
