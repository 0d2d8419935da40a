"""Frames of SPDY: read the same however they are cut, and refused when they are too large."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.http.streams.spdy_frames import (
    LARGEST_CONTROL,
    Control,
    Data,
    Flag,
    GoAway,
    Ping,
    Reset,
    SpdyReader,
    SpdyWriter,
    StreamReset,
    Syn,
    control_frame,
    data_frame,
    goaway_frame,
    ping_frame,
    reset_frame,
)
from stromboli.embedded.http.streams.spdy_headers import SpdyError

STREAM = st.integers(1, 2**31 - 1)
FRAMES = st.one_of(
    st.builds(Syn, STREAM, st.just({"streamtype": "data", "port": "80"}), st.booleans()),
    st.builds(Data, STREAM, st.binary(max_size=40), st.booleans()),
    st.builds(StreamReset, STREAM),
    st.builds(Ping, st.integers(0, 2**32 - 1)),
    st.just(GoAway()),
)


def encoded(frame, writer):
    match frame:
        case Syn(stream, headers, fin):
            return writer.open(stream, headers, fin)
        case Data(stream, data, fin):
            return data_frame(stream, data, fin)
        case StreamReset(stream):
            return reset_frame(stream, Reset.CANCEL)
        case Ping(number):
            return ping_frame(number)
        case _:
            return goaway_frame(1)


def joined(frames):
    """Parts of a data frame as one."""
    result = []
    for frame in frames:
        last = result[-1] if result else None
        if isinstance(frame, Data) and isinstance(last, Data) and last.stream == frame.stream:
            result[-1] = Data(frame.stream, last.data + frame.data, frame.fin)
        else:
            result.append(frame)
    return result


@given(st.lists(FRAMES, max_size=8), st.lists(st.integers(1, 30), min_size=1, max_size=5))
def test_frames_are_read_however_the_bytes_are_cut(frames, sizes):
    writer, reader = SpdyWriter(), SpdyReader()
    rest = b"".join(encoded(frame, writer) for frame in frames)
    read = []
    while rest:
        for size in sizes:
            read += reader.feed(rest[:size])
            rest = rest[size:]
    assert joined(read) == joined(frames)


def test_a_reply_and_further_headers_are_read_over():
    writer = SpdyWriter()
    reply = writer.reply(1)
    more = control_frame(Control.HEADERS, struct.pack(">I", 1) + writer._headers.encode({"a": "b"}))
    opened = writer.open(3, {"c": "d"})
    assert list(SpdyReader().feed(reply + more + opened)) == [Syn(3, {"c": "d"})]


def test_a_large_data_frame_is_not_kept():
    reader = SpdyReader()
    list(reader.feed(struct.pack(">II", 1, 0xFFFFFF)))
    for _ in range(10):
        assert list(reader.feed(b"x" * 1000)) == [Data(1, b"x" * 1000)]
    assert len(reader._head) == 0


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (struct.pack(">II", 0x80030001, LARGEST_CONTROL + 1), f"where {LARGEST_CONTROL} are allowed"),
        (struct.pack(">II", 0x80030001, 0xFFFFFF), f"where {LARGEST_CONTROL} are allowed"),
        (struct.pack(">II", 0x80020006, 4) + bytes(4), "version 2"),
        (b"\xff" * 8, "a control frame of"),
        (control_frame(Control.SYN_STREAM, b"\0" * 4), "cut off"),
        (control_frame(Control.RST_STREAM, b"\0" * 4), "cut off"),
        (control_frame(Control.SYN_STREAM, bytes(10) + b"garbage", Flag.FIN), "cannot be decompressed"),
    ],
)
def test_hostile_frames_end_the_connection(hostile, why):
    with pytest.raises(SpdyError, match=why):
        list(SpdyReader().feed(hostile))


@given(st.binary(max_size=200))
def test_whatever_is_received_is_frames_or_an_error(garbage):
    with suppress(SpdyError):
        list(SpdyReader().feed(garbage))
