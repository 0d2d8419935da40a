"""What bodies of requests decode to."""

import pytest

from stromboli.api.patches import APPLY
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.http.request_bodies import decode_body


def test_keys_of_yaml_that_are_numbers_become_texts_as_in_json() -> None:
    assert decode_body(b"5: {1.5: a}\n", APPLY) == {"5": {"1.5": "a"}}


@pytest.mark.parametrize("body", [b"null: a\n", b"[a]: b\n", b"{a: b}: c\n"])
def test_yaml_with_keys_that_json_cannot_have_is_refused(body: bytes) -> None:
    with pytest.raises(StatusError, match="error decoding the body") as refusal:
        decode_body(body, APPLY)
    assert refusal.value.code == 400


def test_what_an_alias_repeats_is_a_copy() -> None:
    content = decode_body(b"a: &a [x]\nb: *a\n", APPLY)
    content["a"].append("y")
    assert content["b"] == ["x"]


def test_aliases_of_aliases_are_counted_before_they_are_copied() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"]
    lines += [b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 9)]
    with pytest.raises(StatusError) as refusal:
        decode_body(b"".join(lines), APPLY)
    assert refusal.value.code in (400, 413)
