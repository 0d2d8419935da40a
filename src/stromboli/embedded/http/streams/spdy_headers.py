"""Headers of SPDY streams: compressed with a dictionary, in one stream of zlib for a whole connection."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

LARGEST_HEADERS = 16 * 1024
"""Bytes of the headers of a stream, decompressed."""
MOST_HEADERS = 64
"""Headers of a stream."""

_WORDS = """\
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"""
_CODES = "100 101 201 202 205 206 300 302 303 304 305 306 307 402 405 406 407 408 409 410 411 412 413 414 415 416 417"
_TEXTS = (
    "502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


class SpdyError(Exception):
    """The other side does not speak SPDY/3.1, or asks for too much; the connection ends."""


def _sized(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


DICTIONARY = (
    b"".join(_sized(word.replace("_", " ").encode()) for word in _WORDS.split())
    + _CODES.replace(" ", "").encode()
    + _TEXTS.encode()
)
"""That SPDY/3 prescribes: words with their lengths, then text that headers often have."""


class HeaderWriter:
    """Compresses the headers that we send."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(level=1, zdict=DICTIONARY)

    def encode(self, headers: Mapping[str, str]) -> bytes:
        pairs = b"".join(_sized(name.encode()) + _sized(value.encode()) for name, value in headers.items())
        plain = struct.pack(">I", len(headers)) + pairs
        return self._zlib.compress(plain) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Decompresses the headers that we receive; each block depends on those before it."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def decode(self, block: bytes) -> dict[str, str]:
        """`SpdyError` if they are malformed, or more than `LARGEST_HEADERS`."""
        try:
            plain = self._zlib.decompress(block, LARGEST_HEADERS)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be decompressed: {error}") from None
        if self._zlib.unconsumed_tail:
            raise SpdyError(f"headers of more than {LARGEST_HEADERS} bytes")
        return _parsed(plain)


def _parsed(plain: bytes) -> dict[str, str]:
    count, position = _number(plain, 0), 4
    if count > MOST_HEADERS:
        raise SpdyError(f"{count} headers, where {MOST_HEADERS} are allowed")
    headers: dict[str, str] = {}
    for _ in range(count):
        name, position = _text(plain, position)
        value, position = _text(plain, position)
        headers[name.lower()] = value
    return headers


def _number(plain: bytes, position: int) -> int:
    if len(plain) < position + 4:
        raise SpdyError("headers are cut off")
    return int.from_bytes(plain[position : position + 4], "big")


def _text(plain: bytes, position: int) -> tuple[str, int]:
    end = position + 4 + _number(plain, position)
    if len(plain) < end:
        raise SpdyError("headers are cut off")
    return plain[position + 4 : end].decode(errors="replace"), end
