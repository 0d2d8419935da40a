"""Credentials from a program (client.authentication.k8s.io): run when needed, bounded in time and output."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from stromboli.api.types.meta import Time
from stromboli.kube.credentials import BadConfig, Certificate, Identity, NoCredentials, bearer, checked_token

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
LONGEST = 60.0
LARGEST = 1024 * 1024
EARLY = 10.0
"""Seconds before it expires, a credential is asked for again."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. `cluster` is told to it if it wants to know."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = VERSIONS[0]
    hint: str = ""
    """Where to get the program, if it is missing."""
    cluster: Mapping[str, object] | None = None


class Status(msgspec.Struct, rename="camel", gc=False):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Time | None = None


class Answer(msgspec.Struct, rename="camel", gc=False):
    """An ExecCredential."""

    kind: str = ""
    api_version: str = ""
    status: Status | None = None


class Exec:
    """Asks a program who we are, and asks again when that expires or the server does not believe it."""

    def __init__(
        self, program: Program, wall: Callable[[], float] = time.time, longest: float = LONGEST
    ) -> None:
        if program.api_version not in VERSIONS:
            raise BadConfig(
                f"exec.apiVersion {program.api_version!r}: only {' and '.join(VERSIONS)} are known"
            )
        if not program.command:
            raise BadConfig("exec.command: missing")
        self._program = program
        self._wall = wall
        self._longest = longest
        self._identity: Identity | None = None
        self._until: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def identity(self) -> Identity:
        async with self._one_at_a_time:
            late = self._until is not None and self._wall() >= self._until - EARLY
            if self._identity is None or late:
                self._identity, self._until = read_answer(await self._run(), self._program)
            return self._identity

    def refused(self) -> bool:
        self._identity = None
        return True

    async def _run(self) -> bytes:
        program = self._program
        try:
            process = await asyncio.create_subprocess_exec(
                program.command,
                *program.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env={**os.environ, **program.environment, "KUBERNETES_EXEC_INFO": exec_info(program)},
                start_new_session=True,
            )
        except OSError as error:
            hint = f"; {program.hint}" if program.hint else ""
            raise NoCredentials(f"{program.command}: {error.strerror or error}{hint}") from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(self._longest):
                output, complaint = await asyncio.gather(_bounded(process.stdout), _bounded(process.stderr))
                status = await process.wait()
        except TimeoutError:
            raise NoCredentials(f"{program.command}: no answer within {self._longest:g} seconds") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if output is None:
            raise NoCredentials(f"{program.command}: printed more than {LARGEST} bytes")
        if status != 0:
            last = (complaint or b"").decode(errors="replace").strip()[-500:]
            raise NoCredentials(f"{program.command}: ended with status {status}: {last or 'no word why'}")
        return output


async def _bounded(stream: asyncio.StreamReader) -> bytes | None:
    """What a program prints; None, once all of it was read, if that is too much."""
    received = bytearray()
    while chunk := await stream.read(65536):
        if len(received) <= LARGEST:
            received += chunk
    return bytes(received) if len(received) <= LARGEST else None


def exec_info(program: Program) -> str:
    """What the program is told about what is wanted of it."""
    spec: dict[str, object] = {"interactive": False}
    if program.cluster is not None:
        spec["cluster"] = program.cluster
    info = {"kind": "ExecCredential", "apiVersion": program.api_version, "spec": spec}
    return msgspec.json.encode(info).decode()


def read_answer(output: bytes, program: Program) -> tuple[Identity, float | None]:
    """The identity in what a program printed, and until when it is good."""
    name = program.command
    try:
        answer = msgspec.json.decode(output, type=Answer)
    except (ValueError, RecursionError):
        raise NoCredentials(f"{name}: printed no ExecCredential") from None
    if answer.kind != "ExecCredential" or answer.api_version != program.api_version:
        wanted = f"ExecCredential of {program.api_version}"
        raise NoCredentials(
            f"{name}: printed {answer.kind or '?'} of {answer.api_version or '?'}, not {wanted}"
        )
    status = answer.status
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
