"""Credentials for an API server: tokens and client certificates. Secrets are kept out of `repr` and logs."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

log = logging.getLogger(__name__)

Header = tuple[str, str]
REREAD_INTERVAL = 60.0
"""Seconds after which a token or certificate file is read again: both are renewed in place."""
MAX_FILE_BYTES = 1024 * 1024


class BadConfig(ValueError):
    """What is wrong with the configuration, and where; contains no secret."""


class NoCredentials(Exception):
    """No credentials could be obtained; it may succeed later."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, in PEM."""

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """How a request authenticates."""

    headers: tuple[Header, ...] = field(default=(), repr=False)
    certificate: Certificate | None = None


ANONYMOUS = Identity()


class Credentials(Protocol):
    """A source of identities."""

    async def identity(self) -> Identity:
        """The current one; raises `NoCredentials`."""

    def rejected(self) -> bool:
        """The server rejected the last identity; whether another one may be had."""


class StaticCredentials:
    """An identity that never changes."""

    def __init__(self, identity: Identity = ANONYMOUS) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        return self._identity

    def rejected(self) -> bool:
        return False


class FileCredentials:
    """A token or certificate in files that are renewed; if they become unreadable, the last one stays in use."""

    def __init__(
        self,
        token: Path | None = None,
        certificate: tuple[Path, Path] | None = None,
        rest: Identity = ANONYMOUS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rest` is the part that is in no file. `BadConfig` if the files cannot be read now."""
        self._token = token
        self._certificate = certificate
        self._rest = rest
        self._clock = clock
        self._identity = self._read()
        self._read_at = clock()

    async def identity(self) -> Identity:
        if self._clock() - self._read_at >= REREAD_INTERVAL:
            self._read_at = self._clock()
            try:
                self._identity = self._read()
            except BadConfig as error:
                log.warning("%s; the last one stays in use", error)
        return self._identity

    def rejected(self) -> bool:
        """The file may hold a renewed token already."""
        before = self._identity
        try:
            self._identity = self._read()
        except BadConfig as error:
            log.warning("%s", error)
        return self._identity != before

    def _read(self) -> Identity:
        headers, certificate = self._rest.headers, self._rest.certificate
        if self._token is not None:
            headers = (bearer(read_token(self._token)), *headers)
        if self._certificate is not None:
            chain, key = self._certificate
            certificate = Certificate(read_file(chain), read_file(key))
        return Identity(headers, certificate)


def read_file(path: Path) -> bytes:
    """The content of a file of limited size."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadConfig(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_FILE_BYTES:
        raise BadConfig(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    return content


def read_token(path: Path) -> str:
    """The token in a file, without whitespace around it."""
    try:
        return checked_token(read_file(path).decode().strip(), str(path))
    except UnicodeDecodeError:
        raise BadConfig(f"{path}: not a token") from None


def checked_token(token: str, where: str) -> str:
    """The token, if it can be sent in a header."""
    if not token or not token.isascii() or not token.isprintable():
        raise BadConfig(f"{where}: {'empty, so no' if not token else 'not a'} token")
    return token


def bearer(token: str) -> Header:
    return ("Authorization", f"Bearer {token}")


def basic(name: str, password: str) -> Header:
    return ("Authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())
