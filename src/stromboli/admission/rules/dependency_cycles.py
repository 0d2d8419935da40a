"""Who waits for whom: circles among names that depend on one another."""

from collections.abc import Iterable, Mapping


def circle(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """Names that wait for each other in a circle, or nothing. Unknown names wait for nobody."""
    done: set[str] = set()
    for start in needs:
        found = _circle_from(start, needs, done)
        if found:
            return found
    return []


def _circle_from(start: str, needs: Mapping[str, Iterable[str]], done: set[str]) -> list[str]:
    """Depth first without recursion: the graph is as deep as somebody likes."""
    path: list[str] = []
    on_path: set[str] = set()
    todo = [(start, False)]
    while todo:
        name, left = todo.pop()
        if left:
            path.pop()
            on_path.discard(name)
            done.add(name)
        elif name in on_path:
            return path[path.index(name) :]
        elif name not in done and name in needs:
            path.append(name)
            on_path.add(name)
            todo.append((name, True))
            todo += [(other, False) for other in needs[name]]
    return []
