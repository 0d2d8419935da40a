"""YAML in which every value knows its line.

Bounded in size, depth and number of values, so that no file can hurt its reader.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from stromboli.policy.policy_problems import Problem, Severity, shown
from stromboli.policy.yaml_scalars import Scalar, bare_scalar

MAX_BYTES = 1 << 20
MAX_VALUES = 10_000
MAX_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Node:
    """A YAML value and the line to blame for it: that of its key where it stands in a mapping."""

    value: "Scalar | list[Node] | dict[str, Node]"
    line: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """What a YAML text holds, and what was odd about it."""

    root: Node
    problems: list[Problem]


class YamlError(Exception):
    """The text is not YAML, or more of it than anybody needs."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(line, message, Severity.FATAL)


def read_yaml(text: str | bytes) -> Document:
    """Read one YAML document; raise `YamlError` where it cannot be read at all."""
    reader = _Reader(_events(_checked(text)))
    try:
        return Document(reader.document(), reader.problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(mark.line + 1 if mark else 0, f"this is not YAML: {said}") from None
    except yaml.YAMLError as error:
        raise YamlError(0, f"this is not YAML: {' '.join(str(error).split())}") from None


def plain(node: Node) -> object:
    """The value without its lines: plain lists, dicts and scalars."""
    if isinstance(node.value, dict):
        return {key: plain(entry) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def without_lines(value: object) -> Node:
    """A node of plain Python data, for arguments that came from no file."""
    if isinstance(value, Node):
        return value
    if isinstance(value, dict):
        return Node({str(key): without_lines(entry) for key, entry in value.items()})
    if isinstance(value, list | tuple):
        return Node([without_lines(item) for item in value])
    return Node(value if isinstance(value, bool | int | float | str) else None)


def _checked(text: str | bytes) -> str:
    """The text as UTF-8 of a bearable size."""
    try:
        raw = text if isinstance(text, bytes) else text.encode()
        decoded = raw.decode("utf-8-sig")
    except UnicodeError:
        raise YamlError(0, "this is not UTF-8 text; save the file as UTF-8") from None
    if len(raw) > MAX_BYTES:
        raise YamlError(0, f"the file has more than {MAX_BYTES >> 20} MiB; a policy takes a few kilobytes")
    return decoded


def _events(text: str) -> Iterator[Event]:
    loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events: Iterator[Event] = yaml.parse(text, Loader=loader)
    return events


@dataclass(slots=True)
class _Reader:
    """Builds nodes from parser events, without ever expanding an alias."""

    events: Iterator[Event]
    problems: list[Problem] = field(default_factory=list)
    anchors: dict[str, tuple[Node, int]] = field(default_factory=dict)
    values: int = 0

    def document(self) -> Node:
        root = Node(None, 1)
        documents = 0
        for event in self.events:
            if isinstance(event, DocumentStartEvent):
                documents += 1
                first = self.node(next(self.events), 0)
                if documents == 1:
                    root = first
                elif documents == 2:
                    message = "a second YAML document starts here; only the first one is read"
                    self.problems.append(Problem(_line(event), message))
            elif isinstance(event, StreamEndEvent):
                break
        return root

    def node(self, event: Event, depth: int) -> Node:
        if isinstance(event, AliasEvent):
            return self.alias(event)
        before = self.values
        self.count(1, event)
        if depth > MAX_DEPTH:
            raise YamlError(_line(event), f"values are nested more than {MAX_DEPTH} deep")
        node = self.value(event, depth)
        anchor: str | None = getattr(event, "anchor", None)
        if anchor:
            self.anchors[anchor] = (node, self.values - before)
        return node

    def value(self, event: Event, depth: int) -> Node:
        if isinstance(event, MappingStartEvent):
            return Node(self.mapping(depth), _line(event))
        if isinstance(event, SequenceStartEvent):
            items = []
            while not isinstance(item := next(self.events), SequenceEndEvent):
                items.append(self.node(item, depth + 1))
            return Node(items, _line(event))
        assert isinstance(event, ScalarEvent)
        return Node(_scalar(event), _line(event))

    def mapping(self, depth: int) -> dict[str, Node]:
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        while not isinstance(key := next(self.events), MappingEndEvent):
            if not isinstance(key, ScalarEvent):
                raise YamlError(_line(key), "a key must be a word or a text")
            self.count(1, key)
            entry = replace(self.node(next(self.events), depth + 1), line=_line(key))
            if key.value == "<<" and key.implicit[0]:
                merged = _merge(entry) | merged
            else:
                if key.value in own:
                    message = f"{shown(key.value)} stands here twice, first in line {own[key.value].line}"
                    self.problems.append(Problem(entry.line, message))
                own[key.value] = entry
        return merged | own

    def alias(self, event: AliasEvent) -> Node:
        name = event.anchor
        if name not in self.anchors:
            raise YamlError(_line(event), f"*{name} refers to itself or to nothing")
        node, size = self.anchors[name]
        self.count(size, event)
        return replace(node, line=_line(event))

    def count(self, values: int, event: Event) -> None:
        """Aliases count as what they stand for: that is what a reader would have to go through."""
        self.values += values
        if self.values > MAX_VALUES:
            raise YamlError(_line(event), f"more than {MAX_VALUES} values, counting what aliases stand for")


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark else 0


def _merge(entry: Node) -> dict[str, Node]:
    """What `<<: *other` or `<<: [*one, *two]` brings in; the earlier one wins."""
    parts = entry.value if isinstance(entry.value, list) else [entry]
    merged: dict[str, Node] = {}
    for part in parts:
        if not isinstance(part.value, dict):
            raise YamlError(entry.line, '"<<" needs a mapping or a list of mappings')
        merged = part.value | merged
    return merged


_TAG = "tag:yaml.org,2002:"


def _scalar(event: ScalarEvent) -> Scalar:
    """A scalar by its tag, by its looks if it stands bare, else as text."""
    if event.tag in (None, "!"):
        return bare_scalar(event.value) if event.implicit[0] else str(event.value)
    kind = event.tag.removeprefix(_TAG)
    if kind == "str":
        return str(event.value)
    value = bare_scalar(event.value)
    found = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value))
    if kind == "float" and found == "int":
        return float(event.value)
    if kind != found:
        raise YamlError(_line(event), f"{shown(event.value)} cannot be read with the tag {shown(event.tag)}")
    return value
