"""Compiled expressions that are kept, bounded by their memory."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.cel.expression import Environment, Expression

MAX_KEPT = 256 * 1024
"""Bytes of the expressions of an environment that are kept compiled: each takes up to 200 times as many in memory."""


class ExpressionCache:
    """An environment that keeps the expressions that were used last."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._environment = Environment(variables)
        self._kept: dict[tuple[str, str], Expression] = {}
        """The least lately used first."""
        self._bytes = 0

    def compiled(self, text: str, result: str = "bool") -> Expression:
        """The expression, compiled now if it is not kept."""
        key = text, result
        expression = self._kept.pop(key, None)
        if expression is None:
            expression = self._environment.compile(text, result)
            self._bytes += len(text.encode())
        self._kept[key] = expression
        while self._bytes > MAX_KEPT:
            oldest = next(iter(self._kept))
            del self._kept[oldest]
            self._bytes -= len(oldest[0].encode())
        return expression
