"""The endpoints of a daemon: files for TLS that cannot be used are named by their flags."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from stromboli.daemon.common_options import CommonOptions
from stromboli.daemon.endpoints import Endpoints
from stromboli.daemon.flags import BadFlag
from stromboli.daemon.telemetry_guard import TelemetryGuard
from tests.serving import CERTIFICATE


class Idle:
    """A process that is fine."""

    guard = TelemetryGuard()

    def alive(self) -> str:
        return ""

    def ready(self) -> str:
        return ""

    async def metrics(self) -> bytes:
        return b""


@pytest.mark.parametrize(
    ("broken", "flag"),
    [("ca", "--ca-cert-file"), ("certificate", "--tls-cert-file"), ("key", "--tls-private-key-file")],
)
@pytest.mark.parametrize("content", ["", "nonsense", None], ids=["empty", "nonsense", "missing"])
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, broken: str, flag: str, content: str | None
) -> None:
    for name in ("ca", "certificate", "key"):
        shutil.copy(CERTIFICATE, tmp_path / name)
    (tmp_path / broken).unlink()
    if content is not None:
        (tmp_path / broken).write_text(content)
    ca, certificate, key = (str(tmp_path / name) for name in ("ca", "certificate", "key"))
    options = CommonOptions(
        enable_healthz=True, ca_cert_file=ca, tls_cert_file=certificate, tls_private_key_file=key
    )
    with pytest.raises(BadFlag, match=f"{flag}:? {tmp_path}/{broken}"):
        asyncio.run(Endpoints(options, Idle()).start())
