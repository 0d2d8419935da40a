"""Lines of logs: bounded, harmless, put together from pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cli.following.log_lines import LineCutter, harmless, split_timestamp, time_key


def lines(*pieces: bytes, longest: int = 100) -> list[bytes]:
    cutter = LineCutter(longest)
    cut = [line for piece in pieces for line in cutter.feed(piece)]
    return [*cut, *cutter.end()]


def test_pieces_are_put_together_to_lines() -> None:
    assert lines(b"on", b"e\ntwo\n\nthr", b"ee") == [b"one", b"two", b"", b"three"]


def test_a_line_without_end_is_cut_and_the_rest_counted() -> None:
    assert lines(*[b"x" * 10] * 30, b"\nnext\n", longest=20) == [
        b"x" * 20 + b" ... (280 bytes more)",
        b"next",
    ]


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_however_a_log_is_cut_into_pieces_the_lines_are_the_same(pieces: list[bytes]) -> None:
    assert lines(*pieces, longest=10_000) == lines(b"".join(pieces), longest=10_000)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"plain \xc3\xa4", "plain ä"),
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bc\x1b(0gone", "gone"),
        (b"10%\r50%\r100%\r", "100%"),
        (b"a\tb", "a\tb"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\x08\x00", "\\x08\\x00"),
        ("\u202eevil".encode(), "\\u202eevil"),
        (b"\x9b31m", "\ufffd31m"),
        ("\x9b31mred".encode(), "\\x9b31mred"),
    ],
)
def test_a_line_does_no_harm_to_a_terminal(line: bytes, shown: str) -> None:
    assert harmless(line) == shown


@given(st.binary(max_size=200))
def test_no_line_does(line: bytes) -> None:
    assert all(char.isprintable() or char == "\t" for char in harmless(line))


def test_the_time_of_a_line_is_taken_off() -> None:
    line = b"2026-11-17T10:20:30.123456789Z hello  world"
    assert split_timestamp(line) == ("2026-11-17T10:20:30.123456789Z", b"hello  world")
    assert split_timestamp(b"hello world") == ("", b"hello world")


def test_times_are_in_order_however_many_digits_they_have() -> None:
    stamps = [
        "2026-11-17T10:20:30Z",
        "2026-11-17T10:20:30.09Z",
        "2026-11-17T10:20:30.1Z",
        "2026-11-17T10:20:31Z",
    ]
    assert [time_key(stamp) for stamp in stamps] == sorted(map(time_key, stamps))
