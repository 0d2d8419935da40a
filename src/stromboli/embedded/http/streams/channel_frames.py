"""Messages of a WebSocket that carries the channels of a command: the first byte is the channel."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
PROTOCOLS = (V5, V4)
"""That we speak; the second lets a client close its input without leaving."""
_CLOSE = 255


class Channel(IntEnum):
    STDIN = 0
    STDOUT = 1
    STDERR = 2
    ERROR = 3
    """Carries a Status at the end."""
    RESIZE = 4


class Frame(NamedTuple):
    """What a client sent on a channel."""

    channel: Channel
    data: bytes = b""
    end: bool = False
    """The client sends nothing more on it."""


class WindowSize(msgspec.Struct, rename="pascal"):
    """Of a terminal, as clients send it."""

    width: int = 0
    height: int = 0


def encode_frame(channel: Channel, data: bytes) -> bytes:
    return bytes((channel,)) + data


def decode_frame(message: bytes, protocol: str) -> Frame | None:
    """None if it is for no channel that a client may write to."""
    if not message:
        return None
    number, data = message[0], message[1:]
    if number == _CLOSE and protocol == V5:
        return Frame(Channel.STDIN, end=True) if data[:1] == bytes((Channel.STDIN,)) else None
    return Frame(Channel(number), data) if number in (Channel.STDIN, Channel.RESIZE) else None


def window_size(data: bytes) -> WindowSize | None:
    """The last size in a line of its own; None if there is none."""
    try:
        size = msgspec.json.decode(data.strip().rpartition(b"\n")[2], type=WindowSize)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return size if size.width > 0 and size.height > 0 else None
