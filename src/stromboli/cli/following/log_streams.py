"""Reads the logs of many containers at a time, and resumes those whose connection breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import PODS, Manifest, name_of
from stromboli.cli.following.log_lines import LineCutter, harmless, split_timestamp, time_key
from stromboli.cli.following.rank_prefix import PodRanks, task_and_index
from stromboli.kube.api_client import with_query
from stromboli.kube.request import ApiError, NoResponse, is_transient

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

STREAMS = 64
"""Logs that are read at a time; those of further pods follow when some of these have ended."""
IDLE_SECONDS = 4 * 3600.0
"""Without a line, after which a log is asked for anew."""
ATTEMPTS = 8
PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class LogQuery:
    """Which containers, and which lines of their logs."""

    follow: bool = True
    container: str = ""
    """Its name; all of a pod unless given."""
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    task: str = ""
    """Only pods of that task."""
    index: int | None = None
    """Only that pod of each task."""

    def wants(self, pod: Manifest) -> bool:
        """Whether logs of that pod are asked for."""
        task, index = task_and_index(pod)
        return self.task in ("", task) and self.index in (None, index)


class LogLine(NamedTuple):
    """A line, and whose it is."""

    rank: int
    prefix: str
    text: str


class _Run(NamedTuple):
    """One run of a container: a restart is another."""

    pod: str
    uid: str
    container: str
    restarts: int


class LogStreams:
    """The logs of the pods that are shown to it; `print_line` gets their lines."""

    def __init__(
        self,
        session: ClusterSession,
        namespace: str,
        query: LogQuery,
        print_line: Callable[[LogLine], None],
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`tell` hears which logs cannot be read, and why."""
        self._session = session
        self._namespace = namespace
        self._query = query
        self._print = print_line
        self._tell = tell
        self._slots = asyncio.Semaphore(STREAMS)
        self._readers: dict[_Run, asyncio.Task[None]] = {}
        self._printed = 0
        """How many lines."""

    def observe(self, pod: Manifest, ranks: PodRanks) -> None:
        """Begin to read the logs of those containers of a pod that have started, if they are asked for."""
        if not self._query.wants(pod):
            return
        uid = str((pod.get("metadata") or {}).get("uid") or "")
        runs = _started(pod, self._query)
        several = len((pod.get("spec") or {}).get("containers") or ()) > 1 and not self._query.container
        for container, restarts in runs:
            run = _Run(name_of(pod), uid, container, restarts)
            if run not in self._readers:
                prefix = ranks.prefix(pod, container if several else "")
                reading = self._read(run, ranks.rank(pod), shown(prefix))
                self._readers[run] = asyncio.ensure_future(reading)

    @property
    def started(self) -> bool:
        """Whether any container has."""
        return bool(self._readers)

    async def finish(self, seconds: float) -> None:
        """Wait until all logs have ended, or none of them has had a line for so long."""
        running = {task for task in self._readers.values() if not task.done()}
        while running:
            before = self._printed
            _, running = await asyncio.wait(running, timeout=seconds)
            if running and self._printed == before:
                self._tell(
                    f"nothing has come for {seconds:g} s of logs that have not ended: {len(running)} of them"
                )
                return

    async def close(self) -> None:
        """Read no further."""
        for task in self._readers.values():
            task.cancel()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    async def _read(self, run: _Run, rank: int, prefix: str) -> None:
        """Until the log has ended; from the last line on where the connection broke."""
        last, failures = "", 0
        async with self._slots:
            while True:
                try:
                    async for stamp, line in self._lines(run, last):
                        last, failures = stamp or last, 0
                        text = harmless(line)
                        if self._query.timestamps and stamp:
                            text = f"{shown(stamp)} {text}"
                        self._print(LogLine(rank, prefix, text))
                        self._printed += 1
                    return
                except (ApiError, NoResponse) as error:
                    failures += 1
                    if isinstance(error, ApiError) and error.status == 404:
                        return  # the pod is gone, and its log with it
                    if failures >= ATTEMPTS or not (is_transient(error) or _has_not_begun(error)):
                        self._tell(f"the log of pod {run.pod} cannot be read: {error}")
                        return
                    await asyncio.sleep(PAUSE * failures)

    async def _lines(self, run: _Run, last: str) -> AsyncIterator[tuple[str, bytes]]:
        """Lines after the last one, with their times."""
        cutter = LineCutter()
        path = PODS.path(self._namespace, run.pod, "log")
        async with self._session.client.stream(
            with_query(path, self._parameters(run, last)), IDLE_SECONDS
        ) as log:
            async for piece in log:
                for line in cutter.feed(piece):
                    if stamped := _after(last, line):
                        yield stamped
            for line in cutter.end():
                if stamped := _after(last, line):
                    yield stamped

    def _parameters(self, run: _Run, last: str) -> dict[str, str | int]:
        query = self._query
        parameters: dict[str, str | int] = {"container": run.container, "timestamps": "true"}
        if query.follow:
            parameters["follow"] = "true"
        if query.previous:
            parameters["previous"] = "true"
        if last:
            parameters["sinceTime"] = last
        elif query.since_seconds is not None:
            parameters["sinceSeconds"] = query.since_seconds
        if query.tail is not None and not last:
            parameters["tailLines"] = query.tail
        return parameters


def _after(last: str, line: bytes) -> tuple[str, bytes] | None:
    """A line with its time; none if it is one that came before the connection broke."""
    stamp, rest = split_timestamp(line)
    return None if last and stamp and time_key(stamp) <= time_key(last) else (stamp, rest)


def _started(pod: Manifest, query: LogQuery) -> list[tuple[str, int]]:
    """The containers that have a log, each with the number of its restarts; init containers only by name."""
    status, runs = pod.get("status") or {}, []
    keys = ("initContainerStatuses", "containerStatuses") if query.container else ("containerStatuses",)
    for container in (entry for key in keys for entry in status.get(key) or ()):
        name, state = str(container.get("name") or ""), container.get("state") or {}
        restarts = int(container.get("restartCount") or 0)
        if query.container not in ("", name):
            continue
        started = state.get("running") is not None or state.get("terminated") is not None
        if started or (query.previous and restarts):
            runs.append((name, restarts))
    return runs


def _has_not_begun(error: Exception) -> bool:
    """A kubelet that has told the API server of a container, and does not serve its log yet."""
    return isinstance(error, ApiError) and error.status == 400
