"""Jobs without a PodGroup and without pods, of which the scheduler knows nothing: suspended, ended or not begun."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.api import names
from stromboli.api.predecessors import FINISHED, SUSPENDED
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, kind_names, name_of
from stromboli.cli.following.job_wait import message_of, phase_of
from stromboli.kube.request import ApiError
from stromboli.simulator.explain.explanation_document import JobExplanation, PodCounts, State
from stromboli.simulator.explain.subject_lookup import NotFound, UnknownType, look_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.model.cluster import Cluster


async def groupless_jobs(
    session: ClusterSession, cluster: Cluster, texts: Sequence[str]
) -> dict[str, JobExplanation]:
    """What the objects of jobs say themselves, for names of which the scheduler sees nothing."""
    explained: dict[str, JobExplanation] = {}
    for text in texts:
        kind, _, name = text.rpartition("/")
        if not _is_known(cluster, text, session.namespace) and kind.lower() in (*kind_names(JOBS), "", "vj"):
            try:
                job = await session.find(JOBS, name)
            except ApiError:  # without the right to read it, it is unknown
                continue
            if job is not None:
                explained[text] = _explanation(job, session.namespace)
    return explained


def _is_known(cluster: Cluster, text: str, namespace: str) -> bool:
    try:
        look_up(cluster, text, namespace)
    except NotFound:
        return False
    except UnknownType:
        return True
    return True


def _explanation(job: Manifest, namespace: str) -> JobExplanation:
    name, phase, why = name_of(job), phase_of(job), message_of(job)
    title = f"Job {namespace}/{name}"
    state: State = "empty"
    if phase in SUSPENDED:
        summary = (
            f"{title} is suspended ({phase}): run `stromboli job resume -n {namespace} {name}` to resume it"
        )
    elif phase in FINISHED:
        state, summary = "ended", f"{title} is {phase}" + (f": {why}" if why else "")
    else:
        summary = (
            f"{title} has no PodGroup{f' ({why})' if why else ''}: the job controller creates it;"
            " run `stromboli check` to see whether the controller is running"
        )
    return JobExplanation(
        kind=JOBS.kind,
        name=name,
        namespace=namespace,
        pod_group="",
        queue=str((job.get("spec") or {}).get("queue") or names.DEFAULT_QUEUE),
        state=state,
        phase="",
        pods=PodCounts(),
        summary=shown(summary),
    )
