"""The part of Prometheus' query language that our rules and dashboards use: what an expression reads and what it tells.

Stricter than Prometheus: a metric, a label or a value of a label that nobody tells is an error here, and nothing there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn

Labels = frozenset[str]
TARGET = frozenset(("job", "instance"))
"""Labels that Prometheus gives to whatever it reads."""
SCALAR, STRING, VECTOR, RANGE = "scalar", "string", "vector", "range"
_TOKEN = re.compile(
    r"""\s*(?:(?P<duration>(?:\d+(?:ms|[smhdwy]))+\b)|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)|(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<word>[a-zA-Z_:][a-zA-Z0-9_:]*)|(?P<sign>=~|!~|!=|==|<=|>=|[-+*/%^<>=(){}\[\],]))""",
    re.VERBOSE,
)
_LEVELS = (("or",), ("and", "unless"), ("==", "!=", "<=", "<", ">=", ">"), ("+", "-"), ("*", "/", "%"))
_SETS = ("or", "and", "unless")
_AGGREGATIONS = {
    "sum": (),
    "min": (),
    "max": (),
    "avg": (),
    "count": (),
    "topk": (SCALAR,),
    "bottomk": (SCALAR,),
}
_FUNCTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "rate": ((RANGE,), VECTOR),
    "increase": ((RANGE,), VECTOR),
    "max_over_time": ((RANGE,), VECTOR),
    "histogram_quantile": ((SCALAR, VECTOR), VECTOR),
    "absent": ((VECTOR,), VECTOR),
    "clamp_max": ((VECTOR, SCALAR), VECTOR),
    "label_replace": ((VECTOR, STRING, STRING, STRING, STRING), VECTOR),
    "vector": ((SCALAR,), VECTOR),
    "time": ((), SCALAR),
}
_OF_COUNTERS = ("rate", "increase")


class PromqlError(ValueError):
    """An expression that Prometheus would refuse, or that would never tell anything."""


class KnownMetric(NamedTuple):
    """A name that a page of metrics has at the begin of a line."""

    labels: Labels
    counts: bool
    """Whether it only grows."""
    values: Mapping[str, frozenset[str]] = {}
    """All values that a label can have, where they are known."""


class Selector(NamedTuple):
    metric: str
    matchers: tuple[tuple[str, str, str], ...]


class Part(NamedTuple):
    """An expression or a part of it."""

    type: str
    labels: Labels = frozenset()
    counts: bool = False
    text: str = ""


class Expression:
    """An expression that was read: its selectors, and the labels of what it tells."""

    def __init__(self, text: str, known: Mapping[str, KnownMetric]):
        self.text = text
        self.selectors: list[Selector] = []
        self.numbers: list[float] = []
        self._known = known
        self._tokens = _tokens(text)
        self._at = 0
        self.result = self._binary(0)
        if self._peek():
            self._fail(f"nothing may follow, but {self._peek()!r} does")

    @property
    def metrics(self) -> set[str]:
        return {selector.metric for selector in self.selectors}

    # -- tokens

    def _fail(self, why: str) -> NoReturn:
        raise PromqlError(f"{self.text!r}: {why}")

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self, *wanted: str) -> str:
        token = self._peek()
        if not token or (wanted and token not in wanted and self._kind() not in wanted):
            self._fail(f"{' or '.join(wanted) or 'something'} expected at {token!r}")
        self._at += 1
        return token

    def _skip(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _list(self, opening: str, closing: str, item: Callable[[], None]) -> None:
        self._next(opening)
        while not self._skip(closing):
            item()
            if self._peek() != closing:
                self._next(",")

    def _names(self) -> Labels:
        names: list[str] = []
        self._list("(", ")", lambda: names.append(self._next("word")))
        return frozenset(names)

    # -- operators

    def _binary(self, level: int) -> Part:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self._next()
            with_bool = self._skip("bool")
            matching = (self._next(), self._names()) if self._peek() in ("on", "ignoring") else None
            more = self._names() if matching and self._skip("group_left") else None
            right = self._binary(level + 1)
            left = self._combined(operator, left, right, matching, more)
            if with_bool and level != 2:
                self._fail(f"{operator} bool")
        return left

    def _combined(
        self, operator: str, left: Part, right: Part, matching: tuple[str, Labels] | None, more: Labels | None
    ) -> Part:
        if {left.type, right.type} - {SCALAR, VECTOR}:
            self._fail(f"{operator} between a {left.type} and a {right.type}")
        if SCALAR in (left.type, right.type):
            if operator in _SETS or matching:
                self._fail(f"{operator} needs two vectors")
            return Part(VECTOR, left.labels | right.labels) if left.type != right.type else Part(SCALAR)
        if operator == "or":
            return Part(VECTOR, left.labels & right.labels)
        word, names = matching or ("ignoring", frozenset())
        both = (names, names) if word == "on" else (left.labels - names, right.labels - names)
        if both[0] != both[1] or (word == "on" and not names <= left.labels & right.labels):
            self._fail(
                f"{operator} never matches: {sorted(left.labels)} and {sorted(right.labels)} {word} {sorted(names)}"
            )
        if operator in _SETS:
            return left._replace(counts=False)
        return Part(VECTOR, both[0] if more is None else left.labels | more)

    def _unary(self) -> Part:
        if self._skip("-"):
            return self._unary()
        part = self._primary()
        while self._peek() in ("[", "offset"):
            if not self._skip("offset"):
                self._next("[")
                part = (
                    part._replace(type=RANGE) if part.type == VECTOR else self._fail("a range of no vector")
                )
            self._next("duration")
            if part.type == RANGE and self._peek() == "]":
                self._next("]")
        return part

    def _primary(self) -> Part:
        kind, token = self._kind(), self._next()
        if kind == "number":
            self.numbers.append(float(token))
            return Part(SCALAR, text=token)
        if kind == "string":
            return Part(STRING, text=token[1:-1])
        if token == "(":
            inner = self._binary(0)
            self._next(")")
            return inner
        if kind != "word":
            self._fail(f"an expression expected at {token!r}")
        if token in _AGGREGATIONS:
            return self._aggregation(token)
        return self._call(token) if self._peek() == "(" else self._selector(token)

    # -- words

    def _arguments(self) -> list[Part]:
        arguments: list[Part] = []
        self._list("(", ")", lambda: arguments.append(self._binary(0)))
        return arguments

    def _check_types(self, name: str, arguments: list[Part], wanted: tuple[str, ...]) -> None:
        types = tuple(argument.type for argument in arguments)
        if types != wanted:
            self._fail(f"{name} takes {wanted}, not {types}")

    def _aggregation(self, name: str) -> Part:
        grouped = (self._next(), self._names()) if self._peek() in ("by", "without") else None
        arguments = self._arguments()
        grouped = grouped or ((self._next(), self._names()) if self._peek() in ("by", "without") else None)
        self._check_types(name, arguments, (*_AGGREGATIONS[name], VECTOR))
        labels = arguments[-1].labels
        word, names = grouped or ("by", frozenset())
        if not names <= labels:
            self._fail(f"{name} {word} {sorted(names - labels)}, but there are only {sorted(labels)}")
        if name in ("topk", "bottomk"):
            return Part(VECTOR, labels)
        return Part(VECTOR, names if word == "by" else labels - names)

    def _call(self, name: str) -> Part:
        if name not in _FUNCTIONS:
            self._fail(f"no function {name}")
        wanted, result = _FUNCTIONS[name]
        arguments = self._arguments()
        self._check_types(name, arguments, wanted)
        vectors = [argument for argument in arguments if argument.type in (VECTOR, RANGE)]
        labels = vectors[0].labels if vectors else frozenset[str]()
        if name in _OF_COUNTERS and not vectors[0].counts:
            self._fail(f"{name} of something that may shrink")
        if name == "histogram_quantile":
            if "le" not in labels:
                self._fail("histogram_quantile without le")
            labels -= {"le"}
        elif name == "absent":
            labels = frozenset()
        elif name == "label_replace":
            labels |= {arguments[1].text}
            re.compile(arguments[4].text)
        return Part(result, labels)

    def _selector(self, metric: str) -> Part:
        known = self._known.get(metric)
        if known is None:
            self._fail(f"no metric {metric}")
        matchers: list[tuple[str, str, str]] = []

        def matcher() -> None:
            label, sign = self._next("word"), self._next("=", "!=", "=~", "!~")
            matchers.append((label, sign, self._next("string")[1:-1]))

        if self._peek() == "{":
            self._list("{", "}", matcher)
        for label, sign, value in matchers:
            if label not in known.labels | TARGET:
                self._fail(f"{metric} has no label {label}")
            told = known.values.get(label)
            wanted = value.split("|") if "~" in sign else [value]
            if (
                told
                and "$" not in value
                and not all(any(re.fullmatch(each, one) for one in told) for each in wanted)
            ):
                self._fail(f"{metric} never has {label}{sign}{value!r}, only {sorted(told)}")
        self.selectors.append(Selector(metric, tuple(matchers)))
        return Part(VECTOR, known.labels | TARGET, known.counts)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PromqlError(f"{text!r}: cannot be read at {text[at : at + 20]!r}")
        kind = match.lastgroup or ""
        found.append((kind, match[kind]))
        at = match.end()
    return found
