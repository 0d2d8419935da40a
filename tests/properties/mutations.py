"""Mutations of any field of any object, found from the types of the structs: nothing here knows a kind.

A field is named by its path from the object down, such as `("spec", "containers", "resources", "requests")`. Its new
value is one that a field of the same name has elsewhere in the world, a word of the API, or random.
"""

from __future__ import annotations

import random
import types
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct, structs

from stromboli.api import names
from stromboli.api.types.meta import Object
from tests.manifests import EPOCH

Path = tuple[str, ...]
IDENTITY = (("metadata",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"))
"""Fields whose change makes another object of it."""
UNREAD = (("metadata", "resource_version"),)
DEEPEST = 9
WORDS = (
    *(
        "",
        "1",
        "2",
        "500m",
        "1Gi",
        "true",
        "no such thing",
        "cpu",
        "memory",
        "pods",
        names.HOSTNAME,
        names.ZONE,
    ),
    *("In", "NotIn", "Exists", "DoesNotExist", "Equal", "NoSchedule", "PreferNoSchedule", "NoExecute"),
    *("DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "True", "False", "Always", "windows"),
    *("Running", "Pending", "Succeeded", "Failed", "Bound", "Available", "Immediate", "All", "ExactCount"),
    *("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod", names.WAIT_FOR_FIRST_CONSUMER),
)
NUMBERS = (0, 1, 2, 3, 5, 80, 100, -1, 10**6)
QUANTITIES = ("0", "1", "2", "4", "500m", "1Gi", "8Gi", "100Gi")


def hints(kind: type[Struct]) -> dict[str, Any]:
    """The types of a struct's fields."""
    known = get_type_hints(kind, include_extras=True)
    return {name: known[name] for name in kind.__struct_fields__}


def fields_of(kind: type[Struct], deepest: int = DEEPEST) -> Iterator[Path]:
    """The paths of all fields of a struct, and of the structs in it."""
    for name, hint in hints(kind).items():
        yield (name,)
        for inner in _structs_in(hint) if deepest else ():
            yield from ((name, *path) for path in fields_of(inner, deepest - 1))


def mutable_fields(kind: type[Object]) -> list[Path]:
    """The fields of a kind that can change while the object stays the same."""
    return [path for path in dict.fromkeys(fields_of(kind)) if path not in (*IDENTITY, *UNREAD)]


def _structs_in(hint: Any) -> Iterator[type[Struct]]:
    """The structs that a value of this type is, or has as its items."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    elif get_origin(hint) is not Literal:
        for inner in get_args(hint):
            yield from _structs_in(inner)


class Mutator:
    """Draws values like those of a world."""

    def __init__(self, objects: Iterable[Object], chance: random.Random):
        self._chance = chance
        self._known: dict[str, list[Any]] = defaultdict(list)
        """Values by the name of their field."""
        self._texts: list[str] = list(WORDS)
        for obj in objects:
            self._collect("", obj)

    def _collect(self, name: str, value: Any) -> None:
        if isinstance(value, Struct):
            for field in value.__struct_fields__:
                self._collect(field, getattr(value, field))
        elif isinstance(value, dict):
            for key, inner in value.items():
                self._texts.append(key)
                self._collect(name, inner)
        elif isinstance(value, tuple):
            for inner in value:
                self._collect(name, inner)
        if isinstance(value, str):
            self._texts.append(value)
        if value not in (None, (), {}, ""):
            self._known[name].append(value)

    # -- mutations

    def mutated(self, obj: Object, path: Path) -> Object:
        """The object with another value in a field; structs on the way there are made where there are none."""
        return self._with(obj, type(obj), path)

    def depth(self, value: Any, path: Path) -> int:
        """How far an object has what a path leads through."""
        if not path:
            return 1 if value not in (None, (), {}, "") else 0
        if isinstance(value, tuple):
            return max((self.depth(item, path) for item in value), default=0)
        if isinstance(value, dict):
            return max((self.depth(item, path) for item in value.values()), default=0)
        return 1 + self.depth(getattr(value, path[0], None), path[1:]) if isinstance(value, Struct) else 0

    def _with(self, value: Any, hint: Any, path: Path) -> Any:
        if not path:
            return self._another(hint, value)
        if isinstance(value, tuple):
            item = _item_of(hint)
            items = list(value) or [self._value("", item, 2)]
            place = max(
                self._chance.sample(range(len(items)), len(items)),
                key=lambda place: self.depth(items[place], path),
            )
            items[place] = self._with(items[place], item, path)
            return tuple(items)
        if isinstance(value, dict):
            item = _item_of(hint)
            entries = dict(value) or {self._chance.choice(self._texts): self._value("", item, 2)}
            key = self._chance.choice(list(entries))
            return {**entries, key: self._with(entries[key], item, path)}
        if not isinstance(value, Struct):
            kinds = [kind for kind in _structs_in(hint) if path[0] in kind.__struct_fields__]
            value = self._value("", _container(hint) or kinds[0], 2)
            if not isinstance(value, Struct):
                return self._with(value, hint, path)
        kind = type(value)
        if path[0] not in kind.__struct_fields__:  # another member of a union
            [kind] = [each for each in _structs_in(hint) if path[0] in each.__struct_fields__]
            value = self._value("", kind, 2)
        field_hint, before = hints(kind)[path[0]], getattr(value, path[0])
        self._field = path[0]
        return structs.replace(value, **{path[0]: self._with(before, field_hint, path[1:])})

    def _another(self, hint: Any, before: Any) -> Any:
        """Another value of a type than this one, or this one with one part more, fewer or other."""
        for _ in range(20):
            if isinstance(before, tuple | dict) and before and self._chance.random() < 0.6:
                after = self._altered(hint, before)
            else:
                after = self._value(self._field, hint, 3)
            if after != before:
                return after
        return before

    def _altered(self, hint: Any, before: Any) -> Any:
        item, chance = _item_of(hint), self._chance
        if isinstance(before, dict):
            key = chance.choice(list(before))
            left = {each: value for each, value in before.items() if each != key}
            if chance.random() < 0.5:
                return left
            return {**before, key: self._value(self._field, item, 3)}
        place = chance.randrange(len(before))
        if chance.random() < 0.5:
            return before[:place] + before[place + 1 :]
        return (*before, self._value(self._field, item, 3))

    # -- values

    def _value(self, name: str, hint: Any, deepest: int) -> Any:
        """A value of a type for a field of this name."""
        chance = self._chance
        known = [value for value in self._known.get(name, ()) if _fits(value, hint)]
        if known and chance.random() < 0.6:
            return chance.choice(known)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._bounded(name, arguments[0], arguments[1:], deepest)
        if origin in (Union, types.UnionType):
            if set(arguments) >= {str, int, float}:
                return chance.choice((None, *QUANTITIES) if types.NoneType in arguments else QUANTITIES)
            return self._value(name, chance.choice(arguments), deepest)
        if origin is Literal:
            return chance.choice(arguments)
        if origin is tuple:
            count = chance.choice((0, 1, 1, 2)) if deepest else 0
            return tuple(self._value(name, arguments[0], deepest - 1) for _ in range(count))
        if origin is dict:
            count = chance.choice((0, 1, 1, 2)) if deepest else 0
            return {
                chance.choice(self._texts): self._value(name, arguments[1], deepest - 1) for _ in range(count)
            }
        return self._plain(hint, deepest)

    def _bounded(self, name: str, hint: Any, bounds: tuple[Any, ...], deepest: int) -> Any:
        value = self._value(name, hint, deepest)
        for bound in bounds:
            if isinstance(bound, Meta) and isinstance(value, int):
                value = max(value, bound.ge) if bound.ge is not None else value
                value = min(value, bound.le) if bound.le is not None else value
        return value

    def _plain(self, hint: Any, deepest: int) -> Any:
        chance = self._chance
        if hint is types.NoneType or hint is Any:
            return None
        if hint is bool:
            return chance.random() < 0.5
        if hint is int:
            return chance.choice(NUMBERS)
        if hint is str:
            return chance.choice(self._texts)
        if hint is datetime:
            return datetime.fromtimestamp(EPOCH + chance.randrange(2000), UTC)
        assert issubclass(hint, Struct), hint
        return self._struct(hint, deepest)

    def _struct(self, kind: type[Struct], deepest: int) -> Struct:
        """A struct with some of its fields set."""
        values = {}
        for field in structs.fields(kind):
            required = field.default is NODEFAULT and field.default_factory is NODEFAULT
            if required or (deepest > 0 and self._chance.random() < 0.5):
                values[field.name] = self._value(field.name, hints(kind)[field.name], deepest - 1)
        return kind(**values)


def _container(hint: Any) -> Any:
    """The tuple or dict that a type may be."""
    if get_origin(hint) in (tuple, dict):
        return hint
    if get_origin(hint) in (Union, types.UnionType, Annotated):
        return next((inner for each in get_args(hint) if (inner := _container(each)) is not None), None)
    return None


def _item_of(hint: Any) -> Any:
    container = _container(hint)
    arguments = get_args(container)
    return arguments[1] if get_origin(container) is dict else arguments[0]


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as its outermost type says."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, arguments[0])
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(_fits(item, arguments[1]) for item in value.values())
    return hint is not Any and type(value) is hint
