"""Who we are: a token, a certificate, or a program that is asked for one. Secrets are never shown."""

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
REREAD = 60.0
"""Seconds after which a file with a token or a certificate is read again: both are renewed in place."""
LARGEST_FILE = 1024 * 1024


class BadConfig(ValueError):
    """What is wrong with the configuration, and where, without any secret."""


class NoCredentials(Exception):
    """Nobody could say who we are just now; it may go better a little later."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, both as PEM text."""

    chain: bytes = field(repr=False)
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request says about who sends it."""

    headers: tuple[Header, ...] = field(default=(), repr=False)
    certificate: Certificate | None = None


NOBODY = Identity()


class Credentials(Protocol):
    """Where identities come from."""

    async def identity(self) -> Identity:
        """Who we are now; `NoCredentials` if that cannot be found out."""

    def refused(self) -> bool:
        """The server did not believe the last identity; whether asking again may bring another one."""


class Fixed:
    """An identity that stays."""

    def __init__(self, identity: Identity = NOBODY) -> None:
        self._identity = identity

    async def identity(self) -> Identity:
        return self._identity

    def refused(self) -> bool:
        return False


class Files:
    """A token or certificate in files that somebody renews; if they cannot be read any more, the last one stays."""

    def __init__(
        self,
        token: Path | None = None,
        certificate: tuple[Path, Path] | None = None,
        rest: Identity = NOBODY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rest` is what does not change. `BadConfig` if the files cannot be read to begin with."""
        self._token = token
        self._certificate = certificate
        self._rest = rest
        self._clock = clock
        self._identity = self._read()
        self._read_at = clock()

    async def identity(self) -> Identity:
        if self._clock() - self._read_at >= REREAD:
            self._read_at = self._clock()
            try:
                self._identity = self._read()
            except BadConfig as error:
                log.warning("%s; what it said before stays in use", error)
        return self._identity

    def refused(self) -> bool:
        """A renewed token may already lie there."""
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
    """A file of bearable size."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise BadConfig(f"{path}: cannot be read: {error.strerror or error}") from None
    if len(content) > LARGEST_FILE:
        raise BadConfig(f"{path}: larger than {LARGEST_FILE} bytes")
    return content


def read_token(path: Path) -> str:
    """The token in a file, without the line end after it."""
    try:
        return checked_token(read_file(path).decode().strip(), str(path))
    except UnicodeDecodeError:
        raise BadConfig(f"{path}: not a token") from None


def checked_token(token: str, where: str) -> str:
    """A token fit for a header."""
    if not token or not token.isascii() or not token.isprintable():
        raise BadConfig(f"{where}: {'empty, so no' if not token else 'not a'} token")
    return token


def bearer(token: str) -> Header:
    return ("Authorization", f"Bearer {token}")


def basic(name: str, password: str) -> Header:
    return ("Authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())
