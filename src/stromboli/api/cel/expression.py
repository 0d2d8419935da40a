"""Environments that declare variables, the expressions compiled in them, and their evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stromboli.api.cel.evaluation_cost import MAX_ITERATIONS, cost
from stromboli.api.cel.supported_functions import EFFORTS, MISSING
from stromboli.api.cel.syntax_tree import CALL, CONSTANT, IDENTIFIER, SELECT, STRUCT, Node, read_tree
from stromboli.api.cel.tree_encoding import encoded_tree
from stromboli.api.cel.tree_rewriting import TABLE, FunctionTable, declarations, rewritten
from stromboli.api.cel.value_size import UnsupportedValue, measured
from stromboli.api.patterns import PatternError, PatternSet

if TYPE_CHECKING:
    from cel_expr_python import cel

MAX_EXPRESSION = 5 * 1024
"""Bytes of an expression."""
MAX_COST = 100_000_000
"""Steps of an evaluation, or of all that share a `CostBudget`: a step is about a nanosecond."""

MAX_CALLS = 100
"""Different calls of functions that the library lacks, beyond those that are known in advance."""

Paths = dict[str, "Paths"] | None
"""Fields that an expression uses, by name, with those of each that it uses; None for all."""

_EXTENSIONS = ("bindings", "lists", "optional", "sets", "strings", "two-var-comprehensions")
NO_SUCH_KEY = "no such key: "
_ERRORS = {
    "Key not found in map : ": NO_SUCH_KEY,
    "divide by zero": "division by zero",
    "No matching overloads found : ": "no such overload: ",
    "Index error: index=": "index out of bounds: ",
    "Iteration budget exceeded": f"more than {MAX_ITERATIONS} iterations",
}
"""What cel-go, which Kubernetes uses, says instead."""


class CelError(ValueError):
    """An expression that cannot be compiled."""


class EvaluationError(ValueError):
    """An expression without a value: a missing key, a wrong type, or a cost that is too high."""


class CostExceeded(EvaluationError):
    """An evaluation that was not begun, because it could take too long."""


class CostBudget:
    """The steps that several evaluations share, such as those of all rules for an object."""

    def __init__(self, steps: int = MAX_COST) -> None:
        self.steps = steps
        self.spent = 0

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise CostExceeded(
                f"it could take more than {MAX_COST} steps: shorten lists and texts, or simplify the expression"
            )
        self.spent += steps


class Environment:
    """Variables of any type, by name, and Kubernetes' functions."""

    def __init__(
        self,
        variables: Iterable[str],
        longest: int = MAX_EXPRESSION,
        rewrite: Callable[[Node], Node] = lambda tree: tree,
    ) -> None:
        """`longest` is the bytes of an expression; `rewrite` gives meaning to what variables of a kind mean by it."""
        from cel_expr_python import cel  # 60 ms, which only those who use CEL pay

        self._longest = longest
        self._rewrite = rewrite
        self._types = cel.Type
        listed = "".join(f"- name: {name}\n" for name in _EXTENSIONS)
        self._environment = cel.NewEnv(
            config=cel.NewEnvConfigFromYaml(f"extensions:\n{listed}"),
            variables=dict.fromkeys((*variables, TABLE), cel.Type.DYN),
            functions=declarations(),
        )

    def compile(self, text: str, result: str = "bool") -> Expression:
        """An expression whose result is `bool` or `string`."""
        if len(text.encode(errors="replace")) > self._longest:
            raise CelError(f"an expression may have at most {self._longest} bytes")
        if "\0" in text or text.encode(errors="replace").decode() != text:
            raise CelError("an expression must be a text without NUL characters and broken Unicode")
        try:
            compiled = self._environment.compile(text)
        except (RuntimeError, MemoryError) as error:
            raise CelError(_compile_error(str(error))) from None
        expected = self._types.BOOL if result == "bool" else self._types.STRING
        if compiled.return_type() not in (expected, self._types.DYN):
            raise CelError(f"cel expression must evaluate to a {result}")
        written = read_tree(compiled.serialize())
        tree = rewritten(self._rewrite(written))
        _check_functions(tree)
        if tree != written:
            if any(node.has_optional for node in tree):
                raise CelError(
                    "optional elements, as in [?a.b], are not supported here with functions of Kubernetes"
                )
            compiled = self._deserialized(tree)
        return Expression(text, tree, compiled, expected, self._types.ERROR)

    def _deserialized(self, tree: Node) -> cel.Expression:
        try:
            return self._environment.deserialize(encoded_tree(tree))
        except RuntimeError:
            raise CelError(
                "calls of functions of Kubernetes are nested too deeply: simplify the expression"
            ) from None


class Expression:
    """A compiled expression."""

    def __init__(
        self, text: str, tree: Node, compiled: cel.Expression, expected: cel.Type, error: cel.Type
    ) -> None:
        self.text = text
        self.tree = tree
        self._compiled = compiled
        self._expected = expected
        self._error = error
        self._table = FunctionTable(tree)

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
        needed = {name: _reduced(values[name], paths) for name, paths in self.paths.items() if name in values}
        if not self._table.is_needed:
            return self._result(self._evaluated(needed, budget))
        needed[TABLE] = self._table.results(needed, budget.spend)
        for _ in range(MAX_CALLS):
            result = self._evaluated(needed, budget)
            try:
                call = self._table.call(str(result), budget.spend) if result.type() == self._error else None
            except EvaluationError:
                raise
            except ValueError as error:
                raise EvaluationError(str(error)) from None
            if call is None:
                return self._result(result)
            needed[TABLE][call[0]] = call[1]
        raise EvaluationError(f"more than {MAX_CALLS} different calls of functions of Kubernetes")

    def _evaluated(self, values: Mapping[str, Any], budget: CostBudget) -> cel.Value:
        try:
            budget.spend(cost(self.tree, {name: measured(value) for name, value in values.items()}))
        except UnsupportedValue as error:
            raise EvaluationError(str(error)) from None
        try:
            return self._compiled.eval(data=values)
        except (RuntimeError, MemoryError) as error:
            raise EvaluationError(_runtime_error(str(error))) from None

    def _result(self, result: cel.Value) -> Any:
        """The library counts references to None wrongly: a result that is null must not be asked for its value."""
        kind = result.type()
        if kind == self._expected:
            return result.value()
        raise EvaluationError(_runtime_error(str(result)) if kind == self._error else "no such overload")


def _check_functions(tree: Node) -> None:
    patterns = PatternSet()
    for node in tree:
        if node.kind == STRUCT and node.name:
            raise CelError(f"undeclared reference to '{node.name}'")
        if node.kind != CALL:
            continue
        if node.name == "matches":
            _check_pattern(node, patterns)
        elif node.name not in EFFORTS:
            raise CelError(_with_library(f"undeclared reference to '{node.name}'"))


def _check_pattern(node: Node, patterns: PatternSet) -> None:
    """The cost of a pattern must be known before it is evaluated."""
    pattern = node.children[1]
    if pattern.kind != CONSTANT or not isinstance(pattern.value, str):
        raise CelError(
            "the pattern of matches() must be a literal here, because it bounds the cost; write it out"
        )
    try:
        patterns.add(pattern.value)
    except PatternError as error:
        raise CelError(f"invalid matches argument: {error}") from None


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


def _reduced(value: Any, paths: Paths) -> Any:
    """The fields of a value that are used: values are converted whole, whatever the expression reads of them."""
    if paths is None or not isinstance(value, dict):
        return value
    return {name: _reduced(value[name], inner) for name, inner in paths.items() if name in value}


def _compile_error(message: str) -> str:
    """What the library says, in a line."""
    lines = [
        line.partition("ERROR: <input>:")[2] for line in message.splitlines() if "ERROR: <input>:" in line
    ]
    text = "; ".join(dict.fromkeys(line.split(" ", 1)[-1] for line in lines)) or message
    text = text.replace(" (in container '')", "")
    return _with_library(text[:1000])


def _with_library(text: str) -> str:
    """A message, with the library of Kubernetes that an expression would need."""
    for library, names in MISSING.items():
        if any(f"undeclared reference to '{name}'" in text for name in names.split()):
            return f"{text} (Kubernetes' {library} library is not supported here: write the expression without it)"
    return text


def _runtime_error(message: str) -> str:
    for code in ("INVALID_ARGUMENT: ", "NOT_FOUND: ", "UNKNOWN: ", "OUT_OF_RANGE: ", "INTERNAL: "):
        message = message.removeprefix(code)
    for ours, theirs in _ERRORS.items():
        message = message.replace(ours, theirs)
    return message.partition(" [")[0].partition(" size=")[0][:500]
