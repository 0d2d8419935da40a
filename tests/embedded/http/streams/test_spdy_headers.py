"""Compressed headers of SPDY streams, honest and hostile."""

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.http.streams.spdy_headers import (
    DICTIONARY,
    LARGEST_HEADERS,
    MOST_HEADERS,
    HeaderReader,
    HeaderWriter,
    SpdyError,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
HEADERS = st.dictionaries(NAMES, st.text(max_size=30), max_size=8)


def block(plain):
    writer = zlib.compressobj(zdict=DICTIONARY)
    return writer.compress(plain) + writer.flush(zlib.Z_SYNC_FLUSH)


def test_the_dictionary_is_the_one_of_the_protocol():
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


@given(st.lists(HEADERS, max_size=4))
def test_headers_of_a_connection_are_read_one_after_another(all_headers):
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.decode(writer.encode(headers)) for headers in all_headers] == all_headers


def test_names_are_lower_case_as_clients_write_them_as_they_like():
    assert HeaderReader().decode(HeaderWriter().encode({"streamType": "data"})) == {"streamtype": "data"}


@pytest.mark.parametrize(
    ("hostile", "why"),
    [
        (block(b"\0" * 10_000_000), f"more than {LARGEST_HEADERS} bytes"),
        (block(struct.pack(">I", 2**31)), f"{2**31} headers, where {MOST_HEADERS} are allowed"),
        (block(struct.pack(">III", 1, 2**32 - 1, 0)), "cut off"),
        (block(struct.pack(">I", 1)), "cut off"),
        (block(b""), "cut off"),
        (b"no zlib at all", "cannot be decompressed"),
        (zlib.compress(b"without the dictionary"), "headers, where"),
    ],
)
def test_hostile_headers_end_the_connection_and_cost_little(hostile, why):
    assert len(hostile) < 20_000
    with pytest.raises(SpdyError, match=why):
        HeaderReader().decode(hostile)


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_whatever_is_received_is_headers_or_an_error(plain, garbage):
    for hostile in (block(plain), garbage):
        with suppress(SpdyError):
            assert len(HeaderReader().decode(hostile)) <= MOST_HEADERS
