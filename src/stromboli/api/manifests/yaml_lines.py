"""YAML in which every value knows its line, with scalars as Volcano reads them: for files written by hand."""

from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from stromboli.api.errors import Unreadable, quoted
from stromboli.api.manifests.yaml_reader import TAG, BoundedLoader
from stromboli.api.manifests.yaml_scalars import Scalar, bare_scalar

MAX_BYTES = 1 << 20
MAX_VALUES = 10_000
MAX_DEPTH = 50

_BARE = "bare"
"""The tag of a scalar that has none and is not quoted."""


@dataclass(frozen=True, slots=True)
class Node:
    """A YAML value and the line to name in messages: that of its key where it stands in a mapping."""

    value: "Scalar | list[Node] | dict[str, Node]"
    line: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """What a YAML text holds, and what is odd about it: lines and messages."""

    root: Node
    problems: list[tuple[int, str]]


class YamlError(Unreadable):
    """The text is not YAML, or exceeds the bounds."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(text: str) -> Document:
    """Read one YAML document; raise `YamlError` where it cannot be read at all."""
    loader = _LineLoader(text)
    try:
        documents: list[Any] = []
        while loader.check_node():
            documents.append(loader.get_node())
        reader = _Reader()
        root = reader.node(documents[0]) if documents else Node(None, 1)
        if len(documents) > 1:
            line = _separator(text, _line(documents[1]))
            reader.problems.append((line, "a second YAML document starts here; only the first one is read"))
        return Document(root, reader.problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        raise YamlError(mark.line + 1 if mark else 0, f"this is not YAML: {problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(0, f"this is not YAML: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()


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


class _LineLoader(BoundedLoader):
    """Composes nodes, and leaves it to the reader what a scalar without a tag means."""

    max_depth = MAX_DEPTH

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        super().descend_resolver(current_node, current_index)
        self._values += 1
        if self._values > MAX_VALUES:
            raise _too_many(current_node)

    def too_deep(self, node: Any) -> Exception:
        return YamlError(_line(node), f"values are nested more than {MAX_DEPTH} deep")

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _BARE if implicit[0] else TAG + "str"
        return ""


@dataclass(slots=True)
class _Reader:
    """Builds nodes with lines, without ever expanding an alias."""

    problems: list[tuple[int, str]] = field(default_factory=list)
    known: dict[int, tuple[Node, int] | None] = field(default_factory=dict)
    """By id of the composed node: what was made of it and how many values that is; none while it is being made."""
    values: int = 0

    def node(self, composed: yaml.Node) -> Node:
        if id(composed) in self.known:
            return self.alias(composed)
        self.known[id(composed)] = None
        before = self.values
        self.count(1, composed)
        node = Node(self.value(composed), _line(composed))
        self.known[id(composed)] = (node, self.values - before)
        return node

    def alias(self, composed: yaml.Node) -> Node:
        known = self.known[id(composed)]
        if known is None:
            raise YamlError(_line(composed), "an alias refers to itself")
        self.count(known[1], composed)
        return known[0]

    def value(self, composed: yaml.Node) -> "Scalar | list[Node] | dict[str, Node]":
        if isinstance(composed, yaml.MappingNode):
            return self.mapping(composed)
        if isinstance(composed, yaml.SequenceNode):
            return [self.node(item) for item in composed.value]
        return _scalar(composed)

    def mapping(self, composed: yaml.MappingNode) -> dict[str, Node]:
        own: dict[str, Node] = {}
        merged: dict[str, Node] = {}
        for key, value in composed.value:
            if not isinstance(key, yaml.ScalarNode):
                raise YamlError(_line(key), "a key must be a word or a text")
            self.count(1, key)
            entry = replace(self.node(value), line=_line(key))
            if key.value == "<<" and key.tag == _BARE:
                merged = _merge(entry) | merged
            else:
                if key.value in own:
                    message = f"{quoted(key.value)} stands here twice, first in line {own[key.value].line}"
                    self.problems.append((entry.line, message))
                own[key.value] = entry
        return merged | own

    def count(self, values: int, composed: yaml.Node) -> None:
        """Aliases count as what they stand for: that is what a reader would have to go through."""
        self.values += values
        if self.values > MAX_VALUES:
            raise _too_many(composed)


def _too_many(node: Any) -> YamlError:
    return YamlError(_line(node), f"more than {MAX_VALUES} values, counting what aliases stand for")


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1 if node is not None else 0


def _separator(text: str, line: int) -> int:
    """The line of the `---` before a line."""
    lines = text.splitlines()[:line]
    return next((number for number in range(len(lines), 0, -1) if lines[number - 1].startswith("---")), line)


def _merge(entry: Node) -> dict[str, Node]:
    """What `<<: *other` or `<<: [*one, *two]` brings in; the earlier one wins."""
    parts = entry.value if isinstance(entry.value, list) else [entry]
    merged: dict[str, Node] = {}
    for part in parts:
        if not isinstance(part.value, dict):
            raise YamlError(entry.line, '"<<" needs a mapping or a list of mappings')
        merged = part.value | merged
    return merged


def _scalar(node: yaml.Node) -> Scalar:
    """A scalar by its tag; a bare one by its syntax."""
    if node.tag == _BARE:
        return bare_scalar(node.value)
    tag = node.tag.removeprefix(TAG)
    if tag == "str":
        return str(node.value)
    value = bare_scalar(node.value)
    kind = {bool: "bool", int: "int", float: "float", type(None): "null"}.get(type(value))
    if tag == "float" and kind == "int":
        return float(node.value)
    if tag != kind:
        raise YamlError(_line(node), f"{quoted(node.value)} cannot be read with the tag {quoted(node.tag)}")
    return value
