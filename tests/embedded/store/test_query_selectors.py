"""Label and field selectors as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.store.query_selectors import Selector, parse_fields, parse_labels

LABELS = {"app": "web", "n": "5", "empty": ""}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,n", True),
        ("app!=web", False),
        ("other!=x", True),
        ("app in (web, db)", True),
        ("app notin (web)", False),
        ("other notin (web)", True),
        ("!app", False),
        ("!other", True),
        ("n>4", True),
        ("n<5", False),
        ("app>4", False),
        ("empty=", True),
        ("other=", False),
        ("example.com/app", False),
        ("app in (a),n", False),
    ],
)
def test_labels_are_chosen_as_kubernetes_does(text: str, meant: bool) -> None:
    assert Selector(parse_labels(text)).matches(LABELS, lambda path: "") is meant


@pytest.mark.parametrize(
    "text", ["a b", "app in web", "=x", "app=(x)", "a=b=c", "!", "app in (a", "x" * 70_000]
)
def test_what_is_no_selector_is_a_bad_request(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused(text: str) -> None:
    for parse in (parse_labels, parse_fields):
        try:
            chosen = parse(text)
        except StatusError as refused:
            assert refused.code == 400
        else:
            [term.holds(LABELS if parse is parse_labels else (lambda path: "")) for term in chosen]  # type: ignore[arg-type]


def test_fields_are_equal_or_not() -> None:
    fields = {"metadata.name": "a", "status.phase": "Running", "reason": "a,b=c"}
    for text, meant in (
        ("metadata.name=a,status.phase!=Failed", True),
        ("metadata.name==b", False),
        (r"reason=a\,b\=c", True),
        (r"metadata.name=a\\,reason=a\,b\=c", False),
    ):
        assert Selector((), parse_fields(text)).matches({}, lambda path: fields.get(path, "")) is meant


def test_a_selector_has_so_many_conditions_but_sets_of_any_size() -> None:
    values = ",".join(f"v{number}" for number in range(1000))
    assert len(parse_labels(f"a in ({values})")[0].values) == 1000
    for parse, operator in ((parse_labels, "!="), (parse_fields, "=")):
        terms = [f"a{number}{operator}b" for number in range(51)]
        assert len(parse(",".join(terms[:50]))) == 50
        with pytest.raises(StatusError, match="has 51 conditions, and 50 are allowed"):
            parse(",".join(terms))
