"""All pods of all real nodes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import msgspec

from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.real.config_references import references
from stromboli.embedded.nodes.real.container_environment import Fetch
from stromboli.embedded.nodes.real.container_logs import find_log, pod_folder, read_log
from stromboli.embedded.nodes.real.containers import NodeContext
from stromboli.embedded.nodes.real.pod_volumes import remove_folder
from stromboli.embedded.nodes.real.pod_worker import GRACE, PodWorker
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)

SOURCES = {
    "ConfigMap": Resource("", "v1", "configmaps", "ConfigMap"),
    "Secret": Resource("", "v1", "secrets", "Secret"),
}
PARTING = 3.0
"""Seconds that processes have to end when we do."""


class ProcessRuntime:
    """Lets pods run as processes."""

    def __init__(self, client: Client, writes: WriteQueue, folder: Path, first_pause: float = 1.0) -> None:
        """`folder` is where pods live and what claims hold is kept."""
        self._client = client
        self._writes = writes
        self._pods = folder / "pods"
        self._guardian = ProcessGuardian(str(self._pods))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._around = NodeContext(
            self._pods, folder / "claims", self._guardian, writes, self._fetch_all, first_pause
        )
        self._runs: dict[str, PodWorker] = {}
        self._folders: dict[str, Path] = {}
        self._leaving: set[str] = set()
        self._ending: set[asyncio.Task[None]] = set()
        """Pods that were dropped and still have to end."""

    def put(self, pod: NodePod) -> None:
        run = self._runs.get(pod.uid)
        folder = self._folders[pod.uid] = pod_folder(self._pods, pod.namespace, pod.name, pod.uid)
        if run is None and not pod.finished and not pod.leaving:
            run = self._runs[pod.uid] = PodWorker(pod, folder, self._around)
        elif run is not None:
            run.pod = pod
        if pod.leaving:
            self._leave(pod, run)

    def _leave(self, pod: NodePod, run: PodWorker | None) -> None:
        """Stop what runs; when nothing does any more, the pod goes."""
        if run is None:
            self._writes.let_go(pod)
            return
        grace = pod.metadata.deletion_grace_period_seconds
        run.stop(GRACE if grace is None else float(grace))
        if pod.uid not in self._leaving:
            self._leaving.add(pod.uid)
            run.task.add_done_callback(lambda _: self._left(pod))

    def _left(self, pod: NodePod) -> None:
        if pod.uid in self._leaving:
            self._leaving.discard(pod.uid)
            self._writes.let_go(pod)

    def drop(self, uid: str) -> None:
        self._leaving.discard(uid)
        run, folder = self._runs.pop(uid, None), self._folders.pop(uid, None)
        if run is not None:
            run.kill()
            self._ending.add(run.task)
            run.task.add_done_callback(lambda task: self._ended(task, run.folder))
        elif folder is not None:
            remove_folder(folder)

    def _ended(self, task: asyncio.Task[None], folder: Path) -> None:
        self._ending.discard(task)
        remove_folder(folder)

    async def close(self) -> None:
        """End all processes, in order if they let us."""
        runs, self._runs, self._leaving = list(self._runs.values()), {}, set()
        tasks = [*self._ending, *(run.task for run in runs)]
        for run in runs:
            run.quiet = True
            run.stop(PARTING)
        if tasks:
            await asyncio.wait(tasks, timeout=PARTING + 2)
        for run in runs:
            run.kill()
            run.task.cancel()
            with suppress(asyncio.CancelledError):
                await run.task
        self._guardian.close()

    def log(self, pod: NodePod, query: LogQuery) -> AsyncIterator[bytes]:
        """What a container of a pod said; `NoLog` if it said nothing yet."""
        container = query.container or str(pod.spec.containers[0].get("name", ""))
        asked = replace(query, container=container)
        path = find_log(pod_folder(self._pods, pod.namespace, pod.name, pod.uid), asked)

        def ended() -> bool:
            run = self._runs.get(pod.uid)
            return run is None or not run.runs(container)

        return read_log(path, asked, ended)

    async def _fetch_all(self, pod: NodePod) -> Fetch:
        found: dict[tuple[str, str], Content] = {}
        for kind, name in references(pod):
            try:
                body = await self._client.get(SOURCES[kind], name, pod.namespace)
            except (ApiError, NoResponse) as error:
                if not isinstance(error, ApiError) or error.status != 404:
                    log.warning("%s %s/%s: %s", kind, pod.namespace, name, error)
                continue
            found[kind, name] = msgspec.json.decode(body)
        return lambda kind, name: found.get((kind, name))
