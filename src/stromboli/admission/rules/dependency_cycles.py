"""Cycles among names that depend on one another."""

from collections.abc import Iterable, Mapping


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
