"""Messages of channels: what a client may send, and that nothing it sends does harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.http.streams.channel_frames import (
    V4,
    V5,
    Channel,
    Frame,
    WindowSize,
    decode_frame,
    encode_frame,
    window_size,
)


@pytest.mark.parametrize(
    ("message", "protocol", "frame"),
    [
        (b"\0hello", V4, Frame(Channel.STDIN, b"hello")),
        (b'\4{"Width":80}', V4, Frame(Channel.RESIZE, b'{"Width":80}')),
        (b"\xff\0", V5, Frame(Channel.STDIN, end=True)),
        (b"\xff\0", V4, None),
        (b"\xff\1", V5, None),
        (b"\xff", V5, None),
        (b"\1output", V5, None),
        (b"\3status", V5, None),
        (b"\x09", V5, None),
        (b"", V5, None),
    ],
)
def test_a_client_writes_to_the_input_and_to_the_window_alone(message, protocol, frame):
    assert decode_frame(message, protocol) == frame


def test_a_message_begins_with_its_channel():
    assert encode_frame(Channel.STDERR, b"oh") == b"\2oh"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b'{"Width":80,"Height":24}', WindowSize(80, 24)),
        (b'{"Width":80,"Height":24}\n{"Width":90,"Height":30}\n', WindowSize(90, 30)),
        (b'{"Width":0,"Height":24}', None),
        (b'{"Width":"wide","Height":24}', None),
        (b"[" * 10_000, None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_the_last_size_of_a_window_counts(data, size):
    assert window_size(data) == size


@given(st.binary(max_size=50))
def test_whatever_a_client_sends_is_a_frame_or_nothing(message):
    for protocol in (V4, V5):
        frame = decode_frame(message, protocol)
        assert frame is None or frame.channel in (Channel.STDIN, Channel.RESIZE)
    window_size(message)
