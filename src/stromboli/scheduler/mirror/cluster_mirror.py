"""Keeps the model in sync with an API server: changes that the watches bring are applied between cycles.

Entered on the event loop; everything else belongs to the cycle's thread alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from functools import partial

from stromboli.api import names
from stromboli.api.errors import BadObject, error_text
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.kube.reflector import (
    UnusableObject,
)
from stromboli.model.cluster import Cluster
from stromboli.model.intake.object_intake import Intake, IntakeFailed
from stromboli.model.pauses import FIRST_PAUSE, Pauses
from stromboli.model.status import Status
from stromboli.scheduler.mirror.cluster_watches import ClusterWatches
from stromboli.scheduler.mirror.news import UNKNOWN, News, known
from stromboli.scheduler.thread_seam import Id, ObjectChange, identity

log = logging.getLogger(__name__)


class ClusterMirror:
    """The objects of an API server as a cluster."""

    def __init__(
        self,
        watches: ClusterWatches,
        schedulers: Iterable[str] = (names.SCHEDULER_NAME,),
        default_queue: str = names.DEFAULT_QUEUE,
        report: Callable[[UnusableObject], None] = lambda problem: None,
        pod_arrived: Callable[[float], None] = lambda created: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """In the cycle's thread, `report` is called once for every object that cannot be used, and `pod_arrived`, with
        the time of its creation, for every new pod of ours that has no node.
        """
        self.new_intake = partial(Intake, schedulers=frozenset(schedulers), default_queue=default_queue)
        """Makes an empty model that takes objects as this one does."""
        self._intake = self.new_intake()
        self.watches = watches
        self.seam = watches.seam
        self._report = report
        self._pod_arrived = pod_arrived
        self._unusable: dict[tuple[str, str, str], UnusableObject] = {}
        """What was last reported of an unusable object, by its kind, namespace and name."""
        self._clock = clock
        self._held = HeldChanges(clock)
        self._rebuilds: Pauses[str] = Pauses()
        self.news = News()
        self.applied = 0
        """How many changes were applied so far."""

    @property
    def cluster(self) -> Cluster:
        return self._intake.cluster

    # -- on the event loop

    async def __aenter__(self) -> ClusterMirror:
        """Watch until the block ends."""
        await self.watches.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.watches.__aexit__()

    # -- in the cycle's thread

    def is_unusable(self, id: tuple[str, str, str]) -> bool:
        """Whether the object of this kind, namespace and name was reported as unusable as it is now."""
        return id in self._unusable

    def sync(self, noting: bool = True) -> None:
        """Apply all changes that the watches brought, then make the calls that the event loop left.

        Their impact on the next cycle is noted in `news`, unless that cycle starts at once.
        """
        changes, unusable = self.seam.changes.take()
        for problem in unusable:
            self._report_once(problem)
        reported = {problem[:3] for problem in unusable}
        for change in sorted(self._held.with_waiting(changes), key=_is_pod):
            if not self._held.waits(change):
                self.applied += 1
                self._apply(change, noting, _id_of(change.object) in reported)
        self.seam.run_calls()

    def rebuild(self) -> None:
        """Rebuild a model that cannot be brought up to date, after pauses that double."""
        now = self._clock()
        if not self._rebuilds.is_on("", now):
            self._rebuilds.begin("", now)
            log.error("the model is rebuilt, as it could not be brought up to date")
            self._intake.rebuild()
            self.applied += 1
            self.news.note_everything()

    def report_again(self) -> None:
        """Report every unusable object once more: another leader may have written the last reports."""
        for problem in self._unusable.values():
            self._report(problem)

    def _apply(self, change: ObjectChange, noting: bool, partial: bool) -> None:
        """`partial`: this is the usable part of an object that was just reported as unusable."""
        object = change.object
        before = known(self.cluster, object) if noting else UNKNOWN
        if change.gone:
            self._unusable.pop(_id_of(object), None)
            try:
                self._intake.drop(object)
            except IntakeFailed as error:
                self._note_rebuilt(error)
            if noting:
                self.news.note(self.cluster, object, before, gone=True)
            return
        new = isinstance(object, Pod) and object.metadata.uid not in self.cluster.tasks
        try:
            self._put(change)
        except BadObject as error:
            text = ": ".join(part for part in (error.field, error.problem) if part)
            self._report_once(UnusableObject(*_id_of(object), object.metadata.uid, text))
        except IntakeFailed as error:  # one object must not stop the scheduling of others
            self._held.add(change)
            text = f"could not be taken in: {error_text(error.cause)}"
            self._report_once(UnusableObject(*_id_of(object), object.metadata.uid, text))
            return
        else:
            if not partial:
                self._unusable.pop(_id_of(object), None)
        self._held.applied(change)
        if noting:
            self.news.note(self.cluster, object, before, gone=False)
        task = self.cluster.tasks.get(object.metadata.uid) if new else None
        if task is not None and task.status is Status.PENDING:
            self._pod_arrived(task.created)

    def _put(self, change: ObjectChange) -> None:
        """Put an object a second time if the model failed: the cause may have been the model, which is rebuilt now."""
        known_to_fail = change in self._held
        try:
            self._intake.put(change.object)
        except IntakeFailed as error:
            self._note_rebuilt(error)
            if known_to_fail:
                raise
            self._intake.put(change.object)

    def _note_rebuilt(self, error: IntakeFailed) -> None:
        log.error("the model was rebuilt: %s", error, exc_info=error.cause)
        self.news.note_everything()

    def _report_once(self, problem: UnusableObject) -> None:
        if self._unusable.get(problem[:3]) != problem:
            self._unusable[problem[:3]] = problem
            self._report(problem)


def _is_pod(change: ObjectChange) -> bool:
    """Pods come last: applied before the objects that they refer to, they cost half as much again."""
    return type(change.object) is Pod


def _id_of(object: Object) -> tuple[str, str, str]:
    return type(object).__name__, object.namespace, object.name


# -- changes of objects that could not be added to the model


class HeldChanges:
    """The last change of each object that waits."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Id, ObjectChange] = {}
        self._failed: set[Id] = set()
        """The objects that could not be added when they were last tried."""
        self._pauses: Pauses[Id | str] = Pauses()
        """Of objects, and of namespaces."""

    def __contains__(self, change: ObjectChange) -> bool:
        """Whether the object could not be added when it was last tried."""
        return identity(change.object) in self._failed

    def add(self, change: ObjectChange) -> None:
        """An object could not be added."""
        id, now = identity(change.object), self._clock()
        if id not in self._failed and change.object.namespace:
            self._pauses.begin(change.object.namespace, now)
        self._pauses.begin(id, now)
        self._failed.add(id)
        self._waiting[id] = change

    def with_waiting(self, changes: list[ObjectChange]) -> Iterable[ObjectChange]:
        """These changes and those that waited; ask `waits` about each."""
        if not self._pauses and not self._waiting:
            return changes
        self._pauses.forget(self._clock())
        merged = self._waiting | {identity(change.object): change for change in changes}
        self._waiting = {}
        return merged.values()

    def waits(self, change: ObjectChange) -> bool:
        """Whether a change must wait; it is kept then."""
        if not self._pauses:
            return False
        id, now = identity(change.object), self._clock()
        if change.gone:
            self._failed.discard(id)
            return False
        namespace = change.object.namespace
        if self._pauses.length(id, now) or self._pauses.length(namespace, now) > FIRST_PAUSE:
            self._waiting[id] = change
            return True
        return False

    def applied(self, change: ObjectChange) -> None:
        """A change was applied."""
        if self._failed:
            self._failed.discard(identity(change.object))
