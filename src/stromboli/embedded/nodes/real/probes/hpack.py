"""As much of HPACK (RFC 7541), the encoding of headers in HTTP/2, as a call of gRPC takes.

Without a table of headers that came before, every field is a literal or one of the static table. Texts may be in a
code by Huffman; a name is compared as it is encoded, and numbers are decoded, so the codes of few characters suffice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_CODES = {
    "-": "010110", "a": "00011", "c": "00100", "g": "100110", "p": "101011", "r": "101100", "s": "01000",
    "t": "01001", "u": "101101",
    "0": "00000", "1": "00001", "2": "00010", "3": "011001", "4": "011010", "5": "011011", "6": "011100",
    "7": "011101", "8": "011110", "9": "011111",
}  # fmt: skip
_DIGITS = {code: character for character, code in _CODES.items() if character.isdecimal()}
_LARGEST_INTEGER = 1 << 20


class FieldError(Exception):
    """A block of headers that cannot be read."""


class Text(NamedTuple):
    """A text as it is encoded."""

    content: bytes
    coded: bool


def literal_fields(*fields: tuple[str, str]) -> bytes:
    """Headers as literals that are not compressed and not kept."""
    return b"".join(b"\x00" + _plain(name) + _plain(value) for name, value in fields)


def grpc_status(block: bytes) -> int | None:
    """The value of `grpc-status`; None if a block of headers has none."""
    names = (Text(b"grpc-status", False), Text(_encode("grpc-status"), True))
    for name, value in _literals(block):
        if name in names:
            digits = _decode_digits(value.content) if value.coded else value.content.decode("latin-1")
            if not digits.isdecimal() or len(digits) > 9:
                raise FieldError(f"grpc-status {value.content!r} is no number")
            return int(digits)
    return None


def _plain(text: str) -> bytes:
    content = text.encode()
    if len(content) < 0x7F:
        return bytes([len(content)]) + content
    return b"\x7f" + varint(len(content) - 0x7F) + content


def varint(number: int) -> bytes:
    """Seven bits in a byte, the lowest first, as HPACK and protocol buffers write it."""
    low = bytearray()
    while number >= 0x80:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*low, number])


def _literals(block: bytes) -> Iterator[tuple[Text, Text]]:
    """Headers with names of their own; those of the static table are left out."""
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:  # a field of the static table
            _, at = _integer(block, at, 7)
            continue
        if first & 0x20 and not first & 0x40:  # a new size of the table
            _, at = _integer(block, at, 5)
            continue
        index, at = _integer(block, at, 6 if first & 0x40 else 4)
        name = None
        if not index:
            name, at = _text(block, at)
        value, at = _text(block, at)
        if name is not None:
            yield name, value


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """An integer whose first bits are the last ones of a byte, and where it ends."""
    most = (1 << bits) - 1
    value = _byte(block, at) & most
    at += 1
    if value < most:
        return value, at
    shift = 0
    while True:
        byte = _byte(block, at)
        value += (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if value > _LARGEST_INTEGER or shift > 28:
            raise FieldError("a number in a block of headers is too large")
        if not byte & 0x80:
            return value, at


def _text(block: bytes, at: int) -> tuple[Text, int]:
    coded = bool(_byte(block, at) & 0x80)
    length, at = _integer(block, at, 7)
    if at + length > len(block):
        raise FieldError("a block of headers is cut off")
    return Text(block[at : at + length], coded), at + length


def _byte(block: bytes, at: int) -> int:
    if at >= len(block):
        raise FieldError("a block of headers is cut off")
    return block[at]


def _encode(text: str) -> bytes:
    bits = "".join(_CODES[character] for character in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _decode_digits(content: bytes) -> str:
    """Empty if there is anything else than digits."""
    bits = "".join(f"{byte:08b}" for byte in content[:9])
    digits = ""
    while len(bits) >= 8 or "0" in bits:
        length = next((length for length in (5, 6) if bits[:length] in _DIGITS), 0)
        if not length:
            return ""
        digits, bits = digits + _DIGITS[bits[:length]], bits[length:]
    return digits
