"""The functions that expressions may call: what they return, and that none can take long."""

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.cel.expression import CelError, CostExceeded, Environment, EvaluationError
from stromboli.api.resources.quantity import exact

ENVIRONMENT = Environment(["self"])


def evaluate(text: str, value: Any = None) -> Any:
    return ENVIRONMENT.compile(text).evaluate({"self": value})


@pytest.mark.parametrize(
    "text",
    [
        "quantity('2Gi').isGreaterThan(quantity('1Gi')) && quantity('1500m').isLessThan(quantity('2'))",
        "quantity('1024Mi') == quantity('1Gi') && quantity('1').compareTo(quantity('1000m')) == 0",
        "quantity('-2').compareTo(quantity('-1')) == -1 && quantity('1').compareTo(quantity('-1')) == 1",
        "quantity('1Gi').add(quantity('1Gi')).sub(5).asInteger() == 2147483643",
        "quantity('-1').sign() == -1 && quantity('0').sign() == 0 && quantity('1m').sign() == 1",
        "quantity('1').isInteger() && !quantity('1.5').isInteger()",
        "quantity('1500m').asApproximateFloat() == 1.5",
        "isQuantity('1Gi') && !isQuantity('one')",
        "isIP('10.0.0.1') && isIP('2001:db8::1') && !isIP('10.0.0') && !isIP('::ffff:10.0.0.1') && !isIP('fe80::1%a')",
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && ip('0.0.0.0').isUnspecified()",
        "ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.5').isLinkLocalMulticast()",
        "ip('10.0.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "ip('2001:db8:0::1') == ip('2001:db8::1') && !ip.isCanonical('2001:db8:0::1')",
        "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0/08')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsCIDR(cidr('::/0'))",
        "cidr('10.1.2.3/8').ip() == ip('10.1.2.3') && cidr('10.1.2.3/8').prefixLength() == 8",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
        "'abc 42 7'.find('[0-9]+') == '42' && 'abc'.find('[0-9]+') == ''",
        "[1, 2, 3].sum() == 6 && [0.5, 1.0].sum() == 1.5 && [duration('1m'), duration('2m')].sum() == duration('3m')",
        "[1, 2, 2].isSorted() && !['b', 'a'].isSorted() && [3, 1, 2].min() == 1 && ['a', 'c', 'b'].max() == 'c'",
    ],
)
def test_a_function_returns_what_it_does_in_kubernetes(text: str) -> None:
    assert evaluate(text) is True


def test_functions_take_computed_texts_too() -> None:
    text = "self.all(x, quantity(x.n + 'Mi').isLessThan(quantity('1Gi')) && isIP('10.0.0.' + x.n))"
    assert evaluate(text, [{"n": str(number)} for number in range(20)]) is True
    assert evaluate(text, [{"n": "5000"}]) is False


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("quantity(self).isInteger()", "bad quantity"),
        ("ip(self).family() == 4", "does not appear to be an IPv4 or IPv6 address"),
        ("self.sign() == 1", "no such overload"),
        ("quantity('1.5').asInteger() == 1", "cannot convert value to integer"),
        ("[].min() == 1", "min called on empty list"),
        ("self.find('(') == ''", "missing closing )"),
    ],
)
def test_a_call_without_a_result_is_an_error(text: str, why: str) -> None:
    with pytest.raises(EvaluationError) as error:
        evaluate(text, "x")
    assert why in str(error.value)
    assert evaluate(f"true || ({text})", "x") is True
    assert evaluate(f"({text}) || true", "x") is True


@pytest.mark.parametrize(
    "text", ["quantity(1) == 1", "isURL('a')", "self.findAll('a') == []", "semver(1) == 1"]
)
def test_what_is_not_there_is_refused(text: str) -> None:
    with pytest.raises(CelError):
        ENVIRONMENT.compile(text)


def test_many_calls_are_bounded_in_time() -> None:
    texts = [f"{number}" for number in range(2000)]
    started = time.process_time()
    assert evaluate("self.all(x, quantity(x + 'Mi').isLessThan(quantity('9Gi')))", texts) is True
    assert evaluate("self.all(x, isQuantity(x) || x != '')", texts) is True
    with pytest.raises(EvaluationError):
        evaluate("self.find('[a-z]*[^z]{900}x') == ''", "xa" * 50_000)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("method", ["max", "min", "sum", "isSorted"])
def test_nested_methods_are_evaluated_once_each(method: str) -> None:
    """Trees in which an operand is repeated would grow exponentially."""
    started = time.process_time()
    with pytest.raises((CelError, EvaluationError)):
        evaluate(f"dyn(self{f'.{method}()' * 20}) == 1", [1])
    with pytest.raises(CelError):
        evaluate("0.compareTo(" * 15 + "self" + ")" * 15 + " == 1", [1])
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    "text",
    ["(" * 100 + "true" + ")" * 100, "self" + " + 1" * 1000 + " == 1", "self" + ".a" * 1000, "-" * 3000],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(CelError, match=r"nested too deeply: simplify it|Syntax error"):
        ENVIRONMENT.compile(text)


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "0x" + "f" * 5000, "9" * 20, "9" * 30 + "u"])
def test_an_integer_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(CelError, match=r"invalid u?int literal"):
        ENVIRONMENT.compile(f"{text} == 1")


def test_long_conditions_are_not_deep() -> None:
    assert evaluate(" || ".join(["self == 1"] * 300), 1) is True
    assert evaluate(f"{'!' * 1000}self", True) is True


@pytest.mark.parametrize("values", [["a", "b"], [[1], [2]], ["a"]])
def test_only_numbers_have_a_sum(values: list[Any]) -> None:
    """The sum of texts or lists, and of such sums, would take any amount of memory."""
    with pytest.raises(EvaluationError, match="no such overload"):
        evaluate("dyn(self.sum()) != null", values)


def test_patterns_of_an_object_are_compiled_at_a_bounded_cost() -> None:
    patterns = [rf"\pL{{9}}a{{{number}}}" for number in range(90)]
    started = time.process_time()
    with pytest.raises(CostExceeded):
        evaluate("self.all(x, 'a'.find(x) == '')", patterns)
    assert time.process_time() - started < 3


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
@example('"')
@example("'\"\\\n")
def test_any_text_reaches_a_function(text: str) -> None:
    assert evaluate("self.find('(?s).*') == self", text) is True


QUANTITIES = st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,4})?(m|k|M|Ki|Gi|e2)?", fullmatch=True)


@given(QUANTITIES, QUANTITIES)
@example("1Gi", "1073741824")
@example("-0.5", "-500m")
def test_quantities_compare_by_their_values(left: str, right: str) -> None:
    one, two = exact(left), exact(right)
    compared = ENVIRONMENT.compile("quantity(self.l).compareTo(quantity(self.r)) == self.c")
    assert compared.evaluate({"self": {"l": left, "r": right, "c": (one > two) - (one < two)}}) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lists.range(100).exists(i, 'x'.find(self) == 'y')", r"\pL" * 1300),
        ("lists.range(100000).exists(i, self.lastIndexOf('ab' + self) == 1)", "a" * 20_000),
        ("lists.range(100000).exists(i, self + 'a' < self)", "a" * 300_000),
        (
            "lists.range(100000).exists(i, semver(self).isLessThan(semver(self)))",
            "1.0.0-" + ".".join("a" * 20_000),
        ),
        ("lists.range(100000).exists(i, {'a': 1}[self] == 1)", "a" * 1_000_000),
    ],
)
def test_calls_are_charged_by_the_sizes_of_their_arguments(text: str, value: str) -> None:
    started = time.process_time()
    with pytest.raises(CostExceeded):
        evaluate(text, value)
    assert time.process_time() - started < 3


@pytest.mark.parametrize(
    "text",
    [
        "timestamp('2020-01-01T00:00:00.5') == self",
        "timestamp('2020-W01-1T00:00:00Z') == self",
        "timestamp('2020-01-01T00:00:00+00') == self",
        "int('\u0661') == 1",
        "uint('+1') == 1u",
        "[1][double('nan')] == 1",
    ],
)
def test_what_cannot_be_read_has_no_value(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(text)
    assert evaluate(f"({text}) || true") is True


def test_keys_of_maps_are_compared_by_type() -> None:
    assert evaluate("{true: 'a'} == {1: 'a'}") is False
    assert evaluate("{1: 'a'} == {1u: 'a'}") is True
