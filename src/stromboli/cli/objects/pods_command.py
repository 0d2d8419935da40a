"""`stromboli pods`: the pods of a job, of a queue, or of all jobs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from stromboli.api import names
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.chosen_objects import plain_name
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import (
    JOBS,
    POD_GROUPS,
    PODS,
    QUEUES,
    Manifest,
    full_name,
    name_of,
    namespace_of,
)
from stromboli.cli.cluster.group_members import group_of, job_of_pod, marks_of, queue_of, queue_of_pod
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import (
    NAME_COLUMN,
    NONE,
    OUTPUT,
    SELECTOR,
    WATCH,
    Column,
    ObjectFormat,
    show_list,
)
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.cluster.readable_parts import ReadableParts
from stromboli.cli.following.rank_prefix import PodRanks
from stromboli.cli.objects.common_columns import AGE_COLUMN, nested
from stromboli.embedded.tables.pod_rows import PODS as POD_PRINTER

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

READY, STATUS, RESTARTS, ADDRESS = 1, 2, 3, 5
"""Places of cells in the row that kubectl prints of a pod."""


@on_cluster(all_namespaces=True)
async def pods(
    session: ClusterSession,
    job: str = typer.Argument(
        "",
        metavar="[JOB]",
        show_default=False,
        help="Whose pods; those of all jobs unless given.",
        autocompletion=completes(JOBS),
    ),
    queue: str = typer.Option(
        "",
        "--queue",
        "-q",
        metavar="NAME",
        show_default=False,
        help="Only those of a queue.",
        autocompletion=completes(QUEUES),
    ),
    output: ObjectFormat = OUTPUT,
    watch: bool = WATCH,
    selector: str = SELECTOR,
) -> None:
    """Show the pods of a job, of a queue, or of all jobs: how they are, where they run, and their ranks.

    Pods that belong to no job and no PodGroup are left out.

    Exit status 0, 1 if the cluster refuses or the job does not exist, 2 for a wrong command line.
    """
    if job and session.all_namespaces:
        raise Usage("JOB and -A exclude each other: a job is in one namespace")
    name = plain_name(JOBS, job) if job else ""
    known = await KnownOwners.read(session, name)
    labels = ",".join(filter(None, (selector, f"{names.JOB_NAME}={name}" if name else "")))

    def keep(pod: Manifest) -> bool:
        belongs = bool(job_of_pod(pod) or group_of(pod))
        return belongs and (not queue or known.queue(pod) == queue)

    await show_list(session, PODS, known.columns(), output, watch, labels, keep=keep)


class KnownOwners:
    """The jobs and PodGroups that pods belong to, as far as the user may read them."""

    def __init__(self, jobs: list[Manifest], groups: list[Manifest]) -> None:
        self._ranks = {(namespace_of(job), name_of(job)): PodRanks(job) for job in jobs}
        self._queues = {(namespace_of(group), name_of(group)): queue_of(group) for group in groups}

    @classmethod
    async def read(cls, session: ClusterSession, name: str) -> KnownOwners:
        """`ClusterError` if the job of that name does not exist, and left no pods."""
        parts = ReadableParts()
        groups = await parts.list("queues of pods may be missing", session, POD_GROUPS)
        fields = f"metadata.name={name}" if name else ""
        jobs = await parts.list("ranks may be missing", session, JOBS, fields=fields)
        if name and jobs == []:
            remains = await session.list(PODS, labels=f"{names.JOB_NAME}={name}")
            if not remains.items:
                raise ClusterError(f"{full_name(JOBS, name)} does not exist in namespace {session.namespace}")
        parts.tell()
        return cls(jobs or [], groups or [])

    def queue(self, pod: Manifest) -> str:
        """That of its PodGroup, else what is noted on the pod."""
        return self._queues.get((namespace_of(pod), group_of(pod))) or queue_of_pod(pod) or NONE

    def rank(self, pod: Manifest) -> str:
        """Among all pods of its job; empty for a pod that belongs to none."""
        job = job_of_pod(pod)
        if not job:
            return ""
        ranks = self._ranks.get((namespace_of(pod), job)) or PodRanks(None)
        return str(ranks.rank(pod))

    def columns(self) -> tuple[Column, ...]:
        return (
            NAME_COLUMN,
            _printed("READY", READY),
            _printed("STATUS", STATUS),
            _printed("RESTARTS", RESTARTS),
            Column("NODE", lambda pod: nested(pod, "spec", "nodeName") or NONE),
            Column("QUEUE", self.queue),
            Column("JOB", lambda pod: job_of_pod(pod) or group_of(pod)),
            Column("RANK", self.rank),
            AGE_COLUMN,
            Column("TASK", lambda pod: marks_of(pod).get(names.TASK_SPEC), wide=True),
            _printed("IP", ADDRESS, wide=True),
            Column("PODGROUP", group_of, wide=True),
        )


def _printed(title: str, place: int, wide: bool = False) -> Column:
    """A cell as kubectl prints it."""
    return Column(title, lambda pod: POD_PRINTER.print_row(pod, time.time())[place], wide)
