"""Frames of SPDY/3.1, without I/O: bytes to frames as they come, and frames to bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from enum import IntEnum, IntFlag
from typing import NamedTuple

from stromboli.embedded.http.streams.spdy_headers import HeaderReader, HeaderWriter, SpdyError

VERSION = 3
LARGEST_CONTROL = 16 * 1024
"""Bytes of a control frame; data frames may be as large as they like, as they are not kept whole."""
_CONTROL = 0x80000000
_STREAM_ID = 0x7FFFFFFF


class Control(IntEnum):
    """Types of control frames that matter; others are skipped."""

    SYN_STREAM = 1
    SYN_REPLY = 2
    RST_STREAM = 3
    PING = 6
    GOAWAY = 7
    HEADERS = 8


class Flag(IntFlag):
    NONE = 0
    FIN = 1


class Reset(IntEnum):
    """Why a stream is reset."""

    PROTOCOL_ERROR = 1
    INVALID_STREAM = 2
    REFUSED_STREAM = 3
    CANCEL = 5


class Syn(NamedTuple):
    """A new stream."""

    stream: int
    headers: dict[str, str]
    fin: bool = False


class Data(NamedTuple):
    """A part of a data frame."""

    stream: int
    data: bytes
    fin: bool = False


class StreamReset(NamedTuple):
    stream: int


class Ping(NamedTuple):
    number: int


class GoAway(NamedTuple):
    """The other side opens no more streams."""


Frame = Syn | Data | StreamReset | Ping | GoAway


class SpdyReader:
    """Frames of a connection."""

    def __init__(self) -> None:
        self._headers = HeaderReader()
        self._head = bytearray()
        """The header of a frame, and what has come of a control frame."""
        self._stream = 0
        self._fin = False
        self._left = 0
        """Bytes that are still to come of a data frame."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """`SpdyError` ends the connection."""
        view = memoryview(data)
        while view:
            if self._left:
                piece, view = view[: self._left], view[self._left :]
                self._left -= len(piece)
                yield Data(self._stream, bytes(piece), self._fin and not self._left)
                continue
            wanted = self._wanted() - len(self._head)
            self._head += view[:wanted]
            view = view[wanted:]
            if len(self._head) == self._wanted():
                yield from self._complete()

    def _wanted(self) -> int:
        """Bytes that are needed to go on."""
        if len(self._head) < 8 or not self._head[0] & 0x80:
            return 8
        length = int.from_bytes(self._head[5:8], "big")
        if length > LARGEST_CONTROL:
            raise SpdyError(f"a control frame of {length} bytes, where {LARGEST_CONTROL} are allowed")
        return 8 + length

    def _complete(self) -> Iterator[Frame]:
        head, self._head = self._head, bytearray()
        first, second = struct.unpack_from(">II", head)
        length, fin = second & 0xFFFFFF, bool(second >> 24 & Flag.FIN)
        if not first & _CONTROL:
            self._stream, self._fin, self._left = first, fin, length
            if not length:
                yield Data(first, b"", fin)
            return
        if first >> 16 & 0x7FFF != VERSION:
            raise SpdyError(f"SPDY version {first >> 16 & 0x7FFF}, where only {VERSION} is spoken")
        yield from self._control(first & 0xFFFF, fin, bytes(head[8:]))

    def _control(self, kind: int, fin: bool, body: bytes) -> Iterator[Frame]:
        if kind == Control.SYN_STREAM:
            stream, _ = _numbers(body, 2)
            yield Syn(stream, self._headers.decode(body[10:]), fin)
        elif kind in (Control.SYN_REPLY, Control.HEADERS):
            self._headers.decode(body[4:])  # what follows is compressed with what came before
        elif kind == Control.RST_STREAM:
            yield StreamReset(_numbers(body, 2)[0])
        elif kind == Control.PING:
            yield Ping(int.from_bytes(body[:4], "big"))
        elif kind == Control.GOAWAY:
            yield GoAway()


def _numbers(body: bytes, count: int) -> tuple[int, ...]:
    if len(body) < 4 * count:
        raise SpdyError("a control frame is cut off")
    return tuple(number & _STREAM_ID for number in struct.unpack_from(f">{count}I", body))


class SpdyWriter:
    """Frames that we send."""

    def __init__(self) -> None:
        self._headers = HeaderWriter()

    def reply(self, stream: int) -> bytes:
        return control_frame(Control.SYN_REPLY, struct.pack(">I", stream) + self._headers.encode({}))

    def open(self, stream: int, headers: Mapping[str, str], fin: bool = False) -> bytes:
        body = struct.pack(">IIBB", stream, 0, 0, 0) + self._headers.encode(headers)
        return control_frame(Control.SYN_STREAM, body, Flag.FIN if fin else Flag.NONE)


def control_frame(kind: Control, body: bytes, flags: Flag = Flag.NONE) -> bytes:
    return struct.pack(">II", _CONTROL | VERSION << 16 | kind, flags << 24 | len(body)) + body


def data_frame(stream: int, data: bytes, fin: bool = False) -> bytes:
    return struct.pack(">II", stream, (Flag.FIN if fin else Flag.NONE) << 24 | len(data)) + data


def reset_frame(stream: int, why: Reset) -> bytes:
    return control_frame(Control.RST_STREAM, struct.pack(">II", stream, why))


def ping_frame(number: int) -> bytes:
    return control_frame(Control.PING, struct.pack(">I", number))


def goaway_frame(last: int) -> bytes:
    return control_frame(Control.GOAWAY, struct.pack(">II", last, 0))
