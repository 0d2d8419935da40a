"""The API server of an embedded cluster: wires its parts together, listens, and stops.

async with ApiServer(folder) as server:
    server.write_kubeconfig(folder / "kubeconfig")
    ...  # server.url, server.ca, server.token
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from stromboli.admission.rules.rule_context import Settings
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.http_listener import HttpListener
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.embedded.admission.admission_chain import AdmissionChain
from stromboli.embedded.admission.volcano_admission import VolcanoAdmission
from stromboli.embedded.auth.authorization import RequestAuthorizer
from stromboli.embedded.auth.cluster_authority import ClusterAuthority
from stromboli.embedded.auth.identity import SHORTEST_SECRET, Tokens
from stromboli.embedded.data_files import OBJECTS, DataError, make_folder, read_file, write_secret
from stromboli.embedded.data_format import check_format, mark_format
from stromboli.embedded.http.explain_responses import ClusterExplanations
from stromboli.embedded.http.metrics_responses import ClusterMetrics
from stromboli.embedded.http.router import Router
from stromboli.embedded.kinds.builtin_kinds import METRICS
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.kube_controllers.event_expiry import EventExpiry
from stromboli.embedded.kube_controllers.server_controllers import controller_loop
from stromboli.embedded.nodes.pod_logs import LogSource
from stromboli.embedded.nodes.pod_streams import PodStreams
from stromboli.embedded.nodes.usage.cluster_usage import UsageSource
from stromboli.embedded.objects.api_service import is_published, publish_api_server
from stromboli.embedded.objects.bootstrap_objects import bootstrap
from stromboli.embedded.objects.former_objects import bring_up_to_date
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.store.history import HISTORY_BYTES, HISTORY_LIMIT
from stromboli.embedded.store.object_store import Store
from stromboli.embedded.store.records import Change
from stromboli.embedded.store.watch_buffers import WATCH_BYTES, WatchBuffers
from stromboli.embedded.store.watch_hub import WatchHub
from stromboli.embedded.time_slices import warn_of_lag

log = logging.getLogger(__name__)

LARGEST_BODY = 3 * 1024 * 1024
BOOKMARK_INTERVAL = 60.0
"""Seconds between bookmarks."""
SHUTDOWN_TIMEOUT = 1.0
"""Seconds for open requests when the server stops."""


@dataclass(eq=False)
class ApiServer:
    """An API server on its data folder: running between `async with` and its end."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 0
    """0 is any that is free."""
    tls: bool = True
    crds: bool = False
    """Whether to add Volcano's kinds."""
    storage_class: bool = False
    """Whether to make a default storage class when the server first starts."""
    workloads: bool = False
    """Whether controllers run beside the server as kube-controller-manager does: for workloads and the CA bundle."""
    logs: LogSource | None = None
    usage: UsageSource | None = None
    """If given, `metrics.k8s.io` is served."""
    streams: PodStreams | None = None
    explanations: ClusterExplanations | None = None
    """If given, what the scheduler knows of jobs is served below /explain/."""
    metrics: ClusterMetrics | None = None
    """If given, the metrics of the scheduler are served."""
    history: int = HISTORY_LIMIT
    history_bytes: int = HISTORY_BYTES
    watch_bytes: int = WATCH_BYTES
    power_safe: bool = False
    """Whether to wait for the disk at each commit."""
    volcano_settings: Settings | None = None
    """If given, Volcano's admission is built in."""
    connection_limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    _listener: HttpListener | None = field(default=None, init=False)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list, init=False)

    async def __aenter__(self) -> ApiServer:
        make_folder(self.data)
        is_current = check_format(self.data)
        pki = self.data / "pki"
        self.authority = ClusterAuthority(pki)
        self.token = _stored_secret(pki / "token")
        tokens = Tokens(_stored_secret(pki / "signing").encode(), self.token)
        self.store = Store(self.data / OBJECTS, self.history, self.power_safe, self.history_bytes)
        try:
            self._assemble(tokens)
        except BaseException:
            await self.store.close()
            raise
        try:
            await self._start(is_current)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    def _assemble(self, tokens: Tokens) -> None:
        """Connect the parts with the store."""
        registry = KindRegistry()
        for kind in METRICS if self.usage is not None else ():
            registry.register(kind)
        self.hub = WatchHub(WatchBuffers(self.watch_bytes))
        authorizer = RequestAuthorizer(self.store)
        settings = self.volcano_settings
        volcano = VolcanoAdmission(self.store, settings) if settings is not None else None
        admission = AdmissionChain(self.store, authorizer, volcano)
        self.objects = Objects(self.store, registry, admission, self.workloads)
        ca = self.ca.read_text() if self.tls and self.workloads else ""
        self.controllers = controller_loop(self.objects, self.data, ca)
        self._event_expiry = EventExpiry(self.store)
        self.store.on_commit(self.controllers.on_commit)
        self.store.on_commit(self._event_expiry.on_commit)
        self.store.on_commit(self.hub.publish)
        self.store.on_compaction(self.hub.buffers.compact)
        self.store.wait_for(self.hub.caught_up)
        self._router = Router(
            self.objects,
            self.hub,
            tokens,
            authorizer,
            self.logs,
            self.usage,
            self.streams,
            self.explanations,
            self.metrics,
        )

    async def _start(self, is_current: bool) -> None:
        await bootstrap(self.objects, self.crds, self.storage_class)
        self._log_unknown_kinds()
        if not is_current:
            await bring_up_to_date(self.objects)
            await self.store.wait_committed()
            mark_format(self.data)
        self._event_expiry.start()
        await self.controllers.start()
        await self._listen()
        await publish_api_server(self.objects, self.url)
        self.store.on_commit(self._keep_service)
        self._tasks += [
            asyncio.create_task(self._run_periodically()),
            asyncio.create_task(warn_of_lag()),
        ]

    def _keep_service(self, batch: Sequence[Change]) -> None:
        """Whoever deletes `default/kubernetes` or its endpoints, with all others say, gets them back."""
        if any(change.after is None and is_published(change.key) for change in batch):
            self._tasks.append(asyncio.create_task(self._restore_service()))

    async def _restore_service(self) -> None:
        with TelemetryGuard()("the Service of the API server"):
            await publish_api_server(self.objects, self.url)

    def _log_unknown_kinds(self) -> None:
        """Objects that a later release may have stored are kept, though nobody can ask for them."""
        known = self.objects.registry.by_id
        unknown = [
            f"{name} ({len(self.store.table(name))})" for name in self.store.resources() if not known(name)
        ]
        if unknown:
            log.warning(
                "%s: kept but not served, as their kinds are not known: %s", self.data, ", ".join(unknown)
            )

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        await self.controllers.stop()
        for watch in self.hub:
            watch.end()
        if self._listener is not None:
            await self._listener.stop()
        await self.objects.admission.webhooks.close()
        await self.store.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()

        def request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
            return web.BaseRequest(
                message, payload, protocol, writer, task, loop, client_max_size=LARGEST_BODY
            )

        runner = web.ServerRunner(
            web.Server(
                self._router.handle,
                request_factory=request,
                access_log=None,
                auto_decompress=False,
                handler_cancellation=True,  # a watch ends as soon as its client leaves
            ),
            handle_signals=False,
            shutdown_timeout=SHUTDOWN_TIMEOUT,
        )
        context = self.authority.server_context((self.host,)) if self.tls else None
        self._listener = HttpListener(runner, self.connection_limits, context)
        await self._listener.start(self.host, self.port)
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        self.url = f"{'https' if self.tls else 'http'}://{f'[{host}]' if ':' in host else host}:{self._listener.port}"

    @property
    def ca(self) -> Path:
        return self.authority.certificate_file

    def write_kubeconfig(self, path: Path) -> Path:
        """For the administrator."""
        write_secret(path, (json.dumps(self.kubeconfig(), indent=2) + "\n").encode())
        return path

    def kubeconfig(self, token: str = "") -> dict[str, Any]:
        """For the user of a token, or else for the administrator."""
        cluster = {"server": self.url}
        if self.tls:
            cluster["certificate-authority"] = str(self.ca.absolute())
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "stromboli",
            "contexts": [{"name": "stromboli", "context": {"cluster": "stromboli", "user": "admin"}}],
            "clusters": [{"name": "stromboli", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token or self.token}}],
        }

    async def _run_periodically(self) -> None:
        guard = TelemetryGuard()
        while True:
            await asyncio.sleep(BOOKMARK_INTERVAL)
            with guard("bookmarks"):
                self.hub.send_bookmarks()
            with guard("expiry of events"):
                await self._event_expiry.expire()


def _stored_secret(path: Path) -> str:
    """Generated when it is first needed; one that could be guessed is refused."""
    if not os.path.lexists(path):
        write_secret(path, secrets.token_hex(32).encode())
    remedy = "delete it: another one is made at the next start, and tokens from before are no longer accepted"
    secret = read_file(path, remedy).decode(errors="replace").strip()
    if len(secret) < SHORTEST_SECRET or not secret.isascii() or any(map(str.isspace, secret)):
        raise DataError(
            f"{path}: {len(secret)} characters, where a secret has at least {SHORTEST_SECRET} of ASCII and no blanks;"
            f" {remedy}"
        )
    return secret
