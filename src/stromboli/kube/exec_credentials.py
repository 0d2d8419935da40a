"""Credentials from a program (client.authentication.k8s.io): run when needed, bounded in time and output."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

from stromboli.api.types.meta import Time
from stromboli.kube.credentials import BadConfig, Certificate, Identity, NoCredentials, bearer, checked_token
from stromboli.kube.kubeconfig import ExecPart

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
TIMEOUT = 60.0
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
        timeout: float = TIMEOUT,
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
            raise NoCredentials(f"{program.command}: ended with status {status}: {message or 'no word why'}")
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
