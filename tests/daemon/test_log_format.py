"""Lines of the log: one each, whatever is in them."""

from __future__ import annotations

import json
import logging
import math
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.daemon.log_format import Lines, about


class Unprintable:
    def __str__(self) -> NoReturn:
        raise ValueError("no words")


ODD = st.one_of(
    st.text(),
    st.floats(),
    st.integers(),
    st.sampled_from([10**400, math.inf, math.nan, -1, "\n", "a b", "\x1b[2J", "=", Unprintable(), None]),
    st.lists(st.floats()),
)


def line(as_json: bool, message: str, *arguments: Any, **fields: Any) -> str:
    record = logging.LogRecord("stromboli.x", logging.INFO, "f", 1, message, arguments, None)
    record.__dict__.update(about(**fields))
    return Lines(as_json).format(record)


@pytest.mark.parametrize("as_json", [True, False])
@given(name=ODD, message=st.text())
def test_whatever_is_logged_is_one_line(as_json: bool, name: Any, message: str) -> None:
    for written in (
        line(as_json, "bound", pod=name),
        line(as_json, "%s is bound", name),
        line(as_json, message, name),
    ):
        assert written.isprintable()
        if as_json:
            json.loads(written, parse_constant=pytest.fail)


def test_a_message_whose_arguments_do_not_fit_is_logged_with_them() -> None:
    assert json.loads(line(True, "%d pods of %s", "many"))["message"] == "%d pods of %s ('many',)"
