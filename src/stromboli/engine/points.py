"""How the answers of several plugins to one question combine: each rule once (spec 01 9, 02 0.5).

A combining rule takes the methods that answer, tier by tier, and returns the one function that the engine calls. What a
method raises leaves with the name of its plugin and point, so that a failure is attributed to that plugin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from math import isnan
from types import GeneratorType
from typing import Any, NamedTuple, TypeVar

from stromboli.engine.attribution import Method, plugin_of, raise_attributed_to

Tiers = Sequence[Sequence[Method]]
Combine = Callable[[Tiers], Method]
F = TypeVar("F", bound=Method)


class Vote(IntEnum):
    """An answer of a plugin that may abstain; the rule `vote` combines them."""

    REJECT = -1
    """No, regardless of other plugins."""
    ABSTAIN = 0
    """Leave the decision to other plugins."""
    PERMIT = 1
    """Yes, unless another plugin of this tier rejects; later tiers are not called."""


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
    """Say what an order's key depends on: "item" (the default), "branch" or "everything".

    "branch" is for orders of queues: the key follows the queues below the same topmost queue, and no others.
    """

    def mark(method: F) -> F:
        method.__depends__ = on  # type: ignore[attr-defined]
        return method

    return mark


def in_turn(method: F) -> F:
    """Say that a vote on victims takes the candidates in turn.

    Whether it names a candidate then depends on those that it named before it, not on those that it passed over nor on
    those that follow; and whether it abstains, on none of them.
    """
    method.__in_turn__ = True  # type: ignore[attr-defined]
    return method


def votes_in_turn(method: Method) -> bool:
    """Whether a vote on victims says that it takes the candidates in turn."""
    return getattr(method, "__in_turn__", False)


def any_depends(methods: Iterable[Method], on: str) -> bool:
    """Whether the key of any of these orders depends on that."""
    return any(getattr(method, "__depends__", "item") == on for method in methods)


def attributed(method: Method) -> Method:
    """The method, noting its plugin on what it raises: for combining rules that plugins bring along."""

    @functools.wraps(method)
    def call(*items: Any) -> Any:
        return next(answers((method,), items))

    call.__self__ = method.__self__  # type: ignore[attr-defined]
    return call


def answers(methods: Iterable[Method], items: Sequence[Any], required: bool = False) -> Iterator[Any]:
    """Ask one method after the other, as far as answers are taken; an error is attributed to the plugin asked.

    Where an answer is `required`, None is an error.
    """
    for method in methods:
        try:
            answer = method(*items)
            if isinstance(answer, GeneratorType):
                answer = list(answer)  # a generator raises only when it is read
            if required:
                _check_answer(answer)
        except BaseException as error:
            raise_attributed_to(method, error)
        yield answer


def _flat(tiers: Tiers) -> list[Method]:
    return [method for tier in tiers for method in tier]


def sort_keys(tiers: Tiers) -> Method:
    """Orders: the keys of all plugins one after the other, so the first that differs decides."""
    methods = _flat(tiers)

    def keys(item: Any) -> tuple[Any, ...]:
        parts = []
        try:
            for method in methods:
                key = method(item)
                if key is None or (isinstance(key, float) and isnan(key)):
                    _check_answer(key)
                    raise ValueError(
                        "expected a sort key, got nan, which is neither smaller nor larger than any"
                    )
                parts.append(key)
        except BaseException as error:
            raise_attributed_to(method, error)
        return tuple(parts)

    return keys


def side_by_side(tiers: Tiers) -> Method:
    """What all plugins answer, as one value."""
    methods = _flat(tiers)

    def parts(item: Any) -> tuple[Any, ...]:
        answered = []
        try:
            for method in methods:
                answered.append(method(item))
        except BaseException as error:
            raise_attributed_to(method, error)
        return tuple(answered)

    return parts


def first_nonzero(tiers: Tiers) -> Method:
    """Comparisons: the first that is not zero decides."""
    methods = _flat(tiers)
    return lambda *items: next((answer for answer in answers(methods, items) if answer), 0)


def _check_answer(answer: Any) -> None:
    """Refuse None where a plugin must answer: a method without `return` is a mistake, not a refusal."""
    if answer is None:
        raise TypeError("it returned None where an answer is needed: is a return missing?")


def every(tiers: Tiers) -> Method:
    """All must agree; true without any plugin."""
    methods = _flat(tiers)

    def agreed(*items: Any) -> bool:
        try:
            for method in methods:
                answer = method(*items)
                if not answer:
                    _check_answer(answer)
                    return False
        except BaseException as error:
            raise_attributed_to(method, error)
        return True

    return agreed


def some(tiers: Tiers) -> Method:
    """One is enough; false without any plugin."""
    methods = _flat(tiers)
    return lambda *items: any(answers(methods, items, required=True))


def vote(tiers: Tiers) -> Method:
    """Any reject decides at once; after a tier with a permit, permitted; nothing but abstentions, permitted."""

    def decide(*items: Any) -> bool:
        for tier in tiers:
            permitted = False
            for answer in answers(tier, items, required=True):
                if answer < 0:
                    return False
                permitted = permitted or answer > 0
            if permitted:
                return True
        return True

    return decide


def every_of_first_tier(tiers: Tiers) -> Method:
    """The first tier with any plugin must agree; false without any."""
    first = next((tier for tier in tiers if tier), None)
    return every([first]) if first else lambda *_: False


def _no_answer(*items: Any) -> None:
    """The answer where no plugin takes part."""


def first_answer(tiers: Tiers) -> Method:
    """The first answer that is not none."""
    methods = _flat(tiers)
    if not methods:
        return _no_answer
    return lambda *items: next((answer for answer in answers(methods, items) if answer is not None), None)


def notify(tiers: Tiers) -> Method:
    """All are called; there are no answers."""
    methods = _flat(tiers)
    if not methods:
        return _no_answer

    def spread(*items: Any) -> None:
        for _ in answers(methods, items):
            pass

    return spread


def gather(tiers: Tiers) -> Method:
    """The lists of all plugins, one after the other."""
    methods = _flat(tiers)
    return lambda *items: [answer for listed in answers(methods, items, required=True) for answer in listed]


def sum_by_name(tiers: Tiers) -> Method:
    """Scores by name: those of all plugins are added; a missing score counts as 0."""
    methods = _flat(tiers)

    def total(*items: Any) -> dict[str, float]:
        sums: dict[str, float] = {}
        for scores in answers(methods, items, required=True):
            for name, score in scores.items():
                sums[name] = sums.get(name, 0.0) + score
        return sums

    return total


def narrow(tiers: Tiers) -> Method:
    """Each plugin filters the result of the one before it."""
    methods = _flat(tiers)

    def leave(items: list[Any]) -> list[Any]:
        for method in methods:
            items = next(answers((method,), (items,), required=True))
        return items

    return leave


ALL_TIERS = -1
"""The tier of a choice on which the plugins of all tiers agreed."""


class Choice(NamedTuple):
    """Victims and what chose them: the number of the tier (from 1) and its plugins that voted."""

    victims: list[Any]
    """The tasks that may be evicted, in the order of the first plugin's answer."""
    tier: int = 0
    """The number of the tier that decided, from 1; 0 if none did, -1 if all tiers agreed."""
    plugins: tuple[str, ...] = ()
    """The names of the plugins of that tier that voted."""

    @property
    def by(self) -> str:
        """The text for users: `tier 1 (priority, conformance)`."""
        if not self.tier or not self.plugins:
            return ""
        tier = "all tiers" if self.tier == ALL_TIERS else f"tier {self.tier}"
        return f"{tier} ({', '.join(self.plugins)})"


def tier_intersection(tiers: Tiers) -> Method:
    """Victims: None abstains; a tier selects what its votes share; the first that selects any decides (spec 02 D4)."""

    def choose(beneficiary: Any, candidates: list[Any], *more: Any) -> Choice:
        for number, tier in enumerate(tiers, 1):
            chosen: list[Any] | None = None
            voters: list[str] = []
            for method, answer in zip(tier, answers(tier, (beneficiary, candidates, *more)), strict=False):
                if answer is None:
                    continue
                voters.append(plugin_of(method))
                named = set(answer)
                chosen = list(answer) if chosen is None else [task for task in chosen if task in named]
                if not chosen:
                    break
            if chosen:
                return Choice(chosen, number, tuple(voters))
        return Choice([])

    return choose


def union_of_first_tier(tiers: Tiers) -> Method:
    """Victims by vote: what any plugin of a tier selects, with its name; the first tier that selects any decides."""

    def choose(*items: Any) -> dict[Any, str]:
        for number, tier in enumerate(tiers, 1):
            named: dict[Any, dict[str, None]] = {}
            for method, victims in zip(tier, answers(tier, items, required=True), strict=False):
                for task in victims:
                    named.setdefault(task, {})[plugin_of(method)] = None
            if named:
                return {task: Choice([task], number, tuple(plugins)).by for task, plugins in named.items()}
        return {}

    return choose
