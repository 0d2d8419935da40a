"""Typed arguments of plugins and actions: a frozen dataclass whose fields say key, default and meaning.

    @dataclass(frozen=True, slots=True)
    class Arguments:
        weight: int = arg("binpack.weight", 1, "How much the whole score counts; 0 switches it off.")
        resources: Mapping[str, int] = arg_prefix("binpack.resources.", 1, "Weight of one more resource.")

A wrong key or type is a problem with its line; a value that fails its check is a warning. Both keep the
default.
"""

import dataclasses
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from stromboli.api.errors import quoted
from stromboli.api.manifests.yaml_lines import Node, plain, without_lines
from stromboli.policy.argument_types import (
    SCALARS,
    WRONG,
    is_mapping,
    kind_of,
    members,
    type_name,
    understood,
)
from stromboli.policy.policy_problems import NOT_YET, Problem, Severity, suggestion

T = TypeVar("T")
Problems = list[Problem]
Check = Callable[[Any], str | None]
_KEY = "argument"


@dataclass(frozen=True, slots=True)
class Argument:
    """How one argument is written and what it means; an `open_ended` key goes on with a user's name."""

    key: str
    doc: str
    check: Check | None = None
    aliases: tuple[str, ...] = ()
    open_ended: bool = False
    not_yet: bool = False
    """Whether it works in Volcano and has no effect here yet."""
    field: str = ""
    type: Any = None
    default: Any = None

    @property
    def spelling(self) -> str:
        """The key as the documentation writes it."""
        return f"{self.key}<name>" if self.open_ended else self.key

    @property
    def type_name(self) -> str:
        """The type in users' words: of one value, where the key goes on with a name."""
        return type_name(typing.get_args(self.type)[1] if self.open_ended else self.type)


class ByName(dict[str, T]):
    """What the user gave for each name; asked for any other name, the default."""

    def __init__(self, default: T, given: Mapping[str, T] | None = None) -> None:
        super().__init__(given or {})
        self.default = default

    def __missing__(self, name: str) -> T:
        return self.default


def arg(
    key: str,
    default: Any,
    doc: str,
    *,
    check: Check | None = None,
    aliases: Iterable[str] = (),
    not_yet: bool = False,
) -> Any:
    """A field read from `key`. `check` returns what is wrong with a value, or None.

    With `not_yet` the value has no effect yet, and whoever gives one is told.
    """
    about = f"{doc} Not there yet: accepted with a warning, no effect." if not_yet else doc
    argument = Argument(key, about, check, tuple(aliases), not_yet=not_yet)
    return dataclasses.field(default=default, metadata={_KEY: argument})


def arg_prefix(prefix: str, default: Any, doc: str, *, check: Check | None = None) -> Any:
    """A `Mapping[str, T]` of every key that begins with `prefix`; a name that is missing has `default`."""
    argument = Argument(prefix, doc, check, open_ended=True)
    return dataclasses.field(default_factory=lambda: ByName(default), metadata={_KEY: argument})


def arg_map(
    key: str, default: Any, doc: str, *, check: Check | None = None, aliases: Iterable[str] = ()
) -> Any:
    """A nested mapping under `key`: a frozen dataclass, or a `Mapping` of names to values or dataclasses."""
    if not isinstance(default, Mapping):
        return arg(key, default, doc, check=check, aliases=aliases)
    kept = MappingProxyType(dict(default))
    argument = Argument(key, doc, check, tuple(aliases))
    return dataclasses.field(default_factory=lambda: kept, metadata={_KEY: argument})


def declared(cls: type) -> tuple[Argument, ...]:
    """The arguments that a class declares, in order; `TypeError` where the declaration itself is wrong."""
    return _declared(cls)


@lru_cache(256)
def _declared(cls: type) -> tuple[Argument, ...]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__qualname__} must be a dataclass whose fields are made with arg()")
    hints = typing.get_type_hints(cls)
    return tuple(_complete(cls, field, hints[field.name]) for field in dataclasses.fields(cls))


def _complete(cls: type, field: "dataclasses.Field[Any]", hint: Any) -> Argument:
    """The declaration, with what only the finished class knows: the field, its type and its default."""
    argument: Argument | None = field.metadata.get(_KEY)
    if argument is None:
        raise TypeError(f"{cls.__qualname__}.{field.name} must be made with arg(), arg_prefix() or arg_map()")
    if not understood(hint) or (argument.open_ended and not is_mapping(hint)):
        raise TypeError(f"{cls.__qualname__}.{field.name}: {hint} is no type that an argument can have")
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return replace(argument, field=field.name, type=hint, default=default)


def parse_arguments(cls: type[T], given: Node | Mapping[str, object]) -> tuple[T, Problems]:
    """The arguments in `given`, defaults where they are missing or wrong, and what is wrong."""
    problems: Problems = []
    node = given if isinstance(given, Node) else without_lines(dict(given))
    instance = _parse_dataclass(cls, node, "", problems)
    return (cls() if instance is WRONG else instance), problems


def _parse_dataclass(cls: type, node: Node, path: str, problems: Problems) -> Any:
    """One dataclass from one mapping; used again for the dataclasses nested in it."""
    if not isinstance(node.value, dict):
        return _wrong("a mapping", node, path or "arguments", problems)
    arguments = declared(cls)
    exact = {key for a in arguments if not a.open_ended for key in (a.key, *a.aliases)}
    others = {key: entry for key, entry in node.value.items() if key not in exact}
    given = {
        a.field: _parse_open_ended(a, others, path, problems)
        if a.open_ended
        else _parse_argument(a, node.value, path, problems)
        for a in arguments
    }
    problems += _unknown(arguments, others, path)
    try:
        return cls(**{field: value for field, value in given.items() if value is not WRONG})
    except ValueError as error:  # a __post_init__ says that arguments do not go together
        problems.append(Problem(node.line, f"{path or 'arguments'}: {error}"))
        return cls()


def _parse_argument(argument: Argument, given: dict[str, Node], path: str, problems: Problems) -> Any:
    """The value of one argument; `WRONG`, which keeps the default, if it is missing or not good."""
    key = next((key for key in (argument.key, *argument.aliases) if key in given), None)
    return WRONG if key is None else _checked(argument, argument.type, given[key], path + key, problems)


def _parse_open_ended(argument: Argument, given: dict[str, Node], path: str, problems: Problems) -> Any:
    """Every name that follows the prefix; a wrong value counts as the default."""
    default = argument.default.default
    value_type = typing.get_args(argument.type)[1]
    values = ByName(default)
    for key, node in given.items():
        if name := key.removeprefix(argument.key) if key.startswith(argument.key) else "":
            value = _checked(argument, value_type, node, path + key, problems)
            values[name] = default if value is WRONG else value
    return values


def _checked(argument: Argument, hint: Any, node: Node, path: str, problems: Problems) -> Any:
    """A value of the right type that also passes the check of its argument."""
    if argument.not_yet:
        problems.append(Problem(node.line, f"{path}: {NOT_YET}: no effect", Severity.WARNING))
    value = _decode(hint, node, path, problems)
    complaint = argument.check(value) if argument.check and value is not WRONG else None
    if complaint is None:
        return value
    message = f"{path}: {complaint}, got {kind_of(plain(node))}; the default is used"
    problems.append(Problem(node.line, message, Severity.WARNING))
    return WRONG


def _decode(hint: Any, node: Node, path: str, problems: Problems) -> Any:
    """The value of a node as its type wants it; a problem and `WRONG` if it is of another kind."""
    if hint in (Any, object):
        return plain(node)
    for member in members(hint):
        attempt: Problems = []
        value = _decode_one(member, node, path, attempt)
        if value is not WRONG:
            problems += attempt
            return value
    return _wrong(type_name(hint), node, path, problems)


def _decode_one(hint: Any, node: Node, path: str, problems: Problems) -> Any:
    """As `_decode` for one type of a union: `WRONG` without a word if the node is of another kind."""
    inner = typing.get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint][0](node.value)
    if typing.get_origin(hint) is Literal:
        return node.value if node.value in inner else WRONG
    if isinstance(hint, type) and is_dataclass(hint):
        return _parse_dataclass(hint, node, f"{path}.", problems) if isinstance(node.value, dict) else WRONG
    if is_mapping(hint):
        return _decode_mapping(inner[1], node, path, problems)
    return _decode_list(inner[0], node, path, problems)


def _decode_mapping(hint: Any, node: Node, path: str, problems: Problems) -> Any:
    if not isinstance(node.value, dict):
        return WRONG
    entries = {key: _decode(hint, entry, f"{path}.{key}", problems) for key, entry in node.value.items()}
    return MappingProxyType({key: value for key, value in entries.items() if value is not WRONG})


def _decode_list(hint: Any, node: Node, path: str, problems: Problems) -> Any:
    if not isinstance(node.value, list):
        return WRONG
    items = [_decode(hint, item, f"{path}[{index}]", problems) for index, item in enumerate(node.value)]
    return tuple(item for item in items if item is not WRONG)


def _wrong(wanted: str, node: Node, path: str, problems: Problems) -> Any:
    problems.append(Problem(node.line, f"{path}: needs {wanted}, got {kind_of(plain(node))}"))
    return WRONG


def _unknown(arguments: Iterable[Argument], given: dict[str, Node], path: str) -> Problems:
    """A problem for every key that no argument claims, with the nearest right one."""
    prefixes = [a.key for a in arguments if a.open_ended]
    spellings = [a.spelling for a in arguments]
    return [
        Problem(node.line, f"unknown argument {quoted(path + key)}" + suggestion(key, spellings))
        for key, node in given.items()
        if not any(key.startswith(prefix) and key != prefix for prefix in prefixes)
    ]
