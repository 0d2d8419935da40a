"""Expressions are compiled and type-checked, take what they need of their variables, and stop at their budget."""

import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stromboli.api.cel.expression import (
    MAX_COST,
    MAX_KEPT,
    CelError,
    CostBudget,
    CostExceeded,
    Environment,
    EvaluationError,
    ExpressionCache,
)
from tests.number_of_examples import scaled

ENVIRONMENT = Environment(["self", "other"])


def evaluate(text: str, **values: Any) -> Any:
    return ENVIRONMENT.compile(text).evaluate(values)


def test_an_expression_has_a_value_for_its_variables() -> None:
    assert evaluate("self.a > 1 && other.exists(x, x == self.a)", self={"a": 2}, other=[1, 2]) is True
    assert ENVIRONMENT.compile("self + '!'", "string").evaluate({"self": "hi"}) == "hi!"


@pytest.mark.parametrize(
    "text", ["self.a ==", "unknown == 1", "1 + 1", "self.foo()", "true && 'a'", "\ud800", "\0"]
)
def test_what_cannot_be_compiled_is_refused(text: str) -> None:
    with pytest.raises(CelError):
        ENVIRONMENT.compile(text)


@pytest.mark.parametrize("text", ["self.a == 1", "self[3] == 1", "1 / self.zero == 1", "dyn(self)"])
def test_what_has_no_value_is_an_error(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(text, self={"zero": 0})


def test_only_what_is_used_is_converted() -> None:
    expression = ENVIRONMENT.compile("self.spec.?a.orValue(1) == 1 && has(self.spec.b.c) && other == 1")
    assert expression.paths == {"self": {"spec": {"a": None, "b": {"c": None}}}, "other": None}
    assert expression.evaluate({"self": {"spec": {"b": {"c": 1}, "huge": "x" * 10**8}}, "other": 1})


def test_evaluations_share_a_budget() -> None:
    budget = CostBudget()
    expression = ENVIRONMENT.compile("self.all(x, x >= 0)")
    values = {"self": list(range(1000))}
    assert expression.evaluate(values, budget)
    assert 0 < MAX_COST - budget.steps < MAX_COST / 10
    with pytest.raises(CostExceeded, match="shorten lists and texts, or simplify the expression"):
        all(expression.evaluate(values, budget) for _ in range(1000))


LISTS = st.sampled_from(
    ["self.l", "self.n", "self.s.split('a')", "self.l.map(x, dyn(x))", "dyn([self.s, self.t])"]
)
TEXTS = st.sampled_from(["self.s", "self.t", "'abc'", "self.s.replace('a', self.t)", "(self.s + self.t)"])


@st.composite
def expressions(draw: st.DrawFn) -> str:
    one, two, text, other = draw(LISTS), draw(LISTS), draw(TEXTS), draw(TEXTS)
    form = draw(
        st.sampled_from(
            [
                f"{one} == {two}",
                f"{text} in {two}",
                f"{one}.all(x, {two}.exists(y, x == y))",
                f"{one}.map(x, {text}).join({other}).size() > 0",
                f"{one}.all(x, {text}.contains({other}))",
                f"{one}.filter(x, {text} != {other}).size() > 3",
                f"{one}.all(x, {text}.indexOf({other}) > 0 || {text}.matches('(a|aa)+$'))",
                f"sets.contains({one}, {two})",
                f"{one}.all(x, {text}.split({other}).size() > 0)",
                f"'%s %s'.format([{one}, {text}]).lowerAscii().reverse() == ''",
                f"({one} + {one}).distinct().size() > 0",
                f"{one}.sortBy(x, {text}).size() > 0",
            ]
        )
    )
    return str(form)


@settings(max_examples=scaled(30), deadline=None)
@given(expressions(), st.integers(0, 400), st.integers(0, 4000))
@example("self.l.map(x, self.l).size() > 0", 400, 1)
@example("self.l.all(x, self.s.split('').size() > 0)", 400, 400)
@example("self.l.all(x, !''.matches('[^a]{1000}b'))", 400, 0)
@example(r"self.l.all(x, !x.a.matches('\\pL{9}'))", 400, 0)
@example("self.n.map(x, x.a).sum().size() > 0", 400, 0)
@example("self.l.map(x, self.s).sum().size() > 0", 400, 4000)
def test_what_fits_the_budget_is_quick(text: str, items: int, length: int) -> None:
    value = {
        "l": list(range(items)),
        "n": [{"a": str(item)} for item in range(items)],
        "s": "a" * length,
        "t": "ab" * 9,
    }
    expression = ENVIRONMENT.compile(text)
    started = time.process_time()
    try:
        expression.evaluate({"self": value})
    except CostExceeded:
        assert time.process_time() - started < 1
    except EvaluationError:
        pass
    assert time.process_time() - started < 1.5


def test_an_expression_has_few_instructions_of_patterns() -> None:
    pattern = r"self.matches(r'\pL{{9}}a{{{}}}')"
    started = time.process_time()
    with pytest.raises(CelError, match="use fewer, or avoid counted repetitions"):
        ENVIRONMENT.compile(" || ".join(pattern.format(number) for number in range(100)))
    assert time.process_time() - started < 3
    assert ENVIRONMENT.compile(" || ".join([pattern.format(1)] * 100))


def test_a_cost_grows_with_what_is_read() -> None:
    expression = ENVIRONMENT.compile("self.s.contains('a')")
    short, long = CostBudget(), CostBudget()
    expression.evaluate({"self": {"s": "x" * 10}}, short)
    expression.evaluate({"self": {"s": "x" * 100_000}}, long)
    assert short.spent < 10_000
    assert long.spent > 100_000
    assert long.steps == MAX_COST - long.spent


def test_an_expression_is_compiled_once() -> None:
    cache = ExpressionCache(["self"])
    expression = cache.compiled("self == 'a'")
    assert cache.compiled("self == 'a'") is expression
    assert cache.compiled("'a'", "string") is not cache.compiled("'b'", "string")


def test_expressions_that_were_used_last_are_kept() -> None:
    cache = ExpressionCache(["self"])
    first, second = cache.compiled("self == 1"), cache.compiled("self == 2")
    text = f"self == '{'x' * 5000}{{}}'"
    for number in range(MAX_KEPT // 5000 + 1):
        assert cache.compiled(text.format(number)).evaluate({"self": "x"}) is False
        assert cache.compiled("self == 1") is first
    assert cache.compiled("self == 2") is not second
