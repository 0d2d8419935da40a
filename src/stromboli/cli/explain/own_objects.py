"""What is told to users who may not read the whole cluster: what the objects of their jobs say, and the leader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.predecessors import ENDED
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import JOBS, POD_GROUPS, Manifest, kind_names, name_of
from stromboli.cli.following.job_wait import phase_of, wait_sentence
from stromboli.simulator.explain.explanation_document import JobExplanation, PodCounts, State

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

RUNNING = ("Running", "Completing", "Restarting")


async def own_jobs(session: ClusterSession, texts: list[str]) -> list[JobExplanation]:
    """The jobs and PodGroups of these names in the namespace; `ApiError` if they may not be read."""
    explained = []
    for text in texts:
        kind, _, name = text.rpartition("/")
        job = group = None
        if kind.lower() in (*kind_names(JOBS), "", "vj"):
            job = await session.find(JOBS, name)
        if job is not None:
            group = await session.find(POD_GROUPS, f"{name}-{job['metadata'].get('uid')}")
        elif kind.lower() in (*kind_names(POD_GROUPS), "", "pg"):
            group = await session.find(POD_GROUPS, name)
        if job is not None or group is not None:
            explained.append(_explanation(session.namespace, job, group))
    return explained


def _explanation(namespace: str, job: Manifest | None, group: Manifest | None) -> JobExplanation:
    spec = ((job or group or {}).get("spec")) or {}
    subject = job or group or {}
    kind = JOBS.kind if job is not None else POD_GROUPS.kind
    phase = phase_of(job) if job is not None else str(((group or {}).get("status") or {}).get("phase") or "")
    state: State = "ended" if phase in (*ENDED, "Completed") else "runs" if phase in RUNNING else "waits"
    sentence = (
        wait_sentence(subject, group, []) if state == "waits" else f"{name_of(subject)} {phase.lower()}"
    )
    return JobExplanation(
        kind=kind,
        name=name_of(subject),
        namespace=namespace,
        pod_group=name_of(group or {}),
        queue=str(spec.get("queue") or names.DEFAULT_QUEUE),
        state=state,
        phase=str(((group or {}).get("status") or {}).get("phase") or ""),
        pods=PodCounts(
            total=sum(map(_replicas, spec.get("tasks") or ())),
            minimum=int(((group or {}).get("spec") or {}).get("minMember") or 0),
        ),
        summary=shown(f"{kind} {namespace}/{sentence}"),
    )


def _replicas(task: object) -> int:
    count = task.get("replicas") if isinstance(task, dict) else 0
    return count if isinstance(count, int) else 0
