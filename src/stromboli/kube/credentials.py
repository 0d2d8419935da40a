"""Credentials for an API server: tokens and client certificates. Secrets are kept out of `repr` and logs."""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from stromboli.api.types.meta import Time

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


# -- credentials that a program prints (client.authentication.k8s.io): run when needed, bounded in time and output


class Variable(msgspec.Struct, gc=False):
    name: str
    value: str = ""


class ExecPart(msgspec.Struct, rename="camel", gc=False):
    """A program that prints credentials."""

    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[Variable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
PROGRAM_TIMEOUT = 60.0
MAX_OUTPUT_BYTES = 1024 * 1024
RENEW_BEFORE_EXPIRY = 10.0
"""Seconds before expiry at which a new credential is requested."""


class ExecCredentialStatus(msgspec.Struct, rename="camel", gc=False):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Time | None = None


class ExecCredential(msgspec.Struct, rename="camel", gc=False):
    """An ExecCredential."""

    kind: str = ""
    api_version: str = ""
    status: ExecCredentialStatus | None = None


class ExecCredentials:
    """Runs a program for credentials, and again when they expire or the server rejects them."""

    def __init__(
        self,
        program: ExecPart,
        cluster: Mapping[str, object] | None = None,
        wall: Callable[[], float] = time.time,
        timeout: float = PROGRAM_TIMEOUT,
    ) -> None:
        """`cluster` is passed to the program."""
        if program.api_version not in VERSIONS:
            raise BadConfig(
                f"exec.apiVersion {program.api_version!r}: only {' and '.join(VERSIONS)} are known"
            )
        if not program.command:
            raise BadConfig("exec.command: missing")
        self._program = program
        self._cluster = cluster
        self._wall = wall
        self._timeout = timeout
        self._identity: Identity | None = None
        self._until: float | None = None
        self._lock = asyncio.Lock()

    async def identity(self) -> Identity:
        async with self._lock:
            expires = self._until is not None and self._wall() >= self._until - RENEW_BEFORE_EXPIRY
            if self._identity is None or expires:
                self._identity, self._until = parse_exec_credential(await self._run(), self._program)
            return self._identity

    def rejected(self) -> bool:
        self._identity = None
        return True

    async def _run(self) -> bytes:
        program = self._program
        info = {"KUBERNETES_EXEC_INFO": exec_info(program, self._cluster)}
        try:
            process = await asyncio.create_subprocess_exec(
                program.command,
                *(program.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **{given.name: given.value for given in program.env or ()}, **info},
                start_new_session=True,
            )
        except OSError as error:
            hint = f"; {program.install_hint}" if program.install_hint else ""
            raise NoCredentials(f"{program.command}: {error.strerror or error}{hint}") from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(self._timeout):
                output, errors = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
                status = await process.wait()
        except TimeoutError:
            raise NoCredentials(f"{program.command}: no answer within {self._timeout:g} seconds") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if output is None:
            raise NoCredentials(f"{program.command}: printed more than {MAX_OUTPUT_BYTES} bytes")
        if status != 0:
            message = (errors or b"").decode(errors="replace").strip()[-500:]
            raise NoCredentials(f"{program.command}: exited with status {status}: {message or 'no output'}")
        return output


async def _bounded(stream: asyncio.StreamReader) -> bytes | None:
    """What a program prints; None if it is too much, after all of it was read."""
    received = bytearray()
    while chunk := await stream.read(65536):
        if len(received) <= MAX_OUTPUT_BYTES:
            received += chunk
    return bytes(received) if len(received) <= MAX_OUTPUT_BYTES else None


def exec_info(program: ExecPart, cluster: Mapping[str, object] | None) -> str:
    """The value of KUBERNETES_EXEC_INFO."""
    spec = {"interactive": False, **({"cluster": cluster} if cluster is not None else {})}
    info = {"kind": "ExecCredential", "apiVersion": program.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def parse_exec_credential(output: bytes, program: ExecPart) -> tuple[Identity, float | None]:
    """The identity in a program's output, and when it expires."""
    name = program.command
    try:
        credential = msgspec.json.decode(output, type=ExecCredential)
    except (ValueError, RecursionError):
        raise NoCredentials(f"{name}: printed no ExecCredential") from None
    if credential.kind != "ExecCredential" or credential.api_version != program.api_version:
        wanted = f"ExecCredential of {program.api_version}"
        raise NoCredentials(
            f"{name}: printed {credential.kind or '?'} of {credential.api_version or '?'}, not {wanted}"
        )
    status = credential.status
    if status is None or not (status.token or status.client_certificate_data):
        raise NoCredentials(f"{name}: printed neither token nor certificate")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise NoCredentials(f"{name}: printed a certificate without key, or a key without certificate")
    try:
        headers = (bearer(checked_token(status.token, name)),) if status.token else ()
    except BadConfig as error:
        raise NoCredentials(str(error)) from None
    certificate = None
    if status.client_certificate_data:
        certificate = Certificate(status.client_certificate_data.encode(), status.client_key_data.encode())
    expires = status.expiration_timestamp
    return Identity(headers, certificate), expires.timestamp() if expires else None
