"""Expressions are compiled once, and those that were not used for long are forgotten."""

from stromboli.api.cel.expression_cache import MAX_KEPT, ExpressionCache


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
