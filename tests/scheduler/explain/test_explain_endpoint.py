"""The endpoint of the leader: who may ask about what, what is no question, and what a standby replica says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from yarl import URL

from stromboli.daemon.delegated_authorization import DelegatedAuthorization
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.extensions import load_catalog
from stromboli.kube.api_client import Client
from stromboli.kube.cluster_access import find_access
from stromboli.policy.policy import default_policy
from stromboli.scheduler.explain.explain_endpoint import PERMISSIONS, ExplainEndpoint
from stromboli.scheduler.explain.explain_paths import CYCLES, NO_PATH_PERMISSION, POLICY, Question
from stromboli.scheduler.explain.explanations import TooManyQuestions
from stromboli.scheduler.explain.leader_answer import LeaderAnswer
from stromboli.scheduler.explain.leader_log import LeaderLog
from stromboli.scheduler.thread_seam import Unavailable
from stromboli.scheduling_loop import Scheduler
from stromboli.simulator.rehearsal import Rehearsal
from tests.embedded.api_requests import ApiCaller, running

ROLES = "/apis/rbac.authorization.k8s.io/v1"
TRAIN = "/explain/podgroups/default/train"
CATALOG = load_catalog()


class Explained:
    """Knows `train`, and fails as a test wants."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked: list[Question] = []

    async def answer(self, question: Question) -> LeaderAnswer:
        self.asked.append(question)
        if self.failure is not None:
            raise self.failure
        return LeaderAnswer(*question, known=question.name == "train")


def record_of(cycles: int) -> LeaderLog:
    """What a leader remembers after so many cycles on an empty cluster."""
    record = LeaderLog()
    scheduler = Scheduler(Rehearsal(), default_policy(CATALOG), CATALOG)
    for _ in range(cycles):
        record.note(scheduler, scheduler.cycle(), TelemetryGuard())
    return record


class Endpoint:
    """A server with the endpoint alone, beside an embedded API server that decides who may ask."""

    def __init__(self, client: TestClient[web.Request, Any], api: ApiCaller, explained: Explained) -> None:
        self._client = client
        self.api = api
        self.explained = explained

    async def get(self, path: str, token: str | None, method: str = "GET") -> tuple[int, Any]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = URL(str(self._client.make_url("/")).rstrip("/") + path, encoded=True)
        async with self._client.session.request(method, url, headers=headers) as response:
            text = await response.text()
            return response.status, json.loads(text) if text.startswith("{") else text

    async def account(self, name: str, *rules: dict[str, Any], namespace: str = "default") -> str:
        """The token of a new service account that has these rights in a namespace, or in all if that is empty."""
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await self.api.post(accounts, {"metadata": {"name": name}})
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": name}
        where, kind = (
            (f"{ROLES}/namespaces/{namespace}/", "Role") if namespace else (f"{ROLES}/", "ClusterRole")
        )
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        role = f"{where}{kind.lower()}"
        await self.api.post(f"{role}s", {"metadata": {"name": name}, "rules": list(rules)})
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        await self.api.post(f"{role}bindings", binding)
        token: str = (await self.api.post(f"{accounts}/{name}/token", {"spec": {}}))["status"]["token"]
        return token


@asynccontextmanager
async def endpoint(folder: Path, leader: str | None = None, cycles: int = 3) -> AsyncIterator[Endpoint]:
    async with running(folder) as api:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(api.server.kubeconfig()))
        explained, app = Explained(), web.Application()
        async with Client(find_access(str(kubeconfig))) as client:
            served = ExplainEndpoint(
                explained,  # type: ignore[arg-type]
                record_of(cycles),
                DelegatedAuthorization(client, rights=PERMISSIONS),
                lambda: leader,
                "me",
                TelemetryGuard(),
            )
            served.add_routes(app)
            async with TestClient(TestServer(app)) as test_client:
                yield Endpoint(test_client, api, explained)


def rule(verb: str, group: str, resource: str, *names: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": list(names)}


VOLCANO = "scheduling.volcano.sh"


def test_only_users_who_may_read_an_object_get_its_explanation(tmp_path: Path) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            await served.api.post("/api/v1/namespaces", {"metadata": {"name": "other"}})
            owner = await served.account("owner", rule("get", VOLCANO, "podgroups", "train"))
            lister = await served.account("lister", rule("list", VOLCANO, "podgroups"))
            stranger = await served.account("stranger", rule("get", VOLCANO, "podgroups"), namespace="other")
            watcher = await served.account("watcher", rule("get", "", "pods"))
            assert (await served.get(TRAIN, None))[0] == 401
            assert (await served.get(TRAIN, "guess"))[0] == 401
            for token in (owner, lister, served.api.server.token):
                status, answer = await served.get(TRAIN, token)
                assert status == 200
                assert (answer["name"], answer["leader"]) == ("train", "me")
            asked = len(served.explained.asked)
            for token, path in (
                (stranger, TRAIN),
                (watcher, TRAIN),
                (owner, "/explain/podgroups/default/another"),
                (owner, "/explain/podgroups/other/train"),
                (owner, "/explain/jobs/default/train"),
                (owner, "/explain/pods/default/train"),
                (owner, "/explain/queues/train"),
                (lister, "/explain/nodes/train"),
            ):
                status, refusal = await served.get(path, token)
                assert status == 403, path
                assert refusal["reason"] == "Forbidden"
                assert "cannot get resource" in refusal["message"]
            assert len(served.explained.asked) == asked, "no response shows whether an object exists"
            assert (await served.get("/explain/pods/default/train", watcher))[0] == 200
            status, refusal = await served.get("/explain/pods/default/other", watcher)
            assert (status, refusal["reason"]) == (404, "NotFound")

    asyncio.run(story())


@pytest.mark.parametrize(
    "path",
    [
        "/explain/",
        "/explain/secrets/default/token",
        "/explain/podgroups/default/%2e%2e",
        "/explain/podgroups/default/a%2F..%2Fb",
        "/explain/podgroups/default/%1b%5b31m",
        "/explain/cycles/1",
        "/explain/queues/" + "a" * 4000,
    ],
)
def test_a_path_that_is_no_question_is_refused_before_anybody_is_asked(tmp_path: Path, path: str) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            status, refusal = await served.get(path, served.api.server.token)
            assert status == 400
            assert "/explain/podgroups/NAMESPACE/NAME" in refusal["message"]
            assert "/explain/cycles and /explain/policy" in refusal["message"]
            assert not served.explained.asked

    asyncio.run(story())


def test_it_only_reads(tmp_path: Path) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                for path in (TRAIN, CYCLES, POLICY):
                    assert (await served.get(path, served.api.server.token, method))[0] == 405

    asyncio.run(story())


@pytest.mark.parametrize(
    ("failure", "status"),
    [(TooManyQuestions("16 others"), 429), (Unavailable("a cycle runs"), 503), (ZeroDivisionError(), 500)],
)
def test_a_question_that_cannot_be_answered_now_is_rejected(
    tmp_path: Path, failure: Exception, status: int
) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            served.explained.failure = failure
            assert (await served.get(TRAIN, served.api.server.token))[0] == status

    asyncio.run(story())


@pytest.mark.parametrize(
    ("leader", "text"),
    [
        ("other_1", "me is on standby: the leader is other_1"),
        ("", "me is on standby: no leader is elected yet"),
    ],
)
def test_a_standby_replica_names_the_leader_to_authorized_users(
    tmp_path: Path, leader: str, text: str
) -> None:
    async def story() -> None:
        async with endpoint(tmp_path, leader) as served:
            for path in (TRAIN, CYCLES, POLICY):
                status, refusal = await served.get(path, served.api.server.token)
                assert (status, refusal["message"]) == (503, text)
                assert (await served.get(path, None))[0] == 401
            assert not served.explained.asked

    asyncio.run(story())


# -- cycles and policy


def test_cycles_need_permission_to_list_all_pods_and_podgroups(tmp_path: Path) -> None:
    pods, groups = rule("list", "", "pods"), rule("list", VOLCANO, "podgroups")

    async def story() -> None:
        async with endpoint(tmp_path) as served:
            viewer = await served.account("viewer", pods, groups, namespace="")
            half = await served.account("half", pods, namespace="")
            other = await served.account("other", groups, namespace="")
            local = await served.account("local", pods, groups)
            status, answer = await served.get(f"{CYCLES}?after=1&limit=5", viewer)
            assert (status, answer["leader"], answer["newest"]) == (200, "me", 3)
            (run,) = answer["cycles"]
            assert (run["kind"], run["lastNumber"], run["cycles"]) == ("idle", 3, 3)
            assert (await served.get(CYCLES, served.api.server.token))[0] == 200
            for token, missing in ((half, "podgroups"), (other, "pods"), (local, "pods")):
                status, refusal = await served.get(CYCLES, token)
                assert status == 403
                assert f'cannot list resource "{missing}"' in refusal["message"]
                assert "at the cluster scope" in refusal["message"]
            assert (await served.get(CYCLES, None))[0] == 401

    asyncio.run(story())


@pytest.mark.parametrize(
    "query", ["after=x", "after=-1", "limit=1.5", f"after={'9' * 16}", "before=1", "after="]
)
def test_a_query_for_cycles_that_is_wrong_is_refused(tmp_path: Path, query: str) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            status, refusal = await served.get(f"{CYCLES}?{query}", served.api.server.token)
            assert status == 400
            assert "?after=NUMBER" in refusal["message"]

    asyncio.run(story())


def test_the_policy_needs_permission_to_get_its_path(tmp_path: Path) -> None:
    async def story() -> None:
        async with endpoint(tmp_path) as served:
            reader = await served.account(
                "reader", {"nonResourceURLs": [POLICY], "verbs": ["get"]}, namespace=""
            )
            nobody = await served.account("nobody", rule("get", "", "configmaps"), namespace="")
            status, answer = await served.get(POLICY, reader)
            assert (status, answer["leader"], answer["source"]) == (200, "me", "built-in policy")
            assert (await served.get(CYCLES, reader))[0] == 403
            status, refusal = await served.get(POLICY, nobody)
            assert status == 403
            assert refusal["message"].endswith(f'cannot get path "{POLICY}": {NO_PATH_PERMISSION}')

    asyncio.run(story())


def test_before_the_first_cycle_there_is_no_policy_and_no_cycle(tmp_path: Path) -> None:
    async def story() -> None:
        async with endpoint(tmp_path, cycles=0) as served:
            status, refusal = await served.get(POLICY, served.api.server.token)
            assert (status, refusal["message"]) == (503, "no cycle has completed yet")
            assert await served.get(CYCLES, served.api.server.token) == (200, {"leader": "me", "since": 0.0})

    asyncio.run(story())
