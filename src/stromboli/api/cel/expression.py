"""Environments that declare variables, the expressions compiled in them, and their evaluation at a bounded cost.

An expression becomes functions of Python, one in another, whose types are checked as far as they are known. What an
evaluation may cost is a number of steps, of about a nanosecond each: they are counted before they are taken, for each
round of a loop and by the sizes of values, so an evaluation that would take long is stopped where it exceeds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from stromboli.api.cel.functions import DYN, FUNCTIONS, MISSING, Overload, sorted_by
from stromboli.api.cel.syntax import (
    BIND,
    CALL,
    CONSTANT,
    IDENTIFIER,
    LIST,
    MACRO,
    SELECT,
    STRUCT,
    CelError,
    Node,
    parse,
)
from stromboli.api.cel.values import (
    ABSENT,
    BOOL,
    INT,
    NAMED_TYPES,
    NO_OVERLOAD,
    NO_SUCH_KEY,
    OPTIONAL,
    STRING,
    CostExceeded,
    EvaluationError,
    Optional,
    Type,
    find_key,
    kind,
)
from stromboli.api.cel.values import LIST as LIST_TYPE
from stromboli.api.cel.values import MAP as MAP_TYPE
from stromboli.api.patterns import PatternError, PatternSet, matches, steps_to_match

__all__ = (
    "MAX_COST",
    "MAX_EXPRESSION",
    "NO_SUCH_KEY",
    "CelError",
    "CostBudget",
    "CostExceeded",
    "Environment",
    "EvaluationError",
    "Expression",
    "ExpressionCache",
    "Paths",
)

MAX_EXPRESSION = 5 * 1024
"""Bytes of an expression."""
MAX_COST = 100_000_000
"""Steps of an evaluation, or of all that share a `CostBudget`: a step is about a nanosecond."""
MAX_KEPT = 256 * 1024
"""Bytes of the expressions of an environment that are kept compiled: each takes up to 200 times as many in memory."""
_STEPS_PER_NODE = 150
_STEPS_TO_BEGIN = 1_000
_STEPS_PER_ROUND = 100

Paths = dict[str, "Paths"] | None
"""Fields that an expression uses, by name, with those of each that it uses; None for all."""
Scope = dict[str, Any]
Run = Callable[[Scope, "CostBudget"], Any]


class CostBudget:
    """The steps that several evaluations share, such as those of all rules for an object."""

    def __init__(self, steps: int = MAX_COST) -> None:
        self.steps = steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise CostExceeded(
                f"it takes more than {MAX_COST} steps: shorten lists and texts, or simplify the expression"
            )
        self.spent += steps


class Code(NamedTuple):
    """What a node of the tree is compiled to."""

    type: str
    """Of its value, or `DYN`."""
    run: Run
    steps: int
    """Of one evaluation, without loops and what depends on the sizes of values."""


class Environment:
    """Variables of any type, by name, and Kubernetes' functions."""

    def __init__(self, variables: Iterable[str], longest: int = MAX_EXPRESSION) -> None:
        """`longest` is the bytes of an expression."""
        self._variables = tuple(variables)
        self._longest = longest

    def compile(self, text: str, result: str = BOOL) -> Expression:
        """An expression whose result is `bool` or `string`."""
        if len(text.encode(errors="replace")) > self._longest:
            raise CelError(f"an expression may have at most {self._longest} bytes")
        if "\0" in text or text.encode(errors="replace").decode() != text:
            raise CelError("an expression must be a text without NUL characters and broken Unicode")
        tree = parse(text)
        code = _Compiler(self._variables).code(tree)
        if code.type not in (result, DYN):
            raise CelError(f"cel expression must evaluate to a {result}")
        return Expression(text, tree, code, result)


class Expression:
    """A compiled expression."""

    def __init__(self, text: str, tree: Node, code: Code, result: str) -> None:
        self.text = text
        self.tree = tree
        self._code = code
        self._result = result

    def uses(self, variable: str) -> bool:
        """Whether the expression needs a variable."""
        return any(node.kind == IDENTIFIER and node.name == variable for node in self.tree)

    @property
    def patterns(self) -> Iterator[str]:
        """The patterns of `matches`."""
        return (node.children[1].value for node in self.tree if node.kind == CALL and node.name == "matches")

    @cached_property
    def paths(self) -> Mapping[str, Paths]:
        """The paths that are used, by variable."""
        used: dict[str, Paths] = {}
        _collect_paths(self.tree, used)
        return used

    def evaluate(self, values: Mapping[str, Any], budget: CostBudget | None = None) -> Any:
        """The result for the values of the variables."""
        budget = budget or CostBudget()
        budget.spend(_STEPS_TO_BEGIN + self._code.steps)
        try:
            result = self._code.run(dict(values), budget)
        except EvaluationError:
            raise
        except (ValueError, OverflowError) as error:
            raise EvaluationError(str(error)[:500]) from None
        except RecursionError:
            raise EvaluationError("the values are nested too deeply") from None
        if kind(result) != self._result:
            raise EvaluationError(NO_OVERLOAD)
        return result


class ExpressionCache:
    """An environment that keeps the expressions that were used last."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._environment = Environment(variables)
        self._kept: dict[tuple[str, str], Expression] = {}
        """The least lately used first."""
        self._bytes = 0

    def compiled(self, text: str, result: str = BOOL) -> Expression:
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


# -- compiling


class _Compiler:
    """Turns nodes into code, with the variables that are known at each."""

    def __init__(self, variables: Iterable[str]) -> None:
        self._known = dict.fromkeys(variables, DYN)
        self._patterns = PatternSet()

    def code(self, node: Node) -> Code:
        return _COMPILERS[node.kind](self, node)

    def _with(self, names: Iterable[str], node: Node, type: str = DYN) -> Code:
        """The code of a node in which more variables are known."""
        outer = self._known
        self._known = {**outer, **dict.fromkeys(names, type)}
        try:
            return self.code(node)
        finally:
            self._known = outer

    def constant(self, node: Node) -> Code:
        value = node.value
        return Code(kind(value), lambda scope, budget: value, _STEPS_PER_NODE)

    def identifier(self, node: Node) -> Code:
        name = node.name
        if name in self._known:
            return Code(self._known[name], _variable(name), _STEPS_PER_NODE)
        if name in NAMED_TYPES or name == "null_type":
            return self.constant(Node(CONSTANT, value=Type(name)))
        raise CelError(_with_library(f"undeclared reference to '{name}'"))

    def select(self, node: Node) -> Code:
        qualified = _qualified(node)
        if qualified in NAMED_TYPES:
            return self.constant(Node(CONSTANT, value=Type(qualified)))
        operand = self.code(node.children[0])
        if operand.type not in (DYN, MAP_TYPE, OPTIONAL):
            raise CelError(f"type '{operand.type}' does not support field selection")
        if node.is_test:
            return Code(BOOL, _has(operand.run, node.name), operand.steps + _STEPS_PER_NODE)
        return Code(DYN, _select(operand.run, node.name), operand.steps + _STEPS_PER_NODE)

    def list(self, node: Node) -> Code:
        codes = [self.code(child) for child in node.children]
        runs = [(code.run, index in node.optional) for index, code in enumerate(codes)]
        return Code(LIST_TYPE, _list_of(runs), _steps(codes))

    def struct(self, node: Node) -> Code:
        codes = [self.code(child) for child in node.children]
        for code in codes[::2]:
            if code.type not in (DYN, BOOL, INT, "uint", STRING):
                raise CelError(f"unsupported key type '{code.type}'")
        runs = [
            (codes[index].run, codes[index + 1].run, index // 2 in node.optional)
            for index in range(0, len(codes), 2)
        ]
        return Code(MAP_TYPE, _map_of(runs), _steps(codes))

    def bind(self, node: Node) -> Code:
        value = self.code(node.children[0])
        body = self._with([node.name], node.children[1], value.type)
        return Code(body.type, _bind(node.name, value.run, body.run), _steps([value, body]))

    def macro(self, node: Node) -> Code:
        target = self.code(node.children[0])
        wanted = (OPTIONAL,) if node.name in _OPTIONAL_MACROS else (LIST_TYPE, MAP_TYPE)
        if target.type not in (DYN, *wanted):
            raise CelError(f"expression of type '{target.type}' cannot be range of a comprehension")
        bodies = [self._with(node.variables, child) for child in node.children[1:]]
        type, make, checked = _MACROS[node.name]
        if checked and bodies[0].type not in (DYN, BOOL):
            raise CelError(f"found no matching overload for '{node.name}' applied to '({bodies[0].type})'")
        each = _STEPS_PER_ROUND + sum(body.steps for body in bodies)
        run = make(target.run, node.variables, each, *(body.run for body in bodies))
        return Code(type, run, target.steps + _STEPS_PER_NODE)

    def call(self, node: Node) -> Code:
        name = node.name
        if name == "matches":
            return self._match(node)
        codes = [self.code(child) for child in node.children]
        if name in _SPECIAL:
            return _SPECIAL[name](codes, node)
        overloads = FUNCTIONS.get((name, node.is_method))
        if overloads is None:
            raise CelError(_with_library(f"undeclared reference to '{name}'"))
        types = [code.type for code in codes]
        fitting = [overload for overload in overloads if _fits(overload, types)]
        if not fitting:
            raise CelError(f"found no matching overload for '{name}' applied to '({', '.join(types)})'")
        results = {overload.result for overload in fitting}
        type = results.pop() if len(results) == 1 else DYN
        return Code(type, _dispatch([code.run for code in codes], fitting), _steps(codes))

    def _match(self, node: Node) -> Code:
        """The cost of a pattern must be known before it is evaluated."""
        if len(node.children) != 2:
            raise CelError("found no matching overload for 'matches'")
        text, pattern = self.code(node.children[0]), node.children[1]
        if text.type not in (DYN, STRING):
            raise CelError(f"found no matching overload for 'matches' applied to '({text.type}, string)'")
        if pattern.kind != CONSTANT or not isinstance(pattern.value, str):
            raise CelError(
                "the pattern of matches() must be a literal here, because it bounds the cost; write it out"
            )
        try:
            self._patterns.add(pattern.value)
        except PatternError as error:
            raise CelError(f"invalid matches argument: {error}") from None
        return Code(BOOL, _matches(text.run, pattern.value), text.steps + _STEPS_PER_NODE)


_COMPILERS: dict[str, Callable[[_Compiler, Node], Code]] = {
    CONSTANT: _Compiler.constant,
    IDENTIFIER: _Compiler.identifier,
    SELECT: _Compiler.select,
    CALL: _Compiler.call,
    LIST: _Compiler.list,
    STRUCT: _Compiler.struct,
    MACRO: _Compiler.macro,
    BIND: _Compiler.bind,
}


def _steps(codes: Iterable[Code]) -> int:
    return _STEPS_PER_NODE + sum(code.steps for code in codes)


def _fits(overload: Overload, types: list[str]) -> bool:
    """Whether values of these types may be arguments, as far as is known."""
    return len(types) == len(overload.parameters) and all(
        DYN in (parameter, type) or parameter == type
        for parameter, type in zip(overload.parameters, types, strict=True)
    )


def _with_library(text: str) -> str:
    """A message, with the library of Kubernetes that an expression would need."""
    for library, names in MISSING.items():
        if any(f"undeclared reference to '{name}'" in text for name in names.split()):
            return f"{text} (Kubernetes' {library} library is not supported here: write the expression without it)"
    return text


def _qualified(node: Node) -> str:
    """`a.b.c` as a text; empty for anything else."""
    names: list[str] = []
    while node.kind == SELECT and not node.is_test:
        names.append(node.name)
        node = node.children[0]
    return ".".join([node.name, *reversed(names)]) if node.kind == IDENTIFIER else ""


# -- paths


def _collect_paths(node: Node, used: dict[str, Paths]) -> None:
    steps: list[str] = []
    start = node
    while (step := _field(start)) is not None:
        steps.append(step)
        start = start.children[0]
    if start.kind == IDENTIFIER:
        _add_path(used, [start.name, *reversed(steps)])
    else:
        for child in start.children:
            _collect_paths(child, used)


def _field(node: Node) -> str | None:
    """The field that a node selects: `a.b` or `a.?b`."""
    if node.kind == SELECT:
        return node.name
    if node.kind == CALL and node.name == "_?._":
        return str(node.children[1].value)
    return None


def _add_path(used: dict[str, Paths], path: list[str]) -> None:
    for step in path[:-1]:
        inner = used.setdefault(step, {})
        if inner is None:
            return
        used = inner
    used[path[-1]] = None


# -- what runs


def _variable(name: str) -> Run:
    def run(scope: Scope, budget: CostBudget) -> Any:
        try:
            return scope[name]
        except KeyError:
            raise EvaluationError(f"no such attribute(s): {name}") from None

    return run


def _select(operand: Run, name: str) -> Run:
    def run(scope: Scope, budget: CostBudget) -> Any:
        value = operand(scope, budget)
        if isinstance(value, dict):
            try:
                return value[name]
            except KeyError:
                raise EvaluationError(f"{NO_SUCH_KEY}{name}") from None
        if isinstance(value, Optional):
            return _optional_item(value, name, budget)
        raise EvaluationError(NO_OVERLOAD)

    return run


def _has(operand: Run, name: str) -> Run:
    def run(scope: Scope, budget: CostBudget) -> bool:
        value = operand(scope, budget)
        if isinstance(value, Optional):
            value = value.value if value.is_present else {}
        if not isinstance(value, dict):
            raise EvaluationError(NO_OVERLOAD)
        return name in value

    return run


def _optional_item(value: Any, key: Any, budget: CostBudget) -> Optional:
    """An item of what may be absent, or which may be absent itself."""
    if isinstance(value, Optional):
        if not value.is_present:
            return ABSENT
        value = value.value
    try:
        return Optional(True, _found(value, key, budget))
    except _Absent:
        return ABSENT


class _Absent(EvaluationError):
    """A key or index that there is not."""


def _found(value: Any, key: Any, budget: CostBudget) -> Any:
    if isinstance(value, dict):
        found = find_key(key, value, budget.spend)
        if found is None:
            raise _Absent(f"{NO_SUCH_KEY}{str(key)[:200]}")
        return found[0]
    if isinstance(value, list):
        if isinstance(key, bool) or not isinstance(key, int | float) or key % 1:
            raise EvaluationError(NO_OVERLOAD)
        if not 0 <= key < len(value):
            raise _Absent(f"index out of bounds: {key}")
        return value[int(key)]
    raise EvaluationError(NO_OVERLOAD)


def _list_of(runs: list[tuple[Run, bool]]) -> Run:
    def run(scope: Scope, budget: CostBudget) -> list[Any]:
        found = []
        for element, is_optional in runs:
            value = element(scope, budget)
            if not is_optional:
                found.append(value)
            elif (present := _optional(value)).is_present:
                found.append(present.value)
        return found

    return run


def _map_of(runs: list[tuple[Run, Run, bool]]) -> Run:
    def run(scope: Scope, budget: CostBudget) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_of, value_of, is_optional in runs:
            key, value = key_of(scope, budget), value_of(scope, budget)
            if is_optional:
                present = _optional(value)
                if not present.is_present:
                    continue
                value = present.value
            if kind(key) not in (BOOL, INT, "uint", STRING):
                raise EvaluationError(f"unsupported key type: {kind(key)}")
            if key in found:
                raise EvaluationError("Failed with repeated key")
            found[key] = value
        return found

    return run


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise EvaluationError(NO_OVERLOAD)
    return value


def _bind(name: str, value: Run, body: Run) -> Run:
    return lambda scope, budget: body({**scope, name: value(scope, budget)}, budget)


def _matches(text: Run, pattern: str) -> Run:
    def run(scope: Scope, budget: CostBudget) -> bool:
        value = text(scope, budget)
        if not isinstance(value, str):
            raise EvaluationError(NO_OVERLOAD)
        budget.spend(steps_to_match(len(value.encode()), pattern))
        return matches(pattern, value)

    return run


def _dispatch(runs: list[Run], overloads: list[Overload]) -> Run:
    """Call the overload that fits the types of the arguments."""
    chosen: dict[tuple[str, ...], Overload | None] = {}

    def run(scope: Scope, budget: CostBudget) -> Any:
        arguments = [argument(scope, budget) for argument in runs]
        kinds = tuple(map(kind, arguments))
        if kinds not in chosen:
            chosen[kinds] = next((one for one in overloads if _fits(one, list(kinds))), None)
        overload = chosen[kinds]
        if overload is None:
            raise EvaluationError(NO_OVERLOAD)
        try:
            if overload.steps is not None:
                budget.spend(overload.steps(*arguments))
            if overload.spends:
                return overload.run(budget.spend, *arguments)
            return overload.run(*arguments)
        except EvaluationError:
            raise
        except (ValueError, OverflowError) as error:
            raise EvaluationError(str(error)[:500]) from None

    return run


# -- operators that do not evaluate all their arguments, or whose result is of the type of one


def _logical(codes: list[Code], node: Node) -> Code:
    """`&&` and `||`: the one value that decides does so although the other operand has none."""
    for code in codes:
        if code.type not in (DYN, BOOL):
            types = ", ".join(code.type for code in codes)
            raise CelError(f"found no matching overload for '{node.name}' applied to '({types})'")
    runs = [code.run for code in codes]
    decisive = node.name == "_||_"

    def run(scope: Scope, budget: CostBudget) -> bool:
        return _decide(decisive, ((operand, scope) for operand in runs), budget)

    return Code(BOOL, run, _steps(codes))


def _decide(decisive: bool, operands: Iterable[tuple[Run, Scope]], budget: CostBudget) -> bool:
    """Whether one of these is decisive, although others have no value; otherwise all must have one."""
    failure: EvaluationError | None = None
    for operand, scope in operands:
        try:
            value = operand(scope, budget)
        except CostExceeded:
            raise
        except EvaluationError as error:
            failure = failure or error
            continue
        if value is decisive:
            return bool(value)
        if not isinstance(value, bool):
            failure = failure or EvaluationError(NO_OVERLOAD)
    if failure is not None:
        raise failure
    return not decisive


def _conditional(codes: list[Code], node: Node) -> Code:
    condition, chosen, otherwise = codes
    if condition.type not in (DYN, BOOL):
        raise CelError(f"found no matching overload for '_?_:_' applied to '({condition.type})'")

    def run(scope: Scope, budget: CostBudget) -> Any:
        value = condition.run(scope, budget)
        if not isinstance(value, bool):
            raise EvaluationError(NO_OVERLOAD)
        return (chosen if value else otherwise).run(scope, budget)

    return Code(chosen.type if chosen.type == otherwise.type else DYN, run, _steps(codes))


def _index(codes: list[Code], node: Node) -> Code:
    values, key = codes
    if values.type not in (DYN, LIST_TYPE, MAP_TYPE, OPTIONAL):
        raise CelError(f"found no matching overload for '_[_]' applied to '({values.type}, {key.type})'")

    def run(scope: Scope, budget: CostBudget) -> Any:
        value, place = values.run(scope, budget), key.run(scope, budget)
        if isinstance(value, Optional):
            return _optional_item(value, place, budget)
        if isinstance(value, dict) and isinstance(place, str):
            try:
                return value[place]
            except KeyError:
                raise EvaluationError(f"{NO_SUCH_KEY}{place[:200]}") from None
        return _found(value, place, budget)

    return Code(OPTIONAL if values.type == OPTIONAL else DYN, run, _steps(codes))


def _optional_index(codes: list[Code], node: Node) -> Code:
    values, key = codes

    def run(scope: Scope, budget: CostBudget) -> Optional:
        return _optional_item(values.run(scope, budget), key.run(scope, budget), budget)

    return Code(OPTIONAL, run, _steps(codes))


_SPECIAL: dict[str, Callable[[list[Code], Node], Code]] = {
    "_&&_": _logical,
    "_||_": _logical,
    "_?_:_": _conditional,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
}


# -- macros


def _rounds(
    target: Run, variables: tuple[str, ...], steps: int
) -> Callable[[Scope, CostBudget], Iterator[tuple[Any, Scope]]]:
    """The elements of a list, or the keys of a map, each with the scope in which the variables have its value."""

    def rounds(scope: Scope, budget: CostBudget) -> Iterator[tuple[Any, Scope]]:
        values = target(scope, budget)
        if isinstance(values, dict):
            pairs: Iterable[tuple[Any, Any]] = values.items()
        elif isinstance(values, list):
            pairs = enumerate(values)
        else:
            raise EvaluationError(NO_OVERLOAD)
        inner = dict(scope)
        single = len(variables) == 1
        for key, value in list(pairs):
            budget.spend(steps)
            element = key if single and isinstance(values, dict) else value
            if single:
                inner[variables[0]] = element
            else:
                inner[variables[0]], inner[variables[1]] = key, value
            yield element, inner

    return rounds


def _quantifier(decisive: bool) -> Callable[..., Run]:
    """`all` and `exists`: one element decides although others have no value."""

    def make(target: Run, variables: tuple[str, ...], steps: int, body: Run) -> Run:
        rounds = _rounds(target, variables, steps)

        def run(scope: Scope, budget: CostBudget) -> bool:
            return _decide(decisive, ((body, inner) for _, inner in rounds(scope, budget)), budget)

        return run

    return make


def _exists_one(target: Run, variables: tuple[str, ...], steps: int, body: Run) -> Run:
    rounds = _rounds(target, variables, steps)
    return lambda scope, budget: sum(_true(body(inner, budget)) for _, inner in rounds(scope, budget)) == 1


def _true(value: Any) -> bool:
    if not isinstance(value, bool):
        raise EvaluationError(NO_OVERLOAD)
    return value


def _map(target: Run, variables: tuple[str, ...], steps: int, *bodies: Run) -> Run:
    """With two bodies, the first one chooses the elements."""
    rounds = _rounds(target, variables, steps)
    *conditions, transform = bodies

    def run(scope: Scope, budget: CostBudget) -> list[Any]:
        return [
            transform(inner, budget)
            for _, inner in rounds(scope, budget)
            if all(_true(condition(inner, budget)) for condition in conditions)
        ]

    return run


def _filter(target: Run, variables: tuple[str, ...], steps: int, body: Run) -> Run:
    rounds = _rounds(target, variables, steps)
    return lambda scope, budget: [
        element for element, inner in rounds(scope, budget) if _true(body(inner, budget))
    ]


def _sort_by(target: Run, variables: tuple[str, ...], steps: int, body: Run) -> Run:
    rounds = _rounds(target, variables, steps)

    def run(scope: Scope, budget: CostBudget) -> list[Any]:
        pairs = [(element, body(inner, budget)) for element, inner in rounds(scope, budget)]
        return sorted_by([element for element, _ in pairs], [key for _, key in pairs], budget.spend)

    return run


def _optional_map(flat: bool) -> Callable[..., Run]:
    def make(target: Run, variables: tuple[str, ...], steps: int, body: Run) -> Run:
        def run(scope: Scope, budget: CostBudget) -> Optional:
            optional = _optional(target(scope, budget))
            if not optional.is_present:
                return ABSENT
            budget.spend(steps)
            value = body({**scope, variables[0]: optional.value}, budget)
            return _optional(value) if flat else Optional(True, value)

        return run

    return make


_OPTIONAL_MACROS = ("optMap", "optFlatMap")
_MACROS: dict[str, tuple[str, Callable[..., Run], bool]] = {
    "all": (BOOL, _quantifier(False), True),
    "exists": (BOOL, _quantifier(True), True),
    "exists_one": (BOOL, _exists_one, True),
    "existsOne": (BOOL, _exists_one, True),
    "filter": (LIST_TYPE, _filter, True),
    "map": (LIST_TYPE, _map, False),
    "transformList": (LIST_TYPE, _map, False),
    "sortBy": (LIST_TYPE, _sort_by, False),
    "optMap": (OPTIONAL, _optional_map(False), False),
    "optFlatMap": (OPTIONAL, _optional_map(True), False),
}
"""By name: the type of the result, what makes the code, and whether the first body is a condition."""
