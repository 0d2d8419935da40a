"""Asks the leading scheduler about an object: what only it knows, such as its history, is missing if that fails.

The API server of `stromboli up` answers by itself. On other clusters the Lease says which pod leads, and a port of that
pod is forwarded through the API server. The leader knows us by our bearer token. Who has none, but a certificate or
another user's rights, gets a token of the leader's own service account from the API server, if he has the right to.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from stromboli.cli.leader.leader_pod import LeaderPod, NoLeader, find_leader
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import Header, Identity, NoCredentials, StaticCredentials, bearer
from stromboli.kube.request import ApiError, NoResponse, Request, api_error
from stromboli.scheduler.explain.cycle_documents import CycleList
from stromboli.scheduler.explain.explain_paths import (
    NO_PATH_PERMISSION,
    NOT_SEEN,
    POLICY,
    CycleQuery,
    Question,
)
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.policy_document import PolicyDocument

QUERY_TIMEOUT = 15.0
"""Seconds for the leader to answer."""
LARGEST_ANSWER = 2 * 1024 * 1024
"""Bytes of an answer."""
TOKEN_SECONDS = 600
"""Life of a token that is requested for a question: the shortest that Kubernetes gives."""
Answer = TypeVar("Answer")
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")


class Unreachable(NamedTuple):
    """The leader could not be asked, or does not answer."""

    why: str
    is_expected: bool = False
    """Whether there is nobody to ask, as another scheduler runs that answers no questions: not worth a word."""
    is_unknown: bool = False
    """Whether the leader answered that it does not know the object."""

    @property
    def note(self) -> str:
        """A sentence for the user; empty if there is nothing to tell."""
        if self.is_expected:
            return ""
        if self.is_unknown:
            return f"the leader does not know it: {self.why}"
        return f"the leader was not asked: {self.why}; history is missing"


class Connected(Protocol):
    """What has a client, such as a session of a command."""

    @property
    def client(self) -> Client: ...


async def ask_leader(
    session: Connected, resource: str, namespace: str, name: str, leader: str = ""
) -> LeaderAnswer | Unreachable:
    """What the leader knows of an object; never an error.

    `resource` is `jobs` (Volcano's), `podgroups`, `podgroups.scheduling.k8s.io`, `pods`, `queues` or `nodes`; `leader`
    is the address that a user gave.
    """
    question = Question(resource, namespace if _is_namespaced(resource) else "", name)
    return await _ask(session, question.path, LeaderAnswer, leader)


async def ask_cycles(
    session: Connected, after: int = 0, limit: int = 0, leader: str = ""
) -> CycleList | Unreachable:
    """What the last cycles of the leader did, those after a number alone; never an error.

    Without a `limit` it is all that the leader remembers. A run of cycles that has become longer comes again, with the
    same `number`.
    """
    return await _ask(session, CycleQuery(after, limit).path, CycleList, leader)


async def ask_policy(session: Connected, leader: str = "") -> PolicyDocument | Unreachable:
    """Which policy is in force, since when, and what was wrong with the last edit; never an error."""
    return await _ask(session, POLICY, PolicyDocument, leader)


async def _ask(session: Connected, path: str, kind: type[Answer], leader: str) -> Answer | Unreachable:
    client = session.client
    try:
        body = await (_ask_address(client, path, leader) if leader else _ask_cluster(client, path))
        if isinstance(body, Unreachable):
            return body
        return msgspec.json.decode(body, type=kind)
    except ApiError as error:
        return Unreachable(str(error), is_unknown=NOT_SEEN in str(error))
    except (NoResponse, NoLeader, NoCredentials) as error:
        return Unreachable(str(error))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Unreachable(f"it answers with what is no explanation: {str(error)[:200]}")


def _is_namespaced(resource: str) -> bool:
    return resource not in ("queues", "nodes")


# -- by way of the cluster


async def _ask_cluster(client: Client, path: str) -> bytes | Unreachable:
    try:
        return await client.send(Request("GET", path), QUERY_TIMEOUT, LARGEST_ANSWER)
    except ApiError as error:
        if not _is_no_path(error):
            raise
    leader = await find_leader(client)
    if not leader.port:
        name = f"{leader.namespace}/{leader.name}"
        why = f"{name} leads and answers no questions: it runs without --enable-explain"
        return Unreachable(why, is_expected=not leader.is_ours)
    return await _ask_pod(client, path, leader)


def _is_no_path(error: ApiError) -> bool:
    """Whether an API server does not know our path, or does not let us get it."""
    text = str(error)
    return (error.status == 404 and NOT_SEEN not in text) or (
        error.status == 403 and "cannot get path" in text and NO_PATH_PERMISSION not in text
    )


async def _ask_pod(client: Client, path: str, leader: LeaderPod) -> bytes:
    from stromboli.kube.aiohttp_requests import get_from_pod

    header = await _own_token(client) or await _leaders_token(client, leader)
    response = await get_from_pod(
        client,
        leader.namespace,
        leader.name,
        leader.port,
        path,
        (header,),
        QUERY_TIMEOUT,
        LARGEST_ANSWER,
    )
    if response.status >= 300:
        raise api_error(response.status, response.body, response.retry_after)
    return response.body


async def _own_token(client: Client) -> Header | None:
    """Our bearer token; none if we have none, or act for somebody else."""
    headers = (await client.access.credentials.identity()).headers
    if any(name.lower().startswith("impersonate-") for name, _ in headers):
        return None
    tokens = [
        header for header in headers if header[0] == "Authorization" and header[1].startswith("Bearer ")
    ]
    return tokens[0] if tokens else None


async def _leaders_token(client: Client, leader: LeaderPod) -> Header:
    """A token of the leader's own service account, which tells it nothing that it does not have."""
    path = _ACCOUNTS.path(leader.namespace, leader.service_account, "token")
    body = msgspec.json.encode({"spec": {"expirationSeconds": TOKEN_SECONDS}})
    try:
        content = msgspec.json.decode(await client.send(Request("POST", path, body), QUERY_TIMEOUT))
    except ApiError as error:
        if error.status != 403:
            raise
        raise NoCredentials(
            f"it knows users by bearer tokens, and you have none and may not get one ({error})"
        ) from None
    token = ((content if isinstance(content, dict) else {}).get("status") or {}).get("token")
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise NoResponse("the API server gives no token")
    return bearer(token)


# -- at an address that the user gave


async def _ask_address(client: Client, path: str, address: str) -> bytes | Unreachable:
    problem = address_problem(address)
    if problem:
        return Unreachable(f"--leader {address}: {problem}")
    header = await _own_token(client)
    if header is None:
        return Unreachable("it knows users by bearer tokens, and you have none: choose another --context")
    access = Access(address.rstrip("/"), credentials=StaticCredentials(Identity((header,))))
    async with Client(access) as direct:
        return await direct.send(Request("GET", path), QUERY_TIMEOUT, LARGEST_ANSWER)


def address_problem(address: str) -> str:
    """Why a token is not sent to an address; empty if it is."""
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is no address like http://127.0.0.1:8080"
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.query or parts.fragment:
        return "is no address like http://127.0.0.1:8080"
    if parts.scheme == "http" and not _is_loopback(host):
        return "your token is not sent without TLS: kubectl port-forward leads there over loopback"
    return ""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
