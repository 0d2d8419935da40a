"""Typed arguments of plugins and actions: a frozen dataclass with key, default and meaning of each field.

    @dataclass(frozen=True, slots=True)
    class Arguments:
        weight: int = arg("binpack.weight", 1, "How much the whole score counts; 0 switches it off.")
        resources: Mapping[str, int] = arg_prefix("binpack.resources.", 1, "Weight of one more resource.")

An unknown key or a wrong type is a problem with its line. A value that fails its check is a warning. Both keep the
default. Types are converted by Volcano's rules: an integer from a YAML integer only, a number from any finite
number, a boolean also from a string that Go accepts as a bool, a string from strings only.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from stromboli.api.errors import quoted
from stromboli.api.manifests.yaml_lines import Node, plain, without_lines
from stromboli.policy.policy_problems import NOT_YET, Problem, Severity, suggestion

WRONG: Any = object()  # the value does not have the declared type


# -- YAML scalars as typed values


_GO_BOOLS = dict.fromkeys(["1", "t", "T", "TRUE", "true", "True"], True) | dict.fromkeys(
    ["0", "f", "F", "FALSE", "false", "False"], False
)


def to_bool(value: object) -> Any:
    """A boolean, or a string in Go's bool syntax."""
    if isinstance(value, bool):
        return value
    return _GO_BOOLS.get(value, WRONG) if isinstance(value, str) else WRONG


def to_int(value: object) -> Any:
    """A YAML integer of 64 bits: neither a float nor a quoted number."""
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    return WRONG


def to_float(value: object) -> Any:
    """A finite number, whole or not."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return WRONG


def to_text(value: object) -> Any:
    """A string: a number must be quoted to be one."""
    return value if isinstance(value, str) else WRONG


SCALARS: dict[Any, tuple[Callable[[object], Any], str]] = {
    bool: (to_bool, "a boolean"),
    int: (to_int, "an integer"),
    float: (to_float, "a number"),
    str: (to_text, "a string"),
    type(None): (lambda value: None if value is None else WRONG, "nothing"),
}


def members(hint: Any) -> tuple[Any, ...]:
    """The types that a union allows; for any other type just itself."""
    return typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)


def is_mapping(hint: Any) -> bool:
    """Whether a type is a mapping from names to something."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def is_list(hint: Any) -> bool:
    """Whether a type is a tuple or list of any length."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Sequence)


def understood(hint: Any) -> bool:
    """Whether an argument can have this type at all."""
    if len(members(hint)) > 1:
        return all(understood(member) for member in members(hint))
    if is_mapping(hint) or is_list(hint):
        inner = typing.get_args(hint)
        return understood(inner[1] if is_mapping(hint) else inner[0])
    named = hint in SCALARS or hint in (Any, object) or typing.get_origin(hint) is Literal
    return named or (isinstance(hint, type) and dataclasses.is_dataclass(hint))


def type_name(hint: Any) -> str:
    """The type of a field, for messages."""
    inner = typing.get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint][1]
    if len(members(hint)) > 1:
        return " or ".join(type_name(member) for member in members(hint) if member is not type(None))
    if typing.get_origin(hint) is Literal:
        return "one of " + ", ".join(quoted(choice) for choice in inner)
    if is_mapping(hint):
        return f"a mapping of names to {_plural(inner[1])}"
    if is_list(hint):
        return f"a list of {_plural(inner[0])}"
    return "anything" if hint in (Any, object) else "a mapping"


def _plural(hint: Any) -> str:
    """The type of the elements of a collection, for messages."""
    article, _, noun = type_name(hint).partition(" ")
    return f"{noun}s" if article in ("a", "an") and " " not in noun else type_name(hint)


def kind_of(value: object) -> str:
    """The type of a value, for messages."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the string {quoted(value)}"
    return str(value).lower() if isinstance(value, bool) else quoted(value)


# -- declarations, and values parsed by them


T = TypeVar("T")
Problems = list[Problem]
Check = Callable[[Any], str | None]
_KEY = "argument"


@dataclass(frozen=True, slots=True)
class Argument:
    """The key and the meaning of one argument; an `open_ended` key continues with a user's name."""

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
        """The type, for messages; that of one value, if the key continues with a name."""
        return type_name(typing.get_args(self.type)[1] if self.open_ended else self.type)


class ByName(dict[str, T]):
    """The user's values by name; every other name has the default."""

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

    With `not_yet` the value has no effect yet, and using it is reported.
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
    """The arguments that a class declares, in order; raises `TypeError` for an invalid declaration."""
    return _declared(cls)


@lru_cache(256)
def _declared(cls: type) -> tuple[Argument, ...]:
    if not dataclasses.is_dataclass(cls):
        raise TypeError(f"{cls.__qualname__} must be a dataclass whose fields are made with arg()")
    hints = typing.get_type_hints(cls)
    return tuple(_complete(cls, field, hints[field.name]) for field in dataclasses.fields(cls))


def _complete(cls: type, field: "dataclasses.Field[Any]", hint: Any) -> Argument:
    """The declaration, completed with the field of the class, its type and its default."""
    argument: Argument | None = field.metadata.get(_KEY)
    if argument is None:
        raise TypeError(f"{cls.__qualname__}.{field.name} must be made with arg(), arg_prefix() or arg_map()")
    if not understood(hint) or (argument.open_ended and not is_mapping(hint)):
        raise TypeError(f"{cls.__qualname__}.{field.name}: {hint} is no type that an argument can have")
    factory = field.default_factory
    default = field.default if factory is dataclasses.MISSING else factory()
    return replace(argument, field=field.name, type=hint, default=default)


def parse_arguments(cls: type[T], given: Node | Mapping[str, object]) -> tuple[T, Problems]:
    """The arguments in `given`, with defaults for missing and invalid ones, and the problems."""
    problems: Problems = []
    node = given if isinstance(given, Node) else without_lines(dict(given))
    instance = _parse_dataclass(cls, node, "", problems)
    return (cls() if instance is WRONG else instance), problems


def _parse_dataclass(cls: type, node: Node, path: str, problems: Problems) -> Any:
    """One dataclass from one mapping; also used for nested dataclasses."""
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
    except ValueError as error:  # a __post_init__ refuses a combination of arguments
        problems.append(Problem(node.line, f"{path or 'arguments'}: {error}"))
        return cls()


def _parse_argument(argument: Argument, given: dict[str, Node], path: str, problems: Problems) -> Any:
    """The value of one argument; `WRONG`, which keeps the default, if it is missing or invalid."""
    key = next((key for key in (argument.key, *argument.aliases) if key in given), None)
    return WRONG if key is None else _checked(argument, argument.type, given[key], path + key, problems)


def _parse_open_ended(argument: Argument, given: dict[str, Node], path: str, problems: Problems) -> Any:
    """Every name after the prefix; an invalid value counts as the default."""
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
    """The value of a node in its declared type; a problem and `WRONG` if it is of another kind."""
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
    """Decode one type of a union: `WRONG` without a problem if the node is of another kind."""
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
    """A problem for every unknown key, with the nearest valid one."""
    prefixes = [a.key for a in arguments if a.open_ended]
    spellings = [a.spelling for a in arguments]
    return [
        Problem(node.line, f"unknown argument {quoted(path + key)}" + suggestion(key, spellings))
        for key, node in given.items()
        if not any(key.startswith(prefix) and key != prefix for prefix in prefixes)
    ]


def error_cache() -> bool:
    """`predicateErrorCacheEnable`, which placing actions accept: shapes spare similar tasks the search, exactly."""
    accepted: bool = arg(
        "predicateErrorCacheEnable",
        True,
        "Accepted for compatibility; no decision depends on it.",
        aliases=("enablePredicateErrorCache",),
    )
    return accepted
