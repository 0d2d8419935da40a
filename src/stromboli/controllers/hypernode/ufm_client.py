"""Asks NVIDIA's Unified Fabric Manager for its ports, with the name and password of a Secret."""

from __future__ import annotations

import asyncio
import base64
import binascii
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import msgspec

from stromboli.controllers.hypernode.discovered_hyper_nodes import DiscoveryFailed
from stromboli.controllers.hypernode.discovery_config import UfmSource
from stromboli.controllers.hypernode.ufm_discovery import Port
from stromboli.transport import Call, CallFailed, Trust, basic, send

PATH = "/ufmRest/resources/ports"
TIMEOUT = 30.0
MAX_BYTES = 100 * 1024 * 1024
"""Of UFM's answer."""

Result = TypeVar("Result")

_ports_decoder = msgspec.json.Decoder(list[Port])


class _Secret(msgspec.Struct, gc=False):
    data: dict[str, str] = {}


def read_credentials(secret: bytes | None, source: UfmSource) -> tuple[str, str]:
    """Name and password in a Secret."""
    where = f"Secret {source.secret_namespace}/{source.secret_name}"
    if secret is None:
        raise DiscoveryFailed(f"{where} does not exist")
    try:
        data = msgspec.json.decode(secret, type=_Secret).data
        values = [
            base64.b64decode(data.get(key, ""), validate=True).decode() for key in ("username", "password")
        ]
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError):
        raise DiscoveryFailed(f"{where}: username and password cannot be read") from None
    if not all(values):
        raise DiscoveryFailed(f"{where}: needs username and password")
    return values[0], values[1]


async def on_daemon_thread(function: Callable[[], Result]) -> Result:
    """Call a function that may wait for UFM, where that does not keep the process from ending."""
    result: Future[Result] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(function())
        except BaseException as error:  # raised where the result is awaited
            result.set_exception(error)

    threading.Thread(target=run, name="ufm", daemon=True).start()
    return await asyncio.wrap_future(result)


def fetch_ports(source: UfmSource, username: str, password: str) -> list[Port]:
    """All ports; takes up to `TIMEOUT` seconds, so it belongs on a thread."""
    headers = {"Authorization": basic(username, password)}
    try:
        body = send(
            Call(source.endpoint + PATH, None, headers, TIMEOUT, Trust(verify=source.verify), MAX_BYTES)
        )
    except CallFailed as error:
        raise DiscoveryFailed(str(error)) from None
    return decode_ports(body)


def decode_ports(body: bytes) -> list[Port]:
    try:
        return _ports_decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DiscoveryFailed(f"UFM's answer is no list of ports: {error}"[:300]) from None
