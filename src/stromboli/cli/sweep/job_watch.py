"""Watching the Job of a sweep: runs are counted by what its pods print, and what is wrong with pods is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.api.errors import printable
from stromboli.api.pods import FINISHED
from stromboli.api.predecessors import ENDED
from stromboli.cli.following.job_wait import message_of, phase_of
from stromboli.cli.following.pod_trouble import joined, trouble
from stromboli.cli.sweep.sweep_job_requests import SweepJobRequests
from stromboli.cli.sweep.sweep_progress import Counts, SweepProgress, counts_in
from stromboli.kube.request import ApiError, NoResponse, is_transient
from stromboli.simulator.sweeps.cluster_job import Manifest

POLL = 1.0
"""Seconds from look to look, for a few pods."""
PODS_A_SECOND = 20
"""Whose logs are read: more pods are looked at less often."""
MESSAGES_OF_A_POD = 3
Pause = Callable[[float], Any]


class JobEnd(NamedTuple):
    """How a Job ended, and how many of its runs."""

    phase: str
    message: str
    done: int
    failed: int
    is_short: bool
    """Whether some of its runs have not ended."""


class JobWatch:
    """Follows a Job until it has ended."""

    def __init__(
        self,
        requests: SweepJobRequests,
        progress: SweepProgress,
        total: int,
        runs: int,
        pause: Pause = asyncio.sleep,
    ) -> None:
        """`total` runs are in the sweep, and `runs` of them are the Job's."""
        self._requests = requests
        self._progress = progress
        self._total = total
        self._runs = runs
        self._pause = pause
        self._told: dict[str, set[str]] = {}
        self._by_pod: dict[str, Counts] = {}

    async def until_end(self) -> JobEnd:
        """Look at it now and then."""
        while True:
            pods = 0
            try:
                job = await self._requests.job()
                found = await self._requests.pods()
                pods = len(found)
                await self._count(found)
                if job is None:
                    return self._end("Deleted", "somebody deleted it")
                self._tell(self._requests.name, message_of(job) if phase_of(job) != "Running" else "")
                if phase_of(job) in ENDED:
                    return self._end(phase_of(job), message_of(job))
            except (ApiError, NoResponse) as error:
                if not is_transient(error):
                    raise
                self._tell("the API server", str(error))
            await self._pause(max(POLL, pods / PODS_A_SECOND))

    async def _count(self, pods: list[Manifest]) -> None:
        running = 0
        for pod in pods:
            name, status = str(pod["metadata"]["name"]), pod.get("status") or {}
            running += status.get("phase") == names.POD_RUNNING
            said = ""
            if status.get("phase") in (names.POD_RUNNING, *FINISHED):
                said = await self._requests.log_end(name)
                self._by_pod[name] = counts_in(said) or self._by_pod.get(name, Counts(0))
            self._tell(name, _with_error(trouble(status), said))
        done, failed = self._sums()
        self._progress.show(Counts(self._total, self._total - self._runs + done, running, failed))

    def _sums(self) -> tuple[int, int]:
        counts = self._by_pod.values()
        return sum(pod.done for pod in counts), sum(pod.failed for pod in counts)

    def _end(self, job_phase: str, text: str) -> JobEnd:
        done, failed = self._sums()
        return JobEnd(job_phase, text, done, failed, done + failed < self._runs)

    def _tell(self, subject: str, text: str) -> None:
        """Each message once, and not many of the same pod."""
        told = self._told.setdefault(subject, set())
        if text and text not in told and len(told) < MESSAGES_OF_A_POD:
            told.add(text)
            self._progress.tell(f"warning: {subject}: {printable(text)[:500]}")


def _with_error(text: str, log: str) -> str:
    """What is wrong with a pod, with the error that it ended with, if it has printed one."""
    last = log.rstrip().rpartition("\n")[2]
    return joined(text, last) if text and last.startswith("error: ") else text
