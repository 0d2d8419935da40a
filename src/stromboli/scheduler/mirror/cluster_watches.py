"""The watches of a cluster: a reflector per kind, on the event loop, and which kinds and objects are watched.

They need neither the model nor the engine, so a process may start them before it has imported those.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType

from stromboli.api.types.config_map import ConfigMap
from stromboli.api.types.devices import ResourceClaimTemplate
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.node_shard import NodeShard
from stromboli.api.types.numa_topology import Numatopology
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodDisruptionBudget, PodGroup, PriorityClass, Queue
from stromboli.api.types.workloads import ReplicaSet, ReplicationController, StatefulSet
from stromboli.daemon.flags import BadFlag
from stromboli.daemon.log_format import about
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, in_offered_version
from stromboli.kube.reflector import EVERYTHING, Expired, ObjectFilter, Reflector, WatchScope, every_object
from stromboli.kube.request import ApiError
from stromboli.kube.watch_decoding import DecodedObject
from stromboli.scheduler.options import Options
from stromboli.scheduler.thread_seam import ThreadSeam

log = logging.getLogger(__name__)

ESSENTIAL = (Pod, Node, PodGroup, Queue)
NO_SCOPES: Mapping[type[Object], WatchScope] = MappingProxyType({})


class NativeGroupReflector(Reflector):
    """Finds the offered version first; most servers offer none."""

    absence_level = logging.INFO

    async def _list(self) -> None:
        resource = await in_offered_version(self._client, self.resource)
        if resource is None:
            raise ApiError(404, "NotFound", "no version of it is offered")
        self.resource = resource
        await super()._list()

    async def _watch(self) -> None:
        try:
            await super()._watch()
        except ApiError as error:
            if error.status != 404:
                raise
            raise Expired("it is not offered in this version any more") from None

    def _put(self, decoded: DecodedObject) -> None:
        """Objects in a list do not carry their apiVersion."""
        if isinstance(decoded.object, NativePodGroup):
            decoded.object.api_version = self.resource.api_version
        super()._put(decoded)


class ClusterWatches:
    """Lists and watches kinds, and passes changes to the cycle's thread by a seam."""

    def __init__(
        self,
        client: Client,
        kinds: Iterable[type[Object]] = RESOURCES,
        seam: ThreadSeam | None = None,
        wanted: ObjectFilter = every_object,
        reflector: Callable[..., Reflector] = Reflector,
        native_reflector: Callable[..., Reflector] = NativeGroupReflector,
    ) -> None:
        """`wanted` filters objects. More kinds may be added later."""
        self.client = client
        self.seam = seam if seam is not None else ThreadSeam()
        self.wanted = wanted
        self.reflectors: tuple[Reflector, ...] = ()
        self.running: asyncio.Task[None] | None = None
        """Ends when a reflector crashes."""
        self._group: asyncio.TaskGroup | None = None
        self._make_reflector = reflector
        self._make_native_reflector = native_reflector
        self.add(kinds)

    def add(
        self, kinds: Iterable[type[Object]], scopes: Mapping[type[Object], WatchScope] = NO_SCOPES
    ) -> None:
        """Watch these kinds as well; `scopes` says of which of them only some objects."""
        watched = {reflector.kind for reflector in self.reflectors}
        new = tuple(self._reflector(kind, scopes) for kind in kinds if kind not in watched)
        self.reflectors += new
        for reflector in new:
            self._start(reflector)

    def _reflector(self, kind: type[Object], scopes: Mapping[type[Object], WatchScope]) -> Reflector:
        make = self._make_native_reflector if kind is NativePodGroup else self._make_reflector
        scope = scopes.get(kind, EVERYTHING)
        return make(self.client, RESOURCES[kind], kind, self.seam.changes, wanted=self.wanted, scope=scope)

    def _start(self, reflector: Reflector) -> None:
        if self._group is not None:
            self._group.create_task(reflector.run(), name=f"watch {reflector.resource.plural}")

    async def __aenter__(self) -> ClusterWatches:
        """Watch until the block ends."""
        if self.running is None:
            self.running = asyncio.create_task(self._run(), name="watches")
        return self

    async def __aexit__(self, *_: object) -> None:
        running, self.running, self._group = self.running, None, None
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._group:
            for reflector in self.reflectors:
                self._start(reflector)
            await asyncio.Event().wait()  # kinds may be added later

    # -- the first lists

    async def synced(self) -> None:
        """Wait for the first list of every kind; the objects are in the model after the next sync."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    @property
    def _waiting(self) -> list[Reflector]:
        return [reflector for reflector in self.reflectors if not reflector.synced.is_set()]

    @property
    def loading(self) -> bool:
        """Whether only pods are still being listed: the objects that they refer to were."""
        return [waiting.kind for waiting in self._waiting] == [Pod]

    @property
    def unsynced(self) -> list[str]:
        """The kinds that were not listed yet, each with the reason."""
        return [f"{waiting.resource}: {waiting.problem or 'being listed'}" for waiting in self._waiting]

    @property
    def missing_essentials(self) -> list[str]:
        """The kinds among them that decisions cannot do without."""
        return [waiting.resource.plural for waiting in self._waiting if waiting.kind in ESSENTIAL]


async def wait_until_synced(watches: ClusterWatches, timeout: float) -> None:
    """Wait for the first lists: `timeout` seconds, but for ever for the kinds that decisions need."""
    begin = time.monotonic()
    while timeout > 0:
        try:
            await asyncio.wait_for(watches.synced(), timeout)
            break
        except TimeoutError:
            left = "; ".join(watches.unsynced)
            if not watches.missing_essentials:
                log.warning("not everything was listed within %gs: going on without: %s", timeout, left)
                break
            log.error("not scheduling before these can be listed and watched: %s", left)
    log.info("in step with the API server", extra=about(seconds=round(time.monotonic() - begin, 3)))


# -- what a scheduler watches, by its flags and feature gates


def watch_cluster(options: Options, client: Client) -> ClusterWatches:
    """Watches of all kinds but ConfigMap, of which the policy names the one to watch."""
    kinds = [kind for kind in watched_kinds(options) if kind is not ConfigMap]
    seam = ThreadSeam(asyncio.get_running_loop())
    return ClusterWatches(client, kinds, seam, object_filter(options))


def watched_kinds(options: Options) -> list[type[Object]]:
    """The kinds to watch, by flags and feature gates."""
    off: set[type[Object]] = {ResourceClaimTemplate}  # claims are made of them by a controller
    if not options.priority_class or not options.gate("PriorityClass", True):
        off.add(PriorityClass)
    if not options.gate("PodDisruptionBudgetsSupport", True):
        off.add(PodDisruptionBudget)
    if not options.gate("WorkLoadSupport", True):
        off |= {ReplicaSet, StatefulSet, ReplicationController}
    if not options.gate("ResourceTopology", True):
        off.add(Numatopology)
    if options.scheduler_sharding_mode == "none":
        off.add(NodeShard)
    return [kind for kind in RESOURCES if kind not in off]


def object_filter(options: Options) -> ObjectFilter:
    """Which objects are ours: by label, and by hash where several schedulers divide the cluster."""
    labelled = by_label(parse_selectors(options.node_selector))
    hashed = by_hash(os.environ, options.scheduler_name)
    if options.leader_elect and (why := idle_members(os.environ, options.leader_elect_resource_name)):
        log.warning("%s", why)
    if every_object in (labelled, hashed):
        return labelled if hashed is every_object else hashed
    return lambda object: labelled(object) and hashed(object)


# -- which objects are ours: nodes by label, and by a hash where several schedulers divide a cluster (spec 05 11)


POINTS = 20
"""Points of each member on the ring."""
MAX_MEMBERS = 1000


def parse_selectors(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """`key:value` each; an entry without a value is ignored, as in Volcano."""
    parts = (selector.partition(":") for selector in given)
    return tuple((key.strip(), value.strip()) for key, _, value in parts if key.strip() and value.strip())


def by_label(selectors: tuple[tuple[str, str], ...]) -> ObjectFilter:
    """Only nodes that have one of these labels."""

    def wanted(object: Object) -> bool:
        labels = object.metadata.labels
        return not isinstance(object, Node) or any(labels.get(key) == value for key, value in selectors)

    return wanted if selectors else every_object


class HashRing:
    """A consistent hash ring: a key belongs to the member at the first point after the key's hash."""

    def __init__(self, members: Iterable[str]):
        points = sorted(
            {_hash(f"{number}{member}"): member for member in members for number in range(POINTS)}.items()
        )
        self._points = [point for point, _ in points]
        self._members = [member for _, member in points]

    def owner(self, key: str) -> str:
        return self._members[bisect_right(self._points, _hash(key)) % len(self._points)]


def idle_members(environment: Mapping[str, str], lease: str) -> str:
    """Why all members but one would decide nothing, if they share a lease; empty if they do not."""
    if not _divided(environment) or environment.get("SCHEDULER_POD_NAME", "") in lease:
        return ""
    return (
        f"nodes and jobs are divided by hash, yet only the holder of the lease {lease!r} decides: the parts of the "
        "others wait; set --leader-elect=false, or a --leader-elect-resource-name with the pod's name"
    )


def _divided(environment: Mapping[str, str]) -> bool:
    return environment.get("MULTI_SCHEDULER_ENABLE") == "true"


def by_hash(environment: Mapping[str, str], schedulers: Iterable[str]) -> ObjectFilter:
    """Our part of the cluster, if the environment divides it between several schedulers."""
    if not _divided(environment):
        return every_object
    me = environment.get("SCHEDULER_POD_NAME", "")
    base, dash, _ = me.rpartition("-")
    if not dash:
        raise BadFlag(f"SCHEDULER_POD_NAME: {me!r} is no name of a StatefulSet's pod, such as scheduler-0")
    number = environment.get("SCHEDULER_NUM", "")
    members = int(number) if number.isdecimal() else 1
    if not 0 < members <= MAX_MEMBERS:
        raise BadFlag(f"SCHEDULER_NUM: {number} is not between 1 and {MAX_MEMBERS}")
    ring = HashRing(f"{base}-{index}" for index in range(members))
    ours = frozenset(schedulers)

    def wanted(object: Object) -> bool:
        if isinstance(object, Node):
            return ring.owner(object.name) == me
        if isinstance(object, Pod):
            if object.spec.scheduler_name in ours and ring.owner(_root(object)) == me:
                return True
            return bool(object.spec.node_name) and ring.owner(object.spec.node_name) == me
        return not isinstance(object, PodGroup | NativePodGroup) or ring.owner(_root(object)) == me

    return wanted


def _root(object: Object) -> str:
    """The key that the objects of one workload share: its native group, else its owner's name."""
    if isinstance(object, Pod) and object.spec.scheduling_group is not None:
        return object.spec.scheduling_group.pod_group_name
    if isinstance(object, NativePodGroup):
        return object.name
    owners = object.metadata.owner_references
    return owners[0].name if owners else object.name


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
