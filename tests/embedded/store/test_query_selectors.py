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
    ):
        assert Selector((), parse_fields(text)).matches({}, lambda path: fields.get(path, "")) is meant
