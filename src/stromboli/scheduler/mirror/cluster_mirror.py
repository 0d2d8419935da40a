"""Keeps the model in step with an API server: a reflector per kind on the event loop, changes applied between cycles.

`run` and `check` live on the event loop. `sync`, and the cluster itself, belong to the cycle's thread alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType

from stromboli.api import names
from stromboli.api.errors import BadObject
from stromboli.api.types.meta import Object
from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.node import Node
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.reflector import (
    EVERYTHING,
    Expired,
    Reflector,
    UnusableObject,
    WatchScope,
    list_pages,
)
from stromboli.kube.request import ApiError, NoResponse
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.scheduler.mirror.change_buffer import ObjectChange
from stromboli.scheduler.mirror.consistency import Difference, compare
from stromboli.scheduler.mirror.native_group_reflector import NativeGroupReflector
from stromboli.scheduler.thread_seam import ThreadSeam, Unavailable

log = logging.getLogger(__name__)

ESSENTIAL = (Pod, Node, PodGroup, Queue)
ROUNDS = 3
NO_SCOPES: Mapping[type[Object], WatchScope] = MappingProxyType({})


class ClusterMirror:
    """The objects of an API server as a cluster."""

    def __init__(
        self,
        client: Client,
        schedulers: Iterable[str] = (names.SCHEDULER_NAME,),
        default_queue: str = names.DEFAULT_QUEUE,
        kinds: Iterable[type[Object]] = RESOURCES,
        wanted: Callable[[Object], bool] = lambda _: True,
        report: Callable[[UnusableObject], None] = lambda problem: None,
        pod_arrived: Callable[[float], None] = lambda created: None,
        seam: ThreadSeam | None = None,
        reflector: Callable[..., Reflector] = Reflector,
        native_reflector: Callable[..., Reflector] = NativeGroupReflector,
        scopes: Mapping[type[Object], WatchScope] = NO_SCOPES,
    ) -> None:
        """`wanted` filters objects, `scopes` says of which kinds only some are watched. In the cycle's thread, `report`
        is called once for every object that cannot be used, and `pod_arrived`, with the time of its creation, for every
        new pod of ours that has no node.
        """
        self._new_intake = partial(Intake, schedulers=frozenset(schedulers), default_queue=default_queue)
        self._intake = self._new_intake()
        self._client = client
        self._wanted = wanted
        self._report = report
        self._pod_arrived = pod_arrived
        self._unusable: dict[tuple[str, str, str], UnusableObject] = {}
        """What was last reported of an unusable object, by its kind, namespace and name."""
        self.seam = seam if seam is not None else ThreadSeam()
        self.reflectors = tuple(
            (native_reflector if kind is NativePodGroup else reflector)(
                client,
                RESOURCES[kind],
                kind,
                self.seam.changes,
                wanted=wanted,
                scope=scopes.get(kind, EVERYTHING),
            )
            for kind in kinds
        )
        self.watches: asyncio.Task[None] | None = None

    @property
    def cluster(self) -> Cluster:
        return self._intake.cluster

    # -- on the event loop

    async def __aenter__(self) -> ClusterMirror:
        """Watch all kinds until the block ends."""
        self.watches = asyncio.create_task(self.run(), name="watches")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.watches is not None:
            self.watches.cancel()
            with suppress(asyncio.CancelledError):
                await self.watches

    async def run(self) -> None:
        """Watch all kinds, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors:
                group.create_task(reflector.run(), name=f"watch {reflector.resource.plural}")

    async def synced(self) -> None:
        """Wait for the first list of every kind; the objects are in the model after the next `sync`."""
        for reflector in self.reflectors:
            await reflector.synced.wait()

    @property
    def _waiting(self) -> list[Reflector]:
        return [reflector for reflector in self.reflectors if not reflector.synced.is_set()]

    @property
    def unsynced(self) -> list[str]:
        """The kinds that were not listed yet, each with the reason."""
        return [f"{waiting.resource}: {waiting.problem or 'being listed'}" for waiting in self._waiting]

    @property
    def missing_essentials(self) -> list[str]:
        """Those of them without which no decision would be sound."""
        return [waiting.resource.plural for waiting in self._waiting if waiting.kind in ESSENTIAL]

    async def check(self, rounds: int = ROUNDS, pause: float = 1.0) -> list[Difference]:
        """Where the model differs from fresh lists; only what differs in the same way several times in a row."""
        remaining: list[Difference] = []
        for turn in range(rounds):
            if turn:
                await asyncio.sleep(pause)
            before = {difference[:3] for difference in remaining}
            fresh = await self._list_all()
            differences = await self.seam.result_from_cycle(partial(self._compare, fresh))
            remaining = [difference for difference in differences if not turn or difference[:3] in before]
            if not remaining:
                break
        return remaining

    async def _list_all(self) -> Cluster:
        """A cluster from a fresh list of everything."""
        intake = self._new_intake()
        for reflector in self.reflectors:
            try:
                async for page in list_pages(
                    self._client, reflector.resource, reflector.kind, scope=reflector.scope
                ):
                    for decoded in page.objects:
                        if decoded.object is not None and self._wanted(decoded.object):
                            with suppress(BadObject):  # the live model has reported the same
                                intake.put(decoded.object)
                    await asyncio.sleep(0)
            except (Expired, ApiError, NoResponse) as error:
                if not (isinstance(error, ApiError) and error.status == 404):
                    raise Unavailable(f"{reflector.resource}: {error}") from None
        intake.cluster.settle()
        return intake.cluster

    # -- in the cycle's thread

    def sync(self) -> None:
        """Apply all changes that the watches brought, then make the calls that the event loop left."""
        changes, unusable = self.seam.changes.take()
        for problem in unusable:
            self._report_once(problem)
        for change in changes:
            self._apply(change)
        self.seam.run_calls()

    def report_again(self) -> None:
        """Report every unusable object once more: the last reports may have been another leader's."""
        for problem in self._unusable.values():
            self._report(problem)

    def _apply(self, change: ObjectChange) -> None:
        object = change.object
        if change.gone:
            self._unusable.pop(_id_of(object), None)
            self._intake.drop(object)
            return
        new = isinstance(object, Pod) and object.metadata.uid not in self.cluster.tasks
        try:
            self._intake.put(object)
        except BadObject as error:
            text = ": ".join(part for part in (error.field, error.problem) if part)
        except Exception as error:  # whatever an object does to us, the others must be scheduled
            log.exception("%s %s could not be taken in", type(object).__name__, object.key)
            text = f"could not be taken in: {type(error).__name__}: {error}"
        else:
            self._unusable.pop(_id_of(object), None)
            task = self.cluster.tasks.get(object.metadata.uid) if new else None
            if task is not None and task.status is Status.PENDING:
                self._pod_arrived(task.created)
            return
        self._report_once(UnusableObject(*_id_of(object), object.metadata.uid, text))

    def _report_once(self, problem: UnusableObject) -> None:
        if self._unusable.get(problem[:3]) != problem:
            self._unusable[problem[:3]] = problem
            self._report(problem)

    def _compare(self, fresh: Cluster) -> list[Difference]:
        """Without objects that are known to be unusable as they are now: the model has them as they were before."""
        self.cluster.settle()
        differences = compare(self.cluster, fresh)
        return [difference for difference in differences if difference.object_id not in self._unusable]


def _id_of(object: Object) -> tuple[str, str, str]:
    return type(object).__name__, object.namespace, object.name
