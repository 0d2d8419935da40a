"""The runtime of real nodes: a pod worker for each pod."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import msgspec

from stromboli.embedded.nodes import pod_status_patches
from stromboli.embedded.nodes.machine.gpu_locks import GpuLocks
from stromboli.embedded.nodes.machine.gpu_manager import GpuManager
from stromboli.embedded.nodes.machine.nvidia_smi import Gpu, find_gpus
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_claims_check import (
    FAILED_MOUNT,
    VOLUME_CLAIMS,
    missing_claim,
    needs_claims,
    volume_claims,
)
from stromboli.embedded.nodes.pod_logs import LogQuery
from stromboli.embedded.nodes.pod_streams import CommandRequest, Remote, Socket, StreamRefused
from stromboli.embedded.nodes.real import container_streams
from stromboli.embedded.nodes.real.config_references import references
from stromboli.embedded.nodes.real.container_environment import ContainerError, Fetch
from stromboli.embedded.nodes.real.container_logs import find_log, pod_folder, read_log
from stromboli.embedded.nodes.real.container_process import ContainerProcess
from stromboli.embedded.nodes.real.leftovers.pod_folders import PodFolders
from stromboli.embedded.nodes.real.pod_sandbox import NodeContext
from stromboli.embedded.nodes.real.pod_worker import PodWorker
from stromboli.embedded.nodes.real.process_guardian import ProcessGuardian, has_marked
from stromboli.embedded.nodes.real.resources.container_readings import ProcessPlace, read_containers
from stromboli.embedded.nodes.real.resources.gpu_capacity import GpuCapacity
from stromboli.embedded.nodes.real.resources.node_startup import FindCgroups, prepare
from stromboli.embedded.nodes.real.resources.pod_resources import NodeResources
from stromboli.embedded.nodes.usage.cluster_usage import ContainerUsage
from stromboli.embedded.nodes.usage.process_usage import Reading
from stromboli.embedded.nodes.usage.usage_meter import UsageMeter
from stromboli.embedded.nodes.write_queue import WriteQueue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError, NoResponse

log = logging.getLogger(__name__)

VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
SOURCES = {
    "ConfigMap": Resource("", "v1", "configmaps", "ConfigMap"),
    "Secret": Resource("", "v1", "secrets", "Secret"),
}
SHUTDOWN_GRACE = 3.0
"""Grace period of processes when the service ends."""


class ProcessRuntime:
    """Runs pods as processes."""

    def __init__(
        self,
        client: Client,
        writes: WriteQueue,
        folder: Path,
        first_backoff: float = 1.0,
        find_gpus: Callable[[], list[Gpu]] = find_gpus,
        find_cgroups: FindCgroups | None = None,
        gpu_locks: Path | None = None,
    ) -> None:
        """`folder` has the folders of pods and of persistent volumes, and the record of GPUs; `gpu_locks` is shared
        with the other clusters of the user.
        """
        self._client = client
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        pods = folder / "pods"
        guardian = ProcessGuardian(str(pods))
        locks = GpuLocks(gpu_locks or folder / "gpu-locks", pods, has_marked)
        gpus = GpuManager(folder / "gpus.json", locks, find_gpus)
        self._gpu_capacity = GpuCapacity(client, writes, gpus)
        self._context = NodeContext(
            pods,
            folder / "claims",
            guardian,
            writes,
            self._fetch_all,
            NodeResources(gpus),
            first_backoff,
        )
        self._find_cgroups = find_cgroups
        self._preparing: asyncio.Task[None] | None = None
        self._workers: dict[str, PodWorker] = {}
        self._meter = UsageMeter(self._read_usage)
        self._folders: dict[str, Path] = {}
        self._pod_folders = PodFolders(pods)
        self._terminating: set[str] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        """Tasks of dropped pods that still have to end."""

    def put(self, pod: NodePod) -> None:
        self._prepare()
        worker = self._workers.get(pod.uid)
        folder = self._folders[pod.uid] = pod_folder(self._context.pods, pod.namespace, pod.name, pod.uid)
        if worker is None and not pod.finished and not pod.terminating:
            worker = self._workers[pod.uid] = PodWorker(pod, folder, self._context)
        elif worker is not None:
            worker.update(pod)
        if pod.terminating:
            self._terminate(pod, worker)

    def _prepare(self) -> None:
        """Before the first pod."""
        if self._preparing is None:
            context = self._context
            preparation = prepare(context.pods, context.guardian, context.resources, self._find_cgroups)
            self._preparing = asyncio.create_task(preparation)

    def _terminate(self, pod: NodePod, worker: PodWorker | None) -> None:
        """Stop the pod's worker, then delete the pod."""
        if worker is None:
            if pod.needs_final_status:
                now = self._context.clock()
                self._context.writes.patch_status(pod, pod_status_patches.killed(pod, now, now))
            self._context.writes.delete_pod(pod)
            return
        grace = pod.metadata.deletion_grace_period_seconds
        worker.stop(worker.sandbox.grace if grace is None else float(grace))
        if pod.uid not in self._terminating:
            self._terminating.add(pod.uid)
            worker.task.add_done_callback(lambda _: self._terminated(pod))

    def _terminated(self, pod: NodePod) -> None:
        if pod.uid in self._terminating:
            self._terminating.discard(pod.uid)
            self._context.writes.delete_pod(pod)

    def drop(self, uid: str) -> None:
        self._terminating.discard(uid)
        worker, folder = self._workers.pop(uid, None), self._folders.pop(uid, None)
        if worker is not None:
            worker.kill()
            self._stopping.add(worker.task)
            worker.task.add_done_callback(lambda task: self._stopped(task, worker.sandbox.folder))
        elif folder is not None:
            self._pod_folders.remove(folder)

    def _stopped(self, task: asyncio.Task[None], folder: Path) -> None:
        self._stopping.discard(task)
        self._pod_folders.remove(folder)

    async def close(self) -> None:
        """End all processes, gracefully if they end in time."""
        workers, self._workers, self._terminating = list(self._workers.values()), {}, set()
        tasks = [*self._stopping, *(worker.task for worker in workers)]
        for worker in workers:
            worker.close(SHUTDOWN_GRACE)
        if tasks:
            await asyncio.wait(tasks, timeout=SHUTDOWN_GRACE + 2)
        for worker in workers:
            worker.kill()
            worker.task.cancel()
        await asyncio.gather(*(worker.task for worker in workers), return_exceptions=True)
        if self._preparing is not None:
            self._preparing.cancel()
        self._gpu_capacity.close()
        self._context.guardian.close()
        if self._context.resources.cgroups is not None:
            await asyncio.to_thread(self._context.resources.cgroups.close)
        self._context.resources.gpus.close()
        await self._pod_folders.close()

    async def clean_up(self) -> None:
        """Remove what is left of pods that went while we did not run; called when all pods that exist were put."""
        if self._context.pods.exists():
            self._prepare()
            await self._context.resources.ready.wait()
            await self._pod_folders.remove_others(self._folders.values)

    def log(self, pod: NodePod, query: LogQuery) -> AsyncGenerator[bytes] | None:
        path = find_log(pod_folder(self._context.pods, pod.namespace, pod.name, pod.uid), query)

        def ended() -> bool:
            worker = self._workers.get(pod.uid)
            return worker is None or not worker.runs(query.container)

        return None if path is None else read_log(path, query, ended)

    async def measure(self) -> None:
        await self._meter.measure()

    def usage(self, pod: NodePod) -> list[ContainerUsage]:
        worker = self._workers.get(pod.uid)
        usages = (
            (container.name, self._meter.usage(_usage_key(pod.uid, process)))
            for container, process in (worker.running() if worker is not None else ())
        )
        return [ContainerUsage(name, usage) for name, usage in usages if usage is not None]

    async def _read_usage(self) -> dict[str, Reading]:
        """Of all containers that run now."""
        places = {
            _usage_key(uid, process): ProcessPlace(process.group.leader, process.launch.cgroup)
            for uid, worker in self._workers.items()
            for _, process in worker.running()
        }
        return await asyncio.to_thread(read_containers, places)

    def check_streams(self, pod: NodePod, container: str) -> None:
        if container:
            self._process(pod, container)
        elif pod.uid not in self._workers or pod.finished:
            raise StreamRefused(f"pod {pod.name} does not run: it is {pod.status.phase or 'Pending'}")

    async def open_command(self, pod: NodePod, request: CommandRequest) -> Remote:
        return await container_streams.open_command(self._process(pod, request.container), request)

    async def open_port(self, pod: NodePod, port: int) -> Socket:
        self.check_streams(pod, "")
        return await container_streams.open_port(pod, port)

    def _process(self, pod: NodePod, container: str) -> ContainerProcess:
        """The running process of a container."""
        worker = self._workers.get(pod.uid)
        named = worker.container(container) if worker is not None else None
        if named is None or named.process is None:
            raise StreamRefused(f'container not found ("{container}"): it does not run')
        return named.process

    async def _fetch_all(self, pod: NodePod) -> Fetch:
        """What a pod refers to; `ContainerError` if it waits for a volume or for devices."""
        missing = await missing_claim(self._client, pod) if needs_claims(pod) else None
        if missing is not None:
            raise ContainerError(missing.message, missing.reason)
        objects: dict[tuple[str, str], Content] = {}
        for kind, name in references(pod):
            try:
                body = await self._client.get(SOURCES[kind], name, pod.namespace)
            except (ApiError, NoResponse) as error:
                if not isinstance(error, ApiError) or error.status != 404:
                    log.warning("%s %s/%s: %s", kind, pod.namespace, name, error)
                continue
            objects[kind, name] = msgspec.json.decode(body)
        for name in volume_claims(pod):
            objects |= await self._fetch_volume(pod, name)
        return lambda kind, name: objects.get((kind, name))

    async def _fetch_volume(self, pod: NodePod, name: str) -> dict[tuple[str, str], Content]:
        """The volume of a bound claim, by the name of the claim."""
        try:
            claim = msgspec.json.decode(await self._client.get(VOLUME_CLAIMS, name, pod.namespace))
            volume = await self._client.get(VOLUMES, claim["spec"].get("volumeName") or "")
        except (ApiError, NoResponse) as error:
            raise ContainerError(f'persistentvolumeclaim "{name}": {error}', FAILED_MOUNT) from None
        return {(VOLUMES.kind, name): msgspec.json.decode(volume)}


def _usage_key(uid: str, process: ContainerProcess) -> str:
    """Of a run of a container."""
    return f"{uid} {process.group.leader}"
