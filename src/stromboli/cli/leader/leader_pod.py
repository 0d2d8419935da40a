"""Which pod leads the scheduling of a cluster, by its Lease, and whether and where it answers questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from stromboli.cli.cluster.cluster_kinds import LEASES, PODS
from stromboli.kube.api_client import Client
from stromboli.kube.request import ApiError

LEASE_NAMESPACE, LEASE_NAME = "volcano-system", "volcano"
"""The Lease that schedulers elect their leader by, in Volcano's manifests and in ours."""
DEFAULT_PORT = 8080


class LeaderPod(NamedTuple):
    """The pod that holds the lease."""

    namespace: str
    name: str
    service_account: str
    is_ours: bool
    """Whether it runs Stromboli, and not another scheduler with this lease."""
    port: int
    """Where it answers questions; 0 if it answers none."""
    words: tuple[str, ...] = ()
    """Commands and arguments of its containers."""


class NoLeader(Exception):
    """Nobody leads, or it is not known who; the message says why."""


async def find_leader(client: Client, namespace: str = LEASE_NAMESPACE, lease: str = LEASE_NAME) -> LeaderPod:
    """The pod that leads; `NoLeader` if there is none, `ApiError` if we may not know."""
    try:
        content = _decoded(await client.get(LEASES, lease, namespace))
    except ApiError as error:
        if error.status == 404:
            raise NoLeader(
                f"there is no Lease {namespace}/{lease}, by which a leader would be known"
            ) from None
        raise
    holder = str((content.get("spec") or {}).get("holderIdentity") or "")
    pod = holder.partition("_")[0]
    if not pod:
        raise NoLeader(f"nobody holds the Lease {namespace}/{lease}")
    try:
        return _leader(namespace, pod, _decoded(await client.get(PODS, pod, namespace)))
    except ApiError as error:
        if error.status == 404:
            raise NoLeader(
                f"{holder} leads, which is no pod of namespace {namespace}: --leader URL says where it answers"
            ) from None
        raise


def _leader(namespace: str, name: str, pod: dict[str, Any]) -> LeaderPod:
    spec = pod.get("spec") or {}
    labels = (pod.get("metadata") or {}).get("labels") or {}
    words: list[str] = []
    for container in spec.get("containers") or ():
        words += [str(word) for part in ("command", "args") for word in container.get(part) or ()]
    is_ours = labels.get("app.kubernetes.io/name") == "stromboli" or "stromboli" in words
    answers = flag_value(words, "enable-explain", "true") in ("true", "True", "1", "t", "T", "TRUE")
    port = port_of(flag_value(words, "listen-address") or f":{DEFAULT_PORT}") if answers else 0
    account = str(spec.get("serviceAccountName") or "default")
    return LeaderPod(namespace, name, account, is_ours, port, tuple(words))


def flag_value(words: Sequence[str], name: str, alone: str = "") -> str:
    """The value of a flag as Go's programs take it: `--name=value`, or `--name` with the value `alone`."""
    value = ""
    for word in words:
        flag, given, text = word.lstrip("-").partition("=")
        if flag == name and word.startswith("-"):
            value = text if given else alone
    return value


def port_of(address: str) -> int:
    """The port of an address such as `:8080`; 0 if it is none."""
    port = address.rpartition(":")[2]
    return int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 65536 else 0


def _decoded(body: bytes) -> dict[str, Any]:
    try:
        content = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise NoLeader("the API server answers with what is no JSON") from None
    return content if isinstance(content, dict) else {}
