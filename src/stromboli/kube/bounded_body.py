"""Reads an HTTP body whole, however many packets it comes in, and no more of it than a bound allows."""

import aiohttp


async def read_body(stream: aiohttp.StreamReader, limit: int) -> bytes:
    """The body up to its end; one that is longer than `limit` comes back with more than `limit` bytes.

    `StreamReader.read(n)` alone returns whatever has arrived so far.
    """
    body = bytearray()
    while len(body) <= limit and (chunk := await stream.readany()):
        body += chunk
    return bytes(body)
