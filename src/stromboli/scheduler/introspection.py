"""What a scheduler process reports about itself: health, metrics, consistency of the mirror, its state as a file."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stromboli.api import names
from stromboli.api.device_messages import EXTENDED_RESOURCE_CLAIM
from stromboli.api.go_scalars import timestamp
from stromboli.api.pods import is_placed_elsewhere
from stromboli.api.types.devices import DeviceClaim, ResourceClaim, ResourceClaimSpec, ResourceClaimStatus
from stromboli.api.types.meta import Object, ObjectMeta, OwnerReference
from stromboli.api.types.pod import ExtendedResourceClaimStatus, Pod
from stromboli.api.types.storage import ClaimReference, PersistentVolume, PersistentVolumeClaim
from stromboli.daemon.log_format import about
from stromboli.daemon.telemetry_guard import TelemetryGuard
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource, discover
from stromboli.kube.election import Election
from stromboli.kube.reflector import Expired, WatchScope, list_pages
from stromboli.kube.request import ApiError, NoResponse
from stromboli.model.cluster import Cluster
from stromboli.model.devices.claim_use import ClaimGrant, ExtendedResourceGrant
from stromboli.model.ledgers import Grant
from stromboli.model.status import Status
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.mirror.consistency import check
from stromboli.scheduler.options import Options
from stromboli.scheduler.replica import Replica
from stromboli.scheduler.scheduler_metrics import SchedulerMetrics
from stromboli.scheduler.thread_seam import Unavailable
from stromboli.scheduler.writes.prebind.claim_writes import claim_name

log = logging.getLogger(__name__)


class Introspection:
    """Answers the endpoints and signals of one process."""

    def __init__(
        self,
        options: Options,
        client: Client,
        replica: Replica,
        election: Election | None,
        metrics: SchedulerMetrics,
    ):
        self.stopping = False
        self._options = options
        self._client = client
        self.replica = replica
        self._election = election
        self._metrics = metrics
        self._dumping: asyncio.Task[str] | None = None
        self._metrics_lock = asyncio.Lock()

    @property
    def guard(self) -> TelemetryGuard:
        return self._metrics.guard

    def alive(self) -> str:
        return self.replica.thread.problem

    def ready(self) -> str:
        """A standby replica is ready once it can take over."""
        if self.stopping:
            return "stopping"
        if self.replica.seam.leads:
            return ""
        if self._election is not None and not self._election.leader:
            return "the lease was not read yet"
        if waiting := ", ".join(self.replica.watches.missing_essentials):
            return f"not in step with the API server yet: {waiting}"
        standby = self._election is not None and not self._election.may_write()
        return "" if standby else "about to lead"

    @property
    def leads(self) -> bool:
        """Whether this replica decides, and may write."""
        return self.replica.seam.leads and (self._election is None or self._election.may_write())

    def standing_by(self) -> str | None:
        """The identity of the leader if another replica leads (empty if unknown); None if this one does."""
        if self.leads:
            return None
        return self._election.leader if self._election is not None else ""

    async def metrics(self) -> bytes:
        """Rendered in another thread: with thousands of jobs that takes about a second."""
        self._metrics.observe_process(self)
        async with self._metrics_lock:
            return await asyncio.to_thread(self._metrics.text)

    async def consistency(self) -> list[str]:
        return [str(difference) for difference in await check(self.replica.mirror)]

    async def dump(self) -> str:
        """Write a dump and return its path; requests that come meanwhile get the same one."""
        return await asyncio.shield(self.dump_soon())

    def dump_soon(self) -> asyncio.Task[str]:
        """Start a dump unless one is under way; the log says where it is."""
        if self._dumping is None or self._dumping.done():
            self._dumping = asyncio.create_task(self._dump())
            self._dumping.add_done_callback(_log_dump)
        return self._dumping

    async def _dump(self) -> str:
        world, scheduler = self.replica.world, self.replica.scheduler
        try:
            folder = dump_folder(self._options.cache_dump_dir)
            prune(folder)
            granted, memory, policy = await self.replica.seam.result_from_cycle(
                lambda: (
                    GrantedObjects(world.cluster),
                    encoded_memory(world.cluster.memory, self.guard),
                    scheduler.engine.policy.source,
                )
            )
            scopes = {reflector.kind: reflector.scope for reflector in self.replica.watches.reflectors}
            offered = await discover(self._client)
            path = await write_dump(
                self._client,
                {kind: (resource, scopes[kind]) for kind, resource in offered.items() if kind in scopes},
                granted,
                self._options.scheduler_name,
                policy,
                memory,
                folder,
                time.time(),
                self.guard,
            )
        except (ApiError, NoResponse, Expired, OSError) as error:
            raise Unavailable(str(error)) from None
        return str(path)


def _log_dump(task: asyncio.Task[str]) -> None:
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        log.error("the dump failed: %s", error)
    else:
        log.info("dumped", extra=about(file=task.result()))


# -- the whole state as a file that `stromboli plan -f` replays


MAX_DUMP = 512 * 1024 * 1024
"""Bytes of a dump; a larger one is not kept."""


async def write_dump(
    client: Client,
    kinds: Mapping[type[Object], tuple[Resource, WatchScope]],
    granted: GrantedObjects,
    schedulers: Collection[str],
    policy: str,
    memory: Mapping[str, msgspec.Raw],
    folder: Path,
    now: float,
    guard: TelemetryGuard,
) -> Path:
    """List everything and write it to a new file that only we may read; what cannot be encoded is left out.

    Pages are encoded in other threads, so that the event loop goes on meanwhile. `memory` is what plugins remember, as
    `encoded_memory` returns it.
    """
    path = folder / f"{PREFIX}{now:.0f}.json"
    handle, unfinished = tempfile.mkstemp(prefix=path.name, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            head = {"name": path.stem, "time": timestamp(now), "config": policy, "memory": memory}
            file.write(msgspec.json.encode(head)[:-1] + b',"objects":[')
            separator = b"\n"

            def write(objects: list[Object]) -> None:
                nonlocal separator
                for object in objects:
                    with guard("dump of an object"):
                        resource = kinds[type(object)][0]
                        manifest = _as_manifest(granted.complete(object), resource, schedulers)
                        file.write(separator + msgspec.json.encode(manifest))
                        separator = b",\n"

            async for objects in _pages(client, kinds, granted):
                await asyncio.to_thread(write, objects)
                if file.tell() > MAX_DUMP:
                    raise OSError(f"the dump is larger than {MAX_DUMP} bytes, so it is not kept")
            file.write(b"]}\n")
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return path


async def _pages(
    client: Client, kinds: Mapping[type[Object], tuple[Resource, WatchScope]], granted: GrantedObjects
) -> AsyncIterator[list[Object]]:
    for kind in sorted(kinds, key=lambda kind: kind.__name__):
        resource, scope = kinds[kind]
        async for page in list_pages(client, resource, kind, scope=scope):
            # a replay leaves out unusable objects too
            yield [decoded.object for decoded in page.objects if decoded.object is not None]
        if kind is ResourceClaim:
            yield list(granted.made())


def _as_manifest(object: Object, resource: Resource, schedulers: Collection[str]) -> dict[str, Any]:
    if (
        isinstance(object, Pod)
        and object.spec.scheduler_name in schedulers
        and not is_placed_elsewhere(object)
    ):
        object.spec.scheduler_name = names.SCHEDULER_NAME
    content: dict[str, Any] = msgspec.to_builtins(object)
    return {**content, "apiVersion": resource.api_version, "kind": resource.kind}


def encoded_memory(memory: Mapping[str, Any], guard: TelemetryGuard) -> dict[str, msgspec.Raw]:
    """What plugins remember, as far as it can be encoded. In the cycle's thread, as plugins change it there."""
    encoded = {}
    for plugin, content in memory.items():
        with guard("dump of a plugin's memory"):
            encoded[plugin] = msgspec.Raw(msgspec.json.encode(content))
    return encoded


# -- dumps as files


MAX_DUMPS = 10
"""Kept; older ones are deleted."""
MAX_BYTES = 256 * 1024 * 1024
"""Kept besides a new one; older ones are deleted."""
PREFIX = "snapshot-"
REMEDY = "set --cache-dump-dir to a writable directory"


class NotOurs(OSError):
    """The directory belongs to another user, or is not a directory."""


class NoFolder(OSError):
    """The directory cannot be created."""


def dump_folder(parent: Path) -> Path:
    """Our own directory below one that others may write to, such as `/tmp`; both are created if they are missing."""
    folder = parent / f"stromboli-dumps-{os.geteuid()}"
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NoFolder(f"{error}; {REMEDY}") from None
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise NotOurs(
                f"{folder} is not our own directory; remove it, or set --cache-dump-dir to another directory"
            ) from None
        folder.chmod(0o700)
    except OSError as error:
        raise NoFolder(f"{error}; {REMEDY}") from None
    return folder


def prune(folder: Path) -> None:
    """Delete the oldest dumps, unfinished ones too, so that the limits hold with a new one."""
    count = size = 0
    for path, found in sorted(_dumps(folder), key=lambda dump: dump[1].st_mtime_ns, reverse=True):
        count, size = count + 1, size + found.st_size
        if count >= MAX_DUMPS or size > MAX_BYTES:
            path.unlink(missing_ok=True)


def _dumps(folder: Path) -> list[tuple[Path, os.stat_result]]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_file(follow_symlinks=False):
                found.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return found


# -- objects as they will be once the pods that are being bound are bound, with what they were granted


class GrantedBind(NamedTuple):
    """Where a pod is being bound, and what it was granted there."""

    name: str
    node: str
    grants: tuple[Grant, ...]


class GrantedObjects:
    """Made in the thread of the cycle; of plain data, so another thread may use it.

    The API server may not show any of it yet. A dump shows it, so that a replay of the dump counts the same as held.
    """

    def __init__(self, cluster: Cluster):
        self._placements = {
            task.uid: GrantedBind(task.name, task.node.name, task.grants)
            for task in cluster.tasks.values()
            if task.status is Status.BINDING and task.node is not None
        }
        self._volume_grants: dict[str, tuple[str, VolumeGrant]] = {}
        """The nodes and grants of PersistentVolumeClaims."""
        self._volumes: dict[str, VolumeGrant] = {}
        self._claims: dict[str, list[ClaimGrant | ExtendedResourceGrant]] = {}
        self._made: dict[str, ResourceClaim] = {}
        """Claims for extended resources that were not seen yet."""
        for uid, placement in self._placements.items():
            for grant in placement.grants:
                self._note(uid, placement, grant)

    def _note(self, uid: str, placement: GrantedBind, grant: Grant) -> None:
        if isinstance(grant, VolumeGrant):
            self._volume_grants[f"{grant.namespace}/{grant.claim}"] = placement.node, grant
            if grant.volume:
                self._volumes[grant.volume] = grant
        elif isinstance(grant, ClaimGrant):
            self._claims.setdefault(f"{grant.namespace}/{grant.name}", []).append(grant)
        elif isinstance(grant, ExtendedResourceGrant):
            claim = _made_claim(uid, placement, grant)
            self._made[claim.key] = claim
            self._claims[claim.key] = [grant]

    def complete(self, object: Object) -> Object:
        """An object with what was granted, as far as it does not show that already."""
        match object:
            case Pod():
                self._complete_pod(object)
            case PersistentVolumeClaim() if object.key in self._volume_grants:
                node, grant = self._volume_grants[object.key]
                if not object.spec.volume_name:
                    object.spec.volume_name = grant.volume
                    key, value = (
                        (names.BIND_COMPLETED, "yes") if grant.volume else (names.SELECTED_NODE, node)
                    )
                    object.metadata.annotations[key] = value
            case PersistentVolume() if object.name in self._volumes and object.spec.claim_ref is None:
                grant = self._volumes[object.name]
                object.spec.claim_ref = ClaimReference(grant.namespace, grant.claim, grant.claim_uid)
            case ResourceClaim():
                self._made.pop(object.key, None)
                for held in self._claims.get(object.key, ()):
                    _complete_claim(object, held)
        return object

    def _complete_pod(self, pod: Pod) -> None:
        placement = self._placements.get(pod.metadata.uid)
        if placement is None or pod.spec.node_name:
            return
        pod.spec.node_name = placement.node
        for grant in placement.grants:
            pod.metadata.annotations |= dict(grant.annotations)
            if isinstance(grant, ExtendedResourceGrant):
                name = claim_name(placement.name, pod.metadata.uid)
                pod.status.extended_resource_claim_status = ExtendedResourceClaimStatus(grant.mappings, name)

    def made(self) -> list[ResourceClaim]:
        """Claims for extended resources that are about to be created: those that none of the objects was."""
        return list(self._made.values())


def _complete_claim(claim: ResourceClaim, grant: ClaimGrant | ExtendedResourceGrant) -> None:
    status = claim.status
    status.allocation = status.allocation or grant.allocation
    if grant.consumer not in status.reserved_for:
        status.reserved_for = (*status.reserved_for, grant.consumer)


def _made_claim(uid: str, placement: GrantedBind, grant: ExtendedResourceGrant) -> ResourceClaim:
    metadata = ObjectMeta(
        name=claim_name(placement.name, uid),
        namespace=grant.namespace,
        uid=f"{uid}-extended-resources",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(OwnerReference("v1", "Pod", placement.name, uid, controller=True),),
    )
    status = ResourceClaimStatus(grant.allocation, (grant.consumer,))
    return ResourceClaim(metadata, ResourceClaimSpec(DeviceClaim(grant.requests)), status)
