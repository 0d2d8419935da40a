"""Pages and actions on an embedded API server beside the test, for users with their own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from stromboli.cli.cluster.cluster_kinds import (
    COMMANDS,
    EVENTS,
    JOBS,
    NODES,
    POD_GROUPS,
    PODS,
    QUEUES,
    Manifest,
    name_of,
    namespace_of,
)
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.pages.page_content import PageContent, Render, ViewRequest
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.cluster_access import Access
from stromboli.kube.credentials import Identity, StaticCredentials, bearer
from tests.cli.dashboard.view_requests import CATALOG, NOW

ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = ROLES._replace(plural="clusterrolebindings", kind="ClusterRoleBinding")
KINDS = {each.kind: each for each in (EVENTS, JOBS, NODES, POD_GROUPS, PODS, QUEUES, ROLES, BINDINGS)}
READER = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]
"""Rules of one who may read everything and change nothing."""


class FixedLogs:
    """The same log for every container."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces
        self.asked: list[LogQuery] = []

    def log(self, namespace: str, pod: str, query: LogQuery) -> AsyncGenerator[bytes] | None:
        self.asked.append(query)

        async def come() -> AsyncGenerator[bytes]:
            for piece in self.pieces:
                yield piece

        return come()


class ServedCluster:
    """An API server with some objects, and who looks at it."""

    def __init__(self, server: ApiServer, sessions: AsyncExitStack) -> None:
        self._server = server
        self._sessions = sessions

    async def session(self, user: str = "") -> ClusterSession:
        """That of an administrator, or of another user."""
        headers = (bearer(self._server.token), *([("Impersonate-User", user)] if user else []))
        access = Access(self._server.url, credentials=StaticCredentials(Identity(headers)))
        return ClusterSession(await self._sessions.enter_async_context(Client(access)), None, "default")

    async def create(self, *manifests: Manifest) -> None:
        """Objects with their status."""
        admin = await self.session()
        for manifest in manifests:
            resource, where = KINDS[manifest["kind"]], namespace_of(manifest) or "default"
            made = await admin.create(resource, manifest, where)
            if made.get("status") != manifest.get("status"):
                status = {"status": manifest["status"]}
                await admin.patch(resource, name_of(made), status, where, "status")

    async def allow(self, user: str, rules: Iterable[Manifest]) -> None:
        """Give a user rights."""
        meta = {"metadata": {"name": user}}
        role = {"kind": ROLES.kind, "apiGroup": ROLES.group, "name": user}
        subject = {"kind": "User", "apiGroup": ROLES.group, "name": user}
        await self.create(
            {"apiVersion": ROLES.api_version, "kind": ROLES.kind, **meta, "rules": list(rules)},
            {
                "apiVersion": ROLES.api_version,
                "kind": BINDINGS.kind,
                **meta,
                "roleRef": role,
                "subjects": [subject],
            },
        )

    async def request(self, path: str, names: dict[str, str], user: str = "", **query: str) -> ViewRequest:
        """What a user asks for, of the cluster as it is now."""
        session = await self.session(user)
        cluster = WatchedCluster(await self.session(), CATALOG)
        async with cluster.watches.running():
            await cluster.watches.listed()
        viewer = Viewer(user or "admin", user or "admin", session)
        return ViewRequest(path, names, query, viewer, cluster, cluster.view(viewer.visibility), NOW)

    async def page(
        self, render: Render, path: str, names: dict[str, str], user: str = "", **query: str
    ) -> PageContent:
        return await render(await self.request(path, names, user, **query))

    async def commands(self, namespace: str = "default") -> list[tuple[str, str]]:
        """What controllers were told: the action and its target."""
        listed = (await (await self.session()).list(COMMANDS, namespace)).items
        return [(command["action"], command["target"]["name"]) for command in listed]


@asynccontextmanager
async def served(folder: Path, *manifests: Manifest, **options: Any) -> AsyncIterator[ServedCluster]:
    async with ApiServer(folder, tls=False, crds=True, **options) as server, AsyncExitStack() as sessions:
        cluster = ServedCluster(server, sessions)
        await cluster.create(*manifests)
        yield cluster


def on_cluster(work: Callable[[ServedCluster], Awaitable[None]], folder: Path) -> None:
    """Do something with one that has no objects yet."""

    async def run() -> None:
        async with served(folder) as cluster:
            await work(cluster)

    asyncio.run(run())


def job_manifest(name: str = "train", phase: str = "Running", **spec: Any) -> Manifest:
    """A Job of two tasks."""
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    tasks = [
        {"name": "master", "replicas": 1, "minAvailable": 1, "template": template},
        {"name": "worker", "replicas": 3, "minAvailable": 2, "template": template},
    ]
    since = "2027-01-15T07:00:00Z"
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 3, "queue": "default", "schedulerName": "volcano", "tasks": tasks, **spec},
        "status": {
            "state": {"phase": phase, "lastTransitionTime": since},
            "minAvailable": 3,
            "conditions": [{"status": phase, "lastTransitionTime": since}],
            "taskStatusCount": {"worker": {"phase": {"Running": 2, "Pending": 1}}},
        },
    }


def pod_manifest(job: Manifest, task: str, index: int, node: str = "", **status: Any) -> Manifest:
    """A pod of a job, as its controller makes it."""
    name = name_of(job)
    marks = {
        "volcano.sh/job-name": name,
        "volcano.sh/task-spec": task,
        "volcano.sh/task-index": str(index),
        "scheduling.k8s.io/group-name": f"{name}-{job['metadata'].get('uid')}",
    }
    owner = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": name,
        "uid": job["metadata"].get("uid"),
        "controller": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{task}-{index}",
            "namespace": "default",
            "labels": {key: value for key, value in marks.items() if key.startswith("volcano.sh")},
            "annotations": marks,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "main", "image": "none"}], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending", **status},
    }
