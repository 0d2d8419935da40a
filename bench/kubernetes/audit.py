"""Writes from the API server's audit log: who wrote what, when it was received, when it was answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from msgspec import Struct, field, json

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "verbs": ["create", "update", "patch", "delete"]}],
}
"""Writes alone, one line each, when they are answered."""


def flags(folder: Path) -> tuple[str, ...]:
    """The flags of an API server that keeps the log."""
    policy = folder / "audit-policy.json"
    policy.write_bytes(json.encode(POLICY))
    return (
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-maxsize=10000",  # MiB in one file, so that we need not look for the next one
    )


class _Reference(Struct, gc=False):
    resource: str = ""
    subresource: str = ""
    name: str = ""


class _User(Struct, gc=False):
    username: str = ""


class _Status(Struct, gc=False):
    code: int = 0


class Write(Struct, rename="camel", gc=False):
    """One request that changes something."""

    request_received_timestamp: datetime
    stage_timestamp: datetime
    verb: str = ""
    user: _User = field(default_factory=_User)
    object_ref: _Reference = field(default_factory=_Reference)
    response_status: _Status = field(default_factory=_Status)

    @property
    def begun(self) -> float:
        return self.request_received_timestamp.timestamp()

    @property
    def ended(self) -> float:
        return self.stage_timestamp.timestamp()

    @property
    def done(self) -> bool:
        return self.response_status.code < 300

    @property
    def operation(self) -> str:
        """Such as `create pods/binding`."""
        part = f"/{self.object_ref.subresource}" if self.object_ref.subresource else ""
        return f"{self.verb} {self.object_ref.resource}{part}"


class AuditLog:
    """The audit log, read while it grows."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("a+b")
        self._stream.seek(0)
        self._rest = b""
        self._read = json.Decoder(Write).decode

    def close(self) -> None:
        self._stream.close()

    def new_writes(self) -> Iterator[Write]:
        """All writes since the last call."""
        *lines, self._rest = (self._rest + self._stream.read()).split(b"\n")
        for line in lines:
            yield self._read(line)
