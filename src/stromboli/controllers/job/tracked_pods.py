"""The pods of one job as the store shows them and as our own writes have left them, with a summary that is kept up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.observed_events import GonePod, succeeded_pods
from stromboli.controllers.job.pod_summary import PodSummary, frame_of
from stromboli.controllers.pending_writes import PendingWrites


class TrackedPods:
    """What the controller knows of a job's pods, changed pod by pod. Nothing is known before the first `observe`.

    A pod that somebody else deletes is an event of its job if a reconcile that was carried out (`carried_out`) has
    observed it before, so those are kept apart from the `_fresh` ones.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._writes: PendingWrites[Pod] = PendingWrites()
        self._find: Callable[[str], Pod | None] = lambda name: None
        """The pod of a name that the store shows."""
        self._summary: PodSummary | None = None
        self._fresh: set[str] = set()
        """Names of pods that have come since the last reconcile."""
        self._unconfirmed: set[str] = set()
        """Those that it observed, unless it was carried out."""
        self._gone: dict[str, GonePod] = {}

    # -- reconciles

    def observe(
        self, job: Job, stored: Callable[[], Iterable[Pod]], find: Callable[[str], Pod | None]
    ) -> PodSummary:
        """The pods of a job, for a reconcile. `stored` are those that the store shows, `find` finds one by name."""
        now, self._find = self._clock(), find
        if self._summary is None or self._summary.frame != frame_of(job):
            first = self._summary is None
            self._summary = PodSummary.of(job, self._writes.apply(stored(), now))
            if first:
                self._fresh = set(self._summary.pods)
        for name in self._writes.expired(now):
            self._refresh(name)
        self._unconfirmed |= self._fresh
        self._fresh = set()
        self._summary.read_status(job, succeeded_pods(job, self._gone))
        return self._summary

    @property
    def gone(self) -> Mapping[str, GonePod]:
        """Pods that were deleted by others since a reconcile that observed them, by name."""
        return dict(self._gone)

    def carried_out(self, gone: Mapping[str, GonePod]) -> None:
        """All that the last reconcile decided, which knew of these, was written."""
        self._unconfirmed.clear()
        for name, pod in gone.items():
            if self._gone.get(name) is pod:
                del self._gone[name]

    # -- what the store shows

    def stored(self, before: Pod | None, now: Pod | None) -> bool:
        """A pod was added, has changed, or is gone (None); whether that is news for a reconcile."""
        pod = now or before
        if pod is None:
            return False
        by_us = before is not None and self._writes.has_deleted(before)
        if now is None:
            self._writes.gone(pod)
        else:
            self._writes.observed(now)
        return self._update(pod.name, self._writes.effective(pod.name, now, self._clock()), by_us)

    # -- what we write

    def created(self, pod: Pod) -> None:
        """A pod was created; the store may show it already, in a later state."""
        self._writes.created(pod, self._clock())
        self._refresh(pod.name)

    def deleted(self, pod: Pod) -> None:
        """A pod is about to be deleted by us."""
        self._writes.deleted(pod, self._clock())
        self._refresh(pod.name)

    def not_deleted(self, pod: Pod) -> None:
        """That failed."""
        self._writes.not_deleted(pod)
        self._refresh(pod.name)

    def _refresh(self, name: str) -> None:
        """What we know of writes to a pod has changed."""
        self._update(name, self._writes.effective(name, self._find(name), self._clock()))

    @property
    def until(self) -> float | None:
        """When the first write is forgotten that the store does not show."""
        return self._writes.until

    def _update(self, name: str, pod: Pod | None, by_us: bool = False) -> bool:
        if self._summary is None:
            return True
        before = self._summary.pods.get(name)
        replaced = before is not None and (pod is None or pod.metadata.uid != before.metadata.uid)
        leaves = replaced or (pod is not None and pod.metadata.deletion_timestamp is not None)
        if before is not None and leaves:
            self._left(before, by_us or self._writes.has_deleted(before), replaced)
        if pod is None:
            return self._summary.drop(name)
        if before is None or replaced:
            self._fresh.add(name)
        return self._summary.put(pod)

    def _left(self, pod: Pod, by_us: bool, is_gone: bool) -> None:
        """A pod is gone or being deleted: an event of its job, if a reconcile has observed it and it was not us.

        A pod that succeeded did so, whether a reconcile has observed it or not.
        """
        name, left = pod.name, GonePod.of(pod)
        known = name not in self._fresh and name not in self._unconfirmed
        if is_gone:
            self._fresh.discard(name)
            self._unconfirmed.discard(name)
        counts = left.succeeded or (is_gone and known)
        if not counts or by_us or self._summary is None or not self._summary.facts[name].current:
            return
        noted = self._gone.get(name)
        if noted is None or noted.uid != left.uid:  # one that succeeded may be noted since its deletion began
            self._gone[name] = left
