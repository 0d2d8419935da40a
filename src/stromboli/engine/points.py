"""How the answers of several plugins to one question combine: each rule once (spec 01 9, 02 0.5).

A combining rule takes the methods that answer, tier by tier, and returns the one function that the engine calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

Method = Callable[..., Any]
Tiers = Sequence[Sequence[Method]]
Combine = Callable[[Tiers], Method]
F = TypeVar("F", bound=Method)


class Vote(IntEnum):
    """An answer that may also be none."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Point(NamedTuple):
    """An extension point: its name, how answers combine, and the configuration keys that switch it off."""

    name: str
    combine: Combine
    switches: tuple[str, ...]


def point(combine: Combine, *switches: str) -> Callable[[F], F]:
    """Declare a method as an extension point. With several switches, any one of them lets it take part."""

    def declare(method: F) -> F:
        method.__point__ = Point(method.__name__, combine, switches)  # type: ignore[attr-defined]
        return method

    return declare


def depends(on: str) -> Callable[[F], F]:
    """Say what an order's key depends on: "item" (the default) or "everything"."""

    def mark(method: F) -> F:
        method.__depends__ = on  # type: ignore[attr-defined]
        return method

    return mark


def depends_on_everything(methods: Iterable[Method]) -> bool:
    return any(getattr(method, "__depends__", "item") == "everything" for method in methods)


def _flat(tiers: Tiers) -> list[Method]:
    return [method for tier in tiers for method in tier]


def sort_keys(tiers: Tiers) -> Method:
    """Orders: the keys of all plugins one after the other, so the first that differs decides."""
    methods = _flat(tiers)
    if len(methods) == 1:
        only = methods[0]
        return lambda item: (only(item),)
    return lambda item: tuple([method(item) for method in methods])


def first_nonzero(tiers: Tiers) -> Method:
    """Comparisons: the first that is not zero decides."""
    methods = _flat(tiers)

    def compare(*items: Any) -> int:
        return next((answer for method in methods if (answer := method(*items))), 0)

    return compare


def every(tiers: Tiers) -> Method:
    """All must agree; true when nobody is asked."""
    methods = _flat(tiers)
    if not methods:
        return lambda *_: True
    if len(methods) == 1:
        return methods[0]

    def agreed(*items: Any) -> bool:
        return all(method(*items) for method in methods)

    return agreed


def some(tiers: Tiers) -> Method:
    """One is enough; false when nobody is asked."""
    methods = _flat(tiers)
    return lambda *items: any(method(*items) for method in methods)


def vote(tiers: Tiers) -> Method:
    """Any reject decides at once; after a tier with a permit, permitted; nothing but abstentions, permitted."""

    def decide(*items: Any) -> bool:
        for tier in tiers:
            permitted = False
            for method in tier:
                answer = method(*items)
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    return decide


def every_of_first_tier(tiers: Tiers) -> Method:
    """The first tier in which anybody answers must agree; false when nobody is asked."""
    first = next((list(tier) for tier in tiers if tier), None)
    if first is None:
        return lambda *_: False
    return lambda *items: all(method(*items) for method in first)


def first_answer(tiers: Tiers) -> Method:
    """The first answer that is not none."""
    methods = _flat(tiers)

    def ask(*items: Any) -> Any:
        for method in methods:
            if (answer := method(*items)) is not None:
                return answer
        return None

    return ask


def notify(tiers: Tiers) -> Method:
    """Everybody is told; nobody answers."""
    methods = _flat(tiers)

    def spread(*items: Any) -> None:
        for method in methods:
            method(*items)

    return spread


def gather(tiers: Tiers) -> Method:
    """Everybody's list, one after the other."""
    methods = _flat(tiers)
    return lambda *items: [answer for method in methods for answer in method(*items)]


def narrow(tiers: Tiers) -> Method:
    """Each leaves some of what the one before it left."""
    methods = _flat(tiers)

    def leave(items: list[Any]) -> list[Any]:
        for method in methods:
            items = method(items)
        return items

    return leave


class Choice(NamedTuple):
    """Victims, and who chose them: the number of the tier (from 1) and its plugins that had a say."""

    victims: list[Any]
    tier: int = 0
    plugins: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """As a user reads it: `tier 1 (priority, conformance)`."""
        return f"tier {self.tier} ({', '.join(self.plugins)})" if self.tier else ""


def tier_intersection(tiers: Tiers) -> Method:
    """Victims: none abstains; within a tier only what all name; the first tier that names any decides (spec 02 D4)."""

    def choose(who: Any, candidates: list[Any], *more: Any) -> Choice:
        for number, tier in enumerate(tiers, 1):
            chosen: list[Any] | None = None
            voters: list[str] = []
            for method in tier:
                answer = method(who, candidates, *more)
                if answer is None:
                    continue
                voters.append(getattr(getattr(method, "__self__", None), "name", ""))
                named = set(answer)
                chosen = list(answer) if chosen is None else [one for one in chosen if one in named]
                if not chosen:
                    break
            if chosen:
                return Choice(chosen, number, tuple(voters))
        return Choice([])

    return choose


def union_of_first_tier(tiers: Tiers) -> Method:
    """Victims by vote: what any of a tier names, with who named it; the first tier that names any decides."""

    def choose(*items: Any) -> dict[Any, str]:
        for number, tier in enumerate(tiers, 1):
            named: dict[Any, dict[str, None]] = {}
            for method in tier:
                plugin = getattr(getattr(method, "__self__", None), "name", "")
                for one in method(*items):
                    named.setdefault(one, {})[plugin] = None
            if named:
                return {one: Choice([one], number, tuple(plugins)).by for one, plugins in named.items()}
        return {}

    return choose
