"""Which HyperNode is the parent of which, and what is wrong with that: two parents, a loop, too many levels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from stromboli.model.topology.member_selection import Members

MAX_LEVELS = 32
"""Levels of HyperNodes above each other; networks have five or so."""
_SHOWN = 3


class ParentClaims:
    """Which HyperNodes list which others as members. A claim counts whatever else is wrong with who makes it."""

    def __init__(self) -> None:
        self._parents: dict[str, dict[str, None]] = {}
        """Who lists a HyperNode, by its name; it need not exist."""
        self._children: dict[str, tuple[str, ...]] = {}
        """What each HyperNode lists."""

    def set(self, name: str, members: Members | None) -> set[str]:
        """A HyperNode lists other children now, or is gone; all whose parents that may change."""
        old = self._children.pop(name, ())
        for child in old:
            del self._parents[child][name]
            if not self._parents[child]:
                del self._parents[child]
        new = members.children if members is not None else ()
        if members is not None:
            self._children[name] = new
            for child in new:
                self._parents.setdefault(child, {})[name] = None
        return {name, *old, *new}

    def claimants(self, name: str) -> Collection[str]:
        """All that list a HyperNode as a member."""
        return self._parents.get(name, {}).keys()

    def parent(self, name: str) -> str | None:
        """The parent of a HyperNode; none if nobody claims it, or more than one does."""
        claimants = self._parents.get(name, ())
        return next(iter(claimants)) if len(claimants) == 1 else None

    def unknown(self, name: str) -> list[str]:
        """Children of a HyperNode that do not exist."""
        return [child for child in self._children[name] if child not in self._children]

    def with_descendants(self, names: Iterable[str]) -> dict[str, None]:
        """These HyperNodes and all below them, as far as they exist."""
        seen: dict[str, None] = {}
        waiting = sorted(names)
        while waiting:
            name = waiting.pop()
            if name not in seen and name in self._children:
                seen[name] = None
                waiting += (child for child in self._children[name] if self.parent(child) == name)
        return seen

    def problems(self, names: Collection[str]) -> Mapping[str, str]:
        """What is wrong with these HyperNodes, by name; with each of them, all below it must be asked about too."""
        problems: dict[str, str] = {}
        levels: dict[str, int] = {}
        for name in names:
            if len(self.claimants(name)) > 1:
                problems[name] = _two_parents(sorted(self.claimants(name)))
            if name not in levels:
                path, loop = self._climb(name, levels)
                problems |= dict.fromkeys(loop, _loop(loop) if loop else "")
                levels |= dict.fromkeys(loop, 1)
                for step in reversed(path):
                    above = self.parent(step)
                    levels[step] = 1 if above is None else levels[above] + 1
        for name in names:
            if levels[name] > MAX_LEVELS:
                problems.setdefault(name, f"it lies below more than {MAX_LEVELS - 1} other HyperNodes")
        return problems

    def _climb(self, name: str, levels: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """A HyperNode and those above it up to one whose level is known, if any; and the loop that they end in."""
        path: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in levels:
            if step in path:
                steps = list(path)
                begin = steps.index(step)
                return steps[:begin], steps[begin:]
            path[step] = None
            step = self.parent(step)
        return list(path), []


def _two_parents(claimants: list[str]) -> str:
    return f"more than one HyperNode has it as a member: {shortened(claimants)}"


def _loop(loop: list[str]) -> str:
    """From the first by name downwards: a has the member b, which has the member a."""
    first = loop.index(min(loop))
    downwards = [*loop[first::-1], *loop[:first:-1]]
    return f"it is a member of itself: {shortened([*downwards, downwards[0]], ' > ')}"


def shortened(names: list[str], separator: str = ", ") -> str:
    """The first few of many names."""
    more = f"{separator}{len(names) - _SHOWN} more" if len(names) > _SHOWN + 1 else ""
    return separator.join(names[: _SHOWN if more else None]) + more
