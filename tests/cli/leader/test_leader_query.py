"""Asking the leader: of `stromboli up`, in a pod behind the API server, at an address; and why it cannot be asked."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.cli.leader.leader_query import (
    LARGEST_ANSWER,
    Unreachable,
    address_problem,
    ask_cycles,
    ask_leader,
    ask_policy,
)
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import node_manifests
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import LEASES, resource_of
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import Identity, StaticCredentials, bearer
from stromboli.kube.request import ApiError, Request
from stromboli.policy.policy import default_policy
from stromboli.scheduler.explain.cycle_documents import CycleList
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.policy_document import PolicyDocument
from tests.embedded.nodes.node_services import NodeCluster, running_nodes
from tests.ports import free_ports

CATALOG = load_catalog()
ROOT = Path(__file__).parents[3]
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}
ANSWER = '{"resource":"podgroups","namespace":"default","name":"train","leader":"x","known":true}'
SERVER = """
import http.server, json, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = sys.argv[1].replace("TOKEN", self.headers["Authorization"]).replace("PATH", self.path)
        self.send_response(int(sys.argv[2]))
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

class Server(http.server.HTTPServer):
    allow_reuse_address = True

server = Server(("127.0.0.1", int(sys.argv[3])), Handler)
print("listening", server.server_address[1], flush=True)
server.serve_forever()
"""
"""Answers as a leader does: with the text, the status, and on the port of its arguments."""


@dataclass
class Session:
    client: Client


# -- stromboli up


def gang(name: str, pods: int, cpu: int) -> list[dict[str, Any]]:
    group: dict[str, Any] = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": pods, "queue": "default"},
    }
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpu)}}}
    return [
        group,
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{number}",
                    "annotations": {"scheduling.k8s.io/group-name": name},
                },
                "spec": {"schedulerName": "volcano", "containers": [container]},
            }
            for number in range(pods)
        ),
    ]


@asynccontextmanager
async def running_cluster(folder: Path) -> AsyncIterator[tuple[Client, Access]]:
    data = DataFolder(folder / "data")
    config = ServiceConfig(node_manifests(["2x4cpu"]), CATALOG, default_policy(CATALOG))
    try:
        async with EmbeddedCluster(data, config), Client(config.access) as client:
            for manifest in [*gang("train", 3, 4), *gang("small", 1, 1)]:
                await client.create(resource_of(manifest), manifest, "default")
            yield client, config.access
    finally:
        data.release()


async def eventually(session: Session, name: str, kind: str, text: str) -> LeaderAnswer:
    """The answer, once its history has an entry with such a text."""
    async with asyncio.timeout(60):
        while True:
            answer = await ask_leader(session, "podgroups", "default", name)
            entries = answer.history.entries if isinstance(answer, LeaderAnswer) else []
            if isinstance(answer, LeaderAnswer) and any(
                entry.kind == kind and text in entry.text for entry in entries
            ):
                return answer
            await asyncio.sleep(0.05)


def test_the_scheduler_of_a_running_cluster_tells_why_a_job_waits_and_what_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))

    async def story() -> None:
        async with running_cluster(tmp_path) as (client, access):
            session = Session(client)
            train = await eventually(session, "train", "waits", "all nodes together have less cpu")
            assert train.explanation is not None
            assert train.explanation.reason == "Larger than the cluster"
            assert "let-in" in [entry.kind for entry in train.history.entries]
            small = await eventually(session, "small", "bound", "pod small-0 bound to n")
            assert small.explanation is None
            pod = await ask_leader(session, "pods", "default", "train-1")
            assert isinstance(pod, LeaderAnswer)
            assert pod.job == "train"
            unknown = await ask_leader(session, "podgroups", "default", "nobody")
            assert isinstance(unknown, Unreachable)
            assert unknown.is_unknown
            await _cycles_and_policy(session)
            await _who_may_ask(client, access)
            for path in (
                "secrets/default/x",
                "podgroups/default/%2e%2e",
                "podgroups/default/%1b%5b",
                "x" * 2000,
            ):
                with pytest.raises(ApiError, match="unknown path; valid paths"):
                    await client.send(Request("GET", f"/explain/{path}"))
            with pytest.raises(ApiError) as refusal:
                await client.send(Request("POST", "/explain/podgroups/default/train", b"{}"))
            assert refusal.value.status in (404, 405)

    asyncio.run(story())


async def _cycles_and_policy(session: Session) -> None:
    """What the cycles did that led there, and by which policy."""
    cycles = await ask_cycles(session)
    assert isinstance(cycles, CycleList)
    assert (cycles.leader, cycles.oldest) == ("stromboli up", 1)
    named = {(each.kind, each.name): each for entry in cycles.cycles for each in entry.decisions}
    assert named["let-in", "train"].action == "enqueue"
    bound = named["bound", "small-0"]
    assert (bound.action, bound.job, bound.queue) == ("allocate", "default/small", "default")
    assert not [key for key in named if key[0] == "bound" and key[1].startswith("train")]
    decided = [entry for entry in cycles.cycles if entry.kind == "decided"]
    assert all("allocate" in entry.parts and entry.seconds > 0 for entry in decided)
    newer = await ask_cycles(session, after=cycles.newest, limit=1)
    assert isinstance(newer, CycleList)
    assert all(entry.last_number > cycles.newest for entry in newer.cycles)
    policy = await ask_policy(session)
    assert isinstance(policy, PolicyDocument)
    assert (policy.leader, policy.source, policy.refused) == ("stromboli up", "built-in policy", None)
    assert [action.name for action in policy.actions] == ["enqueue", "allocate", "backfill"]
    assert 0 < policy.loaded <= cycles.since


async def _who_may_ask(client: Client, access: Access) -> None:
    """A service account without rights is refused what the administrator is told."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    await client.create(resource_of(account), account, "default")
    body = await client.create(resource_of(account), {"spec": {}}, "default", "nobody", "token")
    identity = Identity((bearer(json.loads(body)["status"]["token"]),))
    async with Client(replace(access, credentials=StaticCredentials(identity))) as theirs:
        for resource, name in (("podgroups", "train"), ("queues", "default"), ("nodes", "n1"), ("jobs", "x")):
            refused = await ask_leader(Session(theirs), resource, "default", name)
            assert isinstance(refused, Unreachable)
            assert "cannot get resource" in refused.why
            assert refused.note.startswith("the leader was not asked: ")
        for asked, right in (
            (ask_cycles(Session(theirs)), 'cannot list resource "pods"'),
            (ask_policy(Session(theirs)), 'cannot get path "/explain/policy"'),
        ):
            refusal = await asked
            assert isinstance(refusal, Unreachable)
            assert right in refusal.why


# -- in a pod


def lease(holder: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "volcano"},
        "spec": {"holderIdentity": holder},
    }


async def start_leader(
    cluster: NodeCluster, text: str, status: int = 200, flags: tuple[str, ...] = ("--enable-explain",)
) -> None:
    """A pod that holds the lease and answers on a port of its own."""
    client = cluster.client
    await client.create(resource_of(NAMESPACE), NAMESPACE)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "scheduler"}}
    await client.create(resource_of(account), account, "volcano-system")
    (port,) = free_ports(1)
    container = {
        "name": "main",
        "image": "none",
        "command": [sys.executable, "-c", SERVER, text, str(status), str(port)],
        "args": [*flags, f"--listen-address=127.0.0.1:{port}"],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "leader-0", "labels": {"app.kubernetes.io/name": "stromboli"}},
        "spec": {"nodeName": "n1", "serviceAccountName": "scheduler", "containers": [container]},
    }
    await client.create(resource_of(pod), pod, "volcano-system")
    await client.create(LEASES, lease("leader-0_some-uuid"), "volcano-system")
    async with asyncio.timeout(60):
        while not await _is_listening(port):
            await asyncio.sleep(0.05)


async def _is_listening(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def test_the_pod_that_holds_the_lease_is_asked_through_the_api_server(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real", tls=True) as cluster:
            await start_leader(cluster, ANSWER.replace('"x"', '"TOKEN PATH"'))
            answer = await ask_leader(Session(cluster.client), "podgroups", "default", "train")
            assert isinstance(answer, LeaderAnswer)
            token = (await cluster.access.credentials.identity()).headers[0][1]
            assert answer.leader == f"{token} /explain/podgroups/default/train"

    asyncio.run(story())


def test_cycles_and_policy_are_asked_for_in_the_same_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await start_leader(cluster, '{"leader":"PATH","source":"f","loaded":1,"digest":"d"}')
            session = Session(cluster.client)
            cycles, policy = await ask_cycles(session, 7, 5), await ask_policy(session)
            assert isinstance(cycles, CycleList)
            assert isinstance(policy, PolicyDocument)
            assert (cycles.leader, policy.leader) == ("/explain/cycles?after=7&limit=5", "/explain/policy")

    asyncio.run(story())


def test_the_role_of_the_manifests_is_all_that_the_way_to_the_leader_takes(tmp_path: Path) -> None:
    roles = yaml.safe_load_all((ROOT / "deploy/components/explain/rbac.yaml").read_text())
    role = next(each for each in roles if each["kind"] == "Role")

    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await start_leader(cluster, ANSWER)
            client = cluster.client
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "ann"}}
            await client.create(resource_of(account), account, "default")
            body = await client.create(resource_of(account), {"spec": {}}, "default", "ann", "token")
            identity = Identity((bearer(json.loads(body)["status"]["token"]),))
            async with Client(replace(cluster.access, credentials=StaticCredentials(identity))) as theirs:
                assert 'cannot get resource "leases"' in _why(await _ask(theirs))
                await client.create(resource_of(role), role, "volcano-system")
                binding = {
                    "apiVersion": role["apiVersion"],
                    "kind": "RoleBinding",
                    "metadata": {"name": "ann"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "Role",
                        "name": role["metadata"]["name"],
                    },
                    "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "ann"}],
                }
                await client.create(resource_of(binding), binding, "volcano-system")
                assert isinstance(await _ask(theirs), LeaderAnswer)

    asyncio.run(story())


def test_who_has_no_token_gets_one_of_the_leaders_own_account(tmp_path: Path) -> None:
    """Such as who acts for another user: the API server decides by that user's rights whether there is a token."""

    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await start_leader(cluster, ANSWER.replace('"x"', '"TOKEN"'))
            own = (await cluster.access.credentials.identity()).headers
            for group, expected in (("system:masters", LeaderAnswer), ("system:authenticated", Unreachable)):
                headers = (*own, ("Impersonate-User", "ann"), ("Impersonate-Group", group))
                access = replace(cluster.access, credentials=StaticCredentials(Identity(headers)))
                async with Client(access) as client:
                    answer = await ask_leader(Session(client), "podgroups", "default", "train")
                assert isinstance(answer, expected), answer
                if isinstance(answer, LeaderAnswer):
                    assert answer.leader.startswith("Bearer ")
                    assert answer.leader != own[0][1]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "status", "why"),
    [
        ('{"kind":"Status","code":403,"reason":"Forbidden","message":"no right"}', 403, "no right"),
        ('{"message":"me is on standby: the leader is other"}', 503, "me is on standby: the leader is other"),
        ("no JSON", 200, "no explanation"),
        ("[" * 100_000, 200, "no explanation"),
        ('{"resource": 1}', 200, "no explanation"),
    ],
)
def test_whatever_a_leader_answers_is_at_worst_a_note(
    tmp_path: Path, text: str, status: int, why: str
) -> None:
    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await start_leader(cluster, text, status)
            answer = await ask_leader(Session(cluster.client), "podgroups", "default", "train")
            assert isinstance(answer, Unreachable)
            assert why in answer.why
            assert answer.note.endswith("; history is missing")

    asyncio.run(story())


def test_an_answer_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.cli.leader.leader_query.LARGEST_ANSWER", 1000)
    assert LARGEST_ANSWER > 1000

    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            await start_leader(cluster, "x" * 50_000)
            answer = await ask_leader(Session(cluster.client), "podgroups", "default", "train")
            assert isinstance(answer, Unreachable)
            assert "more than 1000 bytes" in answer.why

    asyncio.run(story())


def test_another_scheduler_is_not_asked_and_not_worth_a_word(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu") as cluster:
            client = cluster.client
            assert _why(await _ask(client)) == (
                "there is no Lease volcano-system/volcano, by which a leader would be known"
            )
            await client.create(resource_of(NAMESPACE), NAMESPACE)
            await client.create(LEASES, lease(""), "volcano-system")
            assert "nobody holds the Lease" in _why(await _ask(client))
            held = {"spec": {"holderIdentity": "volcano-scheduler-7_uuid"}}
            await client.patch(LEASES, "volcano", held, "volcano-system")
            assert "which is no pod of namespace volcano-system" in _why(await _ask(client))
            container = {"name": "volcano", "image": "volcano", "args": ["--listen-address=:8080"]}
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "volcano-scheduler-7"},
                "spec": {"containers": [container]},
            }
            await client.create(resource_of(pod), pod, "volcano-system")
            silent = await _ask(client)
            assert isinstance(silent, Unreachable)
            assert silent.is_expected
            assert silent.note == ""

    asyncio.run(story())


async def _ask(client: Client) -> LeaderAnswer | Unreachable:
    return await ask_leader(Session(client), "podgroups", "default", "train")


def _why(answer: LeaderAnswer | Unreachable) -> str:
    assert isinstance(answer, Unreachable)
    return answer.why


# -- at an address


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("http://127.0.0.1:8080", ""),
        ("http://[::1]:8080", ""),
        ("http://localhost:8080", ""),
        ("https://scheduler.example:8443", ""),
        ("http://scheduler.example:8080", "without TLS"),
        ("http://10.0.0.1:8080", "without TLS"),
        ("scheduler", "no address"),
        ("ftp://127.0.0.1", "no address"),
        ("http://user@127.0.0.1", "no address"),
        ("http://127.0.0.1:99999", "no address"),
    ],
)
def test_a_token_is_sent_over_loopback_or_tls_alone(address: str, problem: str) -> None:
    assert problem in address_problem(address)
    assert bool(problem) is bool(address_problem(address))


def test_a_leader_can_be_asked_at_an_address(tmp_path: Path) -> None:
    async def story() -> None:
        async with running_nodes(tmp_path, "1x8cpu,real") as cluster:
            (port,) = free_ports(1)
            answer = ANSWER.replace('"x"', '"TOKEN PATH"')
            await cluster.pod("leader", command=[sys.executable, "-c", SERVER, answer, "200", str(port)])
            async with asyncio.timeout(60):
                while not await _is_listening(port):
                    await asyncio.sleep(0.05)
            session = Session(cluster.client)
            asked = await ask_leader(session, "podgroups", "default", "train", f"http://127.0.0.1:{port}")
            assert isinstance(asked, LeaderAnswer)
            assert asked.leader.endswith(" /explain/podgroups/default/train")
            nowhere = await ask_leader(session, "queues", "", "default", "http://127.0.0.1:1")
            assert isinstance(nowhere, Unreachable)

    asyncio.run(story())
