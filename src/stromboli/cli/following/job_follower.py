"""Follows a job to its end: `follow_job` prints what its pods print, and says how the job ended.

`stromboli run`, `stromboli submit --wait` and `stromboli job logs -f` are this one function.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import EVENTS, JOBS, POD_GROUPS, PODS, Manifest, name_of
from stromboli.cli.following.follow_screen import FollowScreen
from stromboli.cli.following.job_wait import message_of, phase_of, wait_sentence
from stromboli.cli.following.log_streams import LogQuery, LogStreams
from stromboli.cli.following.object_watch import ObjectWatch
from stromboli.cli.following.pod_trouble import ended_at, failure_code, joined, trouble
from stromboli.cli.following.rank_prefix import PodRanks
from stromboli.kube.request import ApiError, NoResponse

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

FAILED = 1
"""Exit status of a job that did not complete, if no container says otherwise."""
TELL_AFTER = 1.0
"""Seconds until a job that waits says why: most start sooner."""
DRAIN_SECONDS = 10.0
"""For the next line of any log, once the job has ended."""
READ_SECONDS = 60.0
"""For the next line of a log that is not followed."""
LAST_PODS_SECONDS = 2.0
"""For the last state of pods, once the job has ended."""
MOST_EVENTS = 200


class JobEnd(NamedTuple):
    """How a job ended."""

    phase: str
    """Empty if it was deleted."""
    message: str
    exit_code: int


@dataclass(slots=True)
class _Seen:
    """The last state of everything about a job."""

    job: Manifest | None = None
    group: Manifest | None = None
    pods: dict[str, Manifest] = field(default_factory=dict)
    """By uid: those that are gone as well, as they show how they ended."""
    uid: str = ""
    is_gone: bool = False
    warning: str = ""


async def follow_job(
    session: ClusterSession,
    namespace: str,
    name: str,
    screen: FollowScreen,
    query: LogQuery = LogQuery(),  # noqa: B008 - frozen
    created: Manifest | None = None,
) -> JobEnd:
    """Print the logs of all pods of a job until it has ended. `created` is the job, if it was just created."""
    job = created or await session.get(JOBS, name, namespace)
    follower = JobFollower(session, namespace, job, screen, query)
    return await follower.until_end()


async def print_logs(
    session: ClusterSession,
    namespace: str,
    labels: str,
    screen: FollowScreen,
    query: LogQuery,
    job: Manifest | None = None,
) -> int:
    """Print what pods with such labels have printed so far, pod by pod; how many there are."""
    listed = await session.list(PODS, namespace, labels=labels)
    pods = [pod for pod in listed.items if query.wants(pod)]
    ranks = PodRanks(job)
    for pod in sorted(pods, key=lambda pod: (ranks.rank(pod), name_of(pod))):
        streams = LogStreams(session, namespace, query, screen.line, screen.tell)
        streams.observe(pod, ranks)
        try:
            await streams.finish(float("inf") if query.follow else READ_SECONDS)
        finally:
            await streams.close()
    return len(pods)


class JobFollower:
    """Watches a job with its PodGroup and pods, and reads the logs of those."""

    def __init__(
        self,
        session: ClusterSession,
        namespace: str,
        job: Manifest,
        screen: FollowScreen,
        query: LogQuery,
    ) -> None:
        self._session = session
        self._namespace = namespace
        self._name = name_of(job)
        self._screen = screen
        self._streams = LogStreams(session, namespace, query, screen.line, screen.tell)
        self._ranks = PodRanks(job)
        self._seen = _Seen(job=job, uid=str(job["metadata"].get("uid") or ""))
        self._news = asyncio.Event()

    async def until_end(self) -> JobEnd:
        """Follow it; the watches end with it, and so do the logs."""
        pods = self._pod_watch()
        watches = [
            asyncio.ensure_future(watch.run()) for watch in (self._job_watch(), pods, self._group_watch())
        ]
        telling = asyncio.ensure_future(self._tell_why_it_waits())
        try:
            await self._ended(watches)
            await self._last_pods()
            await self._streams.finish(DRAIN_SECONDS)
        finally:
            for task in (telling, *watches):
                task.cancel()
            await asyncio.gather(telling, *watches, return_exceptions=True)
            await self._streams.close()
            self._screen.close()
        return self._end()

    # -- what is watched

    def _job_watch(self) -> ObjectWatch:
        fields = f"metadata.name={self._name}"
        return ObjectWatch(
            self._session,
            JOBS,
            self._namespace,
            self._job_changed,
            fields=fields,
            tell=self._screen.tell,
            known=(self._name,),
        )

    def _pod_watch(self) -> ObjectWatch:
        labels = f"{names.JOB_NAME}={self._name}"
        return ObjectWatch(self._session, PODS, self._namespace, self._pod_changed, labels=labels)

    def _group_watch(self) -> ObjectWatch:
        fields = f"metadata.name={self._name}-{self._seen.uid}"
        return ObjectWatch(self._session, POD_GROUPS, self._namespace, self._group_changed, fields=fields)

    def _job_changed(self, name: str, job: Manifest | None) -> None:
        if job is None or job["metadata"].get("uid") != self._seen.uid:
            self._seen.is_gone = True
        else:
            self._seen.job = job
        self._news.set()

    def _group_changed(self, name: str, group: Manifest | None) -> None:
        self._seen.group = group

    def _pod_changed(self, name: str, pod: Manifest | None) -> None:
        if pod is None or not self._is_own(pod):
            return
        self._seen.pods[str(pod["metadata"].get("uid") or name)] = pod
        self._streams.observe(pod, self._ranks)
        self._news.set()

    def _is_own(self, pod: Manifest) -> bool:
        """Whether it is a pod of this job, and not of an earlier one of the same name."""
        owners = pod["metadata"].get("ownerReferences") or ()
        return any(owner.get("uid") == self._seen.uid for owner in owners)

    # -- its end

    async def _ended(self, watches: list[asyncio.Task[None]]) -> None:
        """Wait for the end of the job, or for a watch that the API server refuses."""
        job_watch, pod_watch, _ = watches
        while not self._seen.is_gone and phase_of(self._seen.job) not in ENDED:
            news = asyncio.ensure_future(self._news.wait())
            await asyncio.wait({news, job_watch, pod_watch}, return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            self._news.clear()
            for watch in (job_watch, pod_watch):
                if watch.done():
                    watch.result()  # it ends by an error alone

    async def _last_pods(self) -> None:
        """The job may have ended before the last states of its pods have come: look once more."""
        if self._seen.is_gone:
            return
        try:
            async with asyncio.timeout(LAST_PODS_SECONDS):
                labels = f"{names.JOB_NAME}={self._name}"
                for pod in (await self._session.list(PODS, self._namespace, labels=labels)).items:
                    self._pod_changed(name_of(pod), pod)
        except (ApiError, NoResponse, ClusterError, TimeoutError):
            return

    def _end(self) -> JobEnd:
        phase = "" if self._seen.is_gone else phase_of(self._seen.job)
        if phase == "Completed":
            return JobEnd(phase, "", 0)
        failed = self._first_failure()
        why = "it was deleted" if not phase else message_of(self._seen.job)
        if failed is not None:
            text = joined(f"pod {name_of(failed)}", trouble(failed.get("status") or {}))
            why = text if not why or name_of(failed) in why else f"{why}; {text}"
        code = failure_code(failed["status"]) if failed is not None else FAILED
        return JobEnd(phase, why, code if 0 < code < 256 else FAILED)

    def _first_failure(self) -> Manifest | None:
        """The pod that failed first, as others are ended on its account."""
        failed = [
            pod
            for pod in self._seen.pods.values()
            if (pod.get("status") or {}).get("phase") == names.POD_FAILED
        ]
        return min(failed, key=self._failure_order, default=None)

    def _failure_order(self, pod: Manifest) -> tuple[bool, str, int]:
        """Pods that are being deleted come last, as times have whole seconds only."""
        is_deleted = bool(pod["metadata"].get("deletionTimestamp"))
        return is_deleted, ended_at(pod["status"]), self._ranks.rank(pod)

    # -- why it waits

    async def _tell_why_it_waits(self) -> None:
        while True:
            await asyncio.sleep(TELL_AFTER)
            seen = self._seen
            if seen.job is None or phase_of(seen.job) == "Running" or self._streams.started:
                self._screen.waits("")
                continue
            sentence = wait_sentence(seen.job, seen.group, list(seen.pods.values()), seen.warning)
            if not seen.pods and not seen.warning:
                seen.warning = await self._latest_warning()
            self._screen.waits(sentence if ": " in sentence else "")

    async def _latest_warning(self) -> str:
        """The last warning about the job, for whoever may read events."""
        fields = f"involvedObject.uid={self._seen.uid},type=Warning"
        try:
            body = await self._session.list(EVENTS, self._namespace, fields=fields)
        except (ApiError, NoResponse, ClusterError):
            return ""
        events = sorted(body.items[-MOST_EVENTS:], key=lambda event: str(event.get("lastTimestamp") or ""))
        return str(events[-1].get("message") or "") if events else ""
