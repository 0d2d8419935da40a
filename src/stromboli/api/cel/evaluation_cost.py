"""The most that an evaluation can cost, computed before it runs from the expression and the sizes of its variables.

The library stops after `MAX_ITERATIONS` and cannot be interrupted in between, so what an iteration may cost is bounded
here. A step is about a nanosecond. All bounds are upper bounds.
"""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api.cel.supported_functions import EFFORTS
from stromboli.api.cel.syntax_tree import (
    CALL,
    COMPREHENSION,
    CONSTANT,
    IDENTIFIER,
    LIST,
    SELECT,
    STRUCT,
    Node,
)
from stromboli.api.cel.value_size import SCALAR, Size, joined, largest
from stromboli.api.patterns import steps_to_match

MAX_ITERATIONS = 10_000
"""Of all loops of an evaluation together, as the library counts them."""
_STEPS_PER_NODE = 100
_STEPS_TO_BEGIN = 20_000
_STEPS_TO_CONVERT = 2000
"""A value in a variable, into a value of the library."""


def cost(tree: Node, variables: Mapping[str, Size]) -> int:
    """At most how many steps an evaluation takes."""
    estimate = _Estimate()
    estimate.steps = _STEPS_TO_BEGIN + sum(
        size.bytes + _STEPS_TO_CONVERT * size.nodes for size in variables.values()
    )
    estimate.add(tree, dict(variables), 1)
    return estimate.steps


class _Estimate:
    """Adds up the steps of the nodes, each as often as it is evaluated."""

    def __init__(self) -> None:
        self.steps = 0

    def add(self, node: Node, scope: Mapping[str, Size], times: int) -> Size:
        """Count a node that is evaluated some times, and return the size of its value."""
        self.steps += _STEPS_PER_NODE * times
        if node.kind == CONSTANT:
            return Size(len(node.value.encode())) if isinstance(node.value, str) else SCALAR
        if node.kind == IDENTIFIER:
            return scope.get(node.name, SCALAR)
        if node.kind == COMPREHENSION:
            return self._comprehension(node, scope, times)
        sizes = [self.add(child, scope, times) for child in node.children]
        if node.kind == CALL:
            return self._call(node, sizes, times)
        if node.kind == SELECT:
            return SCALAR if node.is_test else sizes[0].field(node.name)
        assert node.kind in (LIST, STRUCT)
        return joined(sizes, len(sizes))

    def _call(self, node: Node, sizes: list[Size], times: int) -> Size:
        if node.name == "matches":
            steps, result = steps_to_match(sizes[0].bytes, node.children[1].value), SCALAR
        else:
            steps, result = EFFORTS[node.name](sizes)
        self.steps += steps * times
        return result

    def _comprehension(self, node: Node, scope: Mapping[str, Size], times: int) -> Size:
        """Lists that a loop makes are copied in each round."""
        values, first, condition, step, result = node.children
        size = self.add(values, scope, times)
        start = self.add(first, scope, times)
        count = min(size.items, MAX_ITERATIONS)
        rounds = min(times * count, MAX_ITERATIONS)
        element = size.child if size.element is not None else SCALAR
        inner = {**scope, node.name: element, node.second_variable: element, node.accumulator: SCALAR}
        self.add(condition, inner, rounds)
        each = self.add(step, inner, rounds)
        accumulated = start
        if count and first.kind in (LIST, STRUCT):
            self.steps += rounds * count * 60
            child = largest([each.child])
            accumulated = Size(count * each.bytes, count * each.nodes + 1, count, child)
        return self.add(result, {**scope, node.accumulator: accumulated}, times)
