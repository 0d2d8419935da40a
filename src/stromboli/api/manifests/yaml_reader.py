"""YAML the way kubectl reads it (dates and times stay text), and safe against texts made to hurt.

Nesting, aliases and merge keys are bounded: a page of YAML can otherwise stand for billions of values.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from stromboli.api.errors import Unreadable, quoted

MAX_DEPTH = 200
MAX_ALIASED = 1_000_000
MAX_MERGED = 20_000
MAX_MERGED_AT_ONCE = 20

TAG = "tag:yaml.org,2002:"
_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels, or an alias inside itself"


def documents(text: str) -> Iterator[Any]:
    """The documents of a YAML text as plain data; empty ones are left out."""
    loader = BoundedLoader(text)
    aliases = "*" in text and "&" in text
    try:
        while loader.check_data():  # type: ignore[no-untyped-call]
            document = loader.get_data()
            if aliases:
                _bound_aliases(document)
            if document is not None:
                yield document
    except Unreadable:
        raise
    except yaml.MarkedYAMLError as error:
        raise Unreadable(_explain(error)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise Unreadable(f"not YAML: {error}") from None
    finally:
        loader.dispose()


class BoundedLoader(yaml.CSafeLoader):
    """libyaml's loader with bounds; without them deep nesting would end the process."""

    max_depth = MAX_DEPTH

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._merged = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        self._depth += 1
        if self._depth > self.max_depth:
            raise self.too_deep(current_node)

    def too_deep(self, node: Any) -> Exception:
        """What is raised when values are nested too deep below a node."""
        return Unreadable(_TOO_DEEP)

    def ascend_resolver(self) -> None:
        self._depth -= 1

    def construct_yaml_float(self, node: yaml.ScalarNode) -> float:
        """JSON, which all of this becomes, has neither infinity nor NaN."""
        number: float = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise Unreadable(
                f"line {node.start_mark.line + 1}: {quoted(node.value)} is no number that JSON has"
            )
        return number

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            several = key.tag == TAG + "merge" and isinstance(value, yaml.SequenceNode)
            if several and len(value.value) > MAX_MERGED_AT_ONCE:
                raise Unreadable(f"merge key << with more than {MAX_MERGED_AT_ONCE} mappings")
        before = len(node.value)
        super().flatten_mapping(node)
        self._merged += max(0, len(node.value) - before)
        if self._merged > MAX_MERGED:
            raise Unreadable(f"merge keys << copy more than {MAX_MERGED} entries")


def _plain_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """PyYAML's rules without dates and without numbers to base sixty: kubectl reads both as text."""
    sexagesimal = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")
    result: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for first, all_rules in yaml.CSafeLoader.yaml_implicit_resolvers.items():
        rules = [rule for rule in all_rules if rule[0] != TAG + "timestamp"]
        if first in "-+0123456789":
            rules.insert(0, (TAG + "str", sexagesimal))
        result[first] = rules
    return result


BoundedLoader.yaml_implicit_resolvers = _plain_resolvers()
BoundedLoader.add_constructor(TAG + "float", BoundedLoader.construct_yaml_float)


def _bound_aliases(document: Any) -> None:
    seen: dict[int, tuple[int, int]] = {}
    size, _ = _measure(document, seen, 0)
    if size - len(seen) > MAX_ALIASED:
        raise Unreadable(f"aliases stand for more than {MAX_ALIASED} values")


def _measure(node: Any, seen: dict[int, tuple[int, int]], depth: int) -> tuple[int, int]:
    """How many lists and mappings a value is once aliases are written out, and how deep they lie."""
    if not isinstance(node, dict | list):
        return 0, 0
    if id(node) not in seen:
        if depth > MAX_DEPTH:
            raise Unreadable(_TOO_DEEP)
        inner = [
            _measure(part, seen, depth + 1) for part in (node.values() if isinstance(node, dict) else node)
        ]
        size = 1 + sum(size for size, _ in inner)
        seen[id(node)] = size, 1 + max((height for _, height in inner), default=0)
    size, height = seen[id(node)]
    if depth + height > MAX_DEPTH:
        raise Unreadable(_TOO_DEEP)
    return size, height


def _explain(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return f"not YAML: {error.problem or error.context}{where}"
