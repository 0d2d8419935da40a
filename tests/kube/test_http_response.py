"""HTTP answers in whatever pieces they come: the same answer, or the same refusal to take it for one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.kube.http_connection import (
    MAX_HEAD_BYTES,
    BadResponse,
    HttpResponse,
    ResponseReader,
    ResponseTooLarge,
)

SHORT = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def read(data: bytes, max_bytes: int = 1000) -> HttpResponse | None:
    return ResponseReader(max_bytes).feed(data)


def chunked(pieces: list[bytes], trailer: bytes = b"") -> bytes:
    return (
        CHUNKED
        + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        + b"0\r\n"
        + trailer
        + b"\r\n"
    )


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An answer on the wire, and its body."""
    pieces = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    body = b"".join(pieces)
    first = draw(
        st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"])
    )
    if draw(st.booleans()):
        return first + chunked(pieces, draw(st.sampled_from([b"", b"X-Sum: 1\r\n"]))), body
    return first + b"HTTP/1.1 200 OK\r\ncontent-LENGTH:%d\r\n\r\n%b" % (len(body), body), body


@given(answers(), st.lists(st.integers(0, 400)))
def test_however_an_answer_is_cut_it_is_the_same(given: tuple[bytes, bytes], cuts: list[int]) -> None:
    data, body = given
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    reading = ResponseReader(1000)
    responses = [reading.feed(data[begin:end]) for begin, end in pairwise(places)]
    assert responses[-1] == HttpResponse(200, body, None, closes=False)
    assert not any(responses[:-1])


@given(st.binary(max_size=200))
def test_rubbish_is_never_a_crash(data: bytes) -> None:
    for whole in (data, CHUNKED + data, b"HTTP/1.1 200 OK\r\n" + data):
        try:
            read(whole, 50)
        except (BadResponse, ResponseTooLarge):
            continue


@pytest.mark.parametrize(
    ("data", "last"),
    [
        (SHORT, False),
        (SHORT.replace(b"1.1", b"1.0"), True),
        (SHORT.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), True),
        (SHORT + b"HTTP/1.1 200 OK", True),
    ],
)
def test_a_connection_is_used_again_unless_something_speaks_against_it(data: bytes, last: bool) -> None:
    assert read(data) == HttpResponse(201, b"{}", None, last)


def test_an_answer_of_unsaid_length_is_whole_when_the_connection_ends() -> None:
    reading = ResponseReader(1000)
    assert reading.feed(b"HTTP/1.1 200 OK\r\n\r\nso much") is None
    assert reading.end() == HttpResponse(200, b"so much", None, closes=True)


@pytest.mark.parametrize("data", [SHORT[:-1], chunked([b"abc"])[:-1], b"HTTP/1.1 200 OK\r\n", b""])
def test_half_an_answer_is_none(data: bytes) -> None:
    reading = ResponseReader(1000)
    assert reading.feed(data) is None
    with pytest.raises(BadResponse):
        reading.end()


def test_an_answer_without_a_body_needs_no_length() -> None:
    assert read(b"HTTP/1.1 204 No Content\r\n\r\n") == HttpResponse(204, b"", None, closes=False)


def test_only_a_refusal_says_when_to_come_again() -> None:
    head = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"
    assert read(head) == HttpResponse(429, b"", 7.0, closes=False)
    assert read(head.replace(b"429", b"200")) == HttpResponse(200, b"", None, closes=False)
    assert read(head.replace(b"7", b"Wed")) == HttpResponse(429, b"", None, closes=False)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 11,
        CHUNKED + b"b\r\n",
        CHUNKED + b"8\r\n12345678\r\n3\r\n",
    ],
)
def test_what_is_larger_than_allowed_is_known_as_early_as_can_be(data: bytes) -> None:
    with pytest.raises(ResponseTooLarge):
        read(data, 10)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES,
        CHUNKED + b"zz\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"0\r\n" + b"x" * (MAX_HEAD_BYTES + 1),
    ],
)
def test_what_is_no_answer_is_called_so(data: bytes) -> None:
    with pytest.raises(BadResponse):
        read(data)
