"""The explanation of subjects in a running cluster: from its objects and events, and from what its leader remembers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from stromboli.api import names
from stromboli.cli.cluster.cluster_errors import refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import EVENTS, JOBS
from stromboli.cli.cluster.object_events import Happening, happening, merged
from stromboli.cli.cluster.on_cluster import run_on_cluster
from stromboli.cli.explain.file_explanation import explained, explainer_of, lookups_as_exits, subjects_in
from stromboli.cli.explain.groupless_jobs import groupless_jobs
from stromboli.cli.explain.leader_facts import add_leader_facts
from stromboli.cli.explain.own_objects import own_jobs
from stromboli.cli.leader.leader_query import Unreachable, ask_leader
from stromboli.cli.policy_options import chosen_policy
from stromboli.cli.simulate.live_cluster import read_cluster
from stromboli.engine.explanation.event_history import HistoryEntry, history_of
from stromboli.engine.explanation.quantities import time_text
from stromboli.extensions import load_catalog
from stromboli.kube.request import ApiError
from stromboli.simulator.cluster_loading import load_objects
from stromboli.simulator.explain.explanation_document import Explanation, JobExplanation, Subject
from stromboli.simulator.explain.pods_to_come import add_pods_to_come

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.explain.explain_command import ExplainOptions
    from stromboli.engine.catalog import Catalog
    from stromboli.model.intake.object_intake import Intake
    from stromboli.policy.policy import Policy
    from stromboli.scheduler.explain.leader_answer import LeaderAnswer
    from stromboli.simulator.cluster_loading import Loaded
    from stromboli.simulator.explain.subject_lookup import Found

FORBIDDEN = 403
WAITS = f"{names.EVENT_UNSCHEDULABLE}: "
"""How entries begin that say why a job waits."""
RESOURCES = {"Queue": "queues", "Node": "nodes"}
Result = TypeVar("Result")
Compute = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function that takes long, here or beside the event loop."""


def explain_live(options: ExplainOptions, show: Callable[[Explanation], None]) -> None:
    """Read the cluster that the options name, and explain every name in it."""
    run_on_cluster(options.target, partial(_explain, options, show))


async def _explain(
    options: ExplainOptions, show: Callable[[Explanation], None], session: ClusterSession
) -> None:
    catalog = load_catalog(options.plugins_dir)
    chosen = chosen_policy(options.policy, options.preset, catalog, options.lenient)
    wish = ExplanationWish(options.names, chosen, options.trials, options.leader)
    with lookups_as_exits():
        show(await explanation_in(session, wish, catalog))


class ExplanationWish(NamedTuple):
    """What is to be explained, and how."""

    names: list[str]
    """As `stromboli explain` takes them."""
    policy: Policy | None = None
    """Instead of the one in force."""
    trials: bool = True
    leader: str = ""
    """The address that a user gave."""


async def _compute_here(function: Callable[[], Result]) -> Result:
    """Without a thread, so that Ctrl-C ends it."""
    return function()


async def explanation_in(
    session: ClusterSession, wish: ExplanationWish, catalog: Catalog, compute: Compute = _compute_here
) -> Explanation:
    """Read a cluster as far as the user may, and explain every name in it; `NotFound` if there is none."""
    try:
        live = await read_cluster(session.client.access, session.running, catalog)
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return await _within_rights(wish, session, error)
    policy = wish.policy or live.policy.policy
    loaded: Loaded = await compute(partial(load_objects, live.objects))
    groupless = await groupless_jobs(session, loaded.intake.cluster, wish.names)
    with_pods = [text for text in wish.names if text not in groupless]
    subjects = subjects_in(loaded.intake.cluster, with_pods, session.namespace)
    for found, notes in subjects:
        await _add_pods_to_come(session, loaded.intake, found, notes)
    explainer = explainer_of(loaded, policy, catalog, live.present.now, wish.trials)
    explanation: Explanation = await compute(
        partial(explained, explainer, subjects, session.client.access.server)
    )
    explanation.subjects += groupless.values()
    explanation.policy = policy.source_name if wish.policy else live.policy.origin
    explanation.warnings += list(live.present.notes)
    for subject in explanation.subjects:
        await _add_events(session, subject)
        await _add_leader(session, subject, explanation, wish.leader)
        subject.history.entries = without_wrappings(subject.history.entries)
    explanation.warnings = list(dict.fromkeys(explanation.warnings))
    return explanation


async def _within_rights(wish: ExplanationWish, session: ClusterSession, refusal: ApiError) -> Explanation:
    """What a user is told who may not read the whole cluster; the refusal if that is nothing."""
    try:
        jobs = await own_jobs(session, wish.names)
    except ApiError:
        raise refusal from None
    if len(jobs) < len(wish.names):
        raise refusal
    explanation = Explanation(cluster=session.client.access.server, subjects=[*jobs])
    for job in jobs:
        await _add_events(session, job)
        answer = await _add_leader(session, job, explanation, wish.leader)
        if answer is not None and answer.explanation is not None:
            job.wait = answer.explanation
            job.summary = shown(f"{job.kind} {job.namespace}/{job.name} waits: {job.wait.message}")
        job.history.entries = without_wrappings(job.history.entries)
    explanation.warnings.append(
        f"remedies cannot be tried without read access to the whole cluster: {refusal_text(refusal)}"
    )
    return explanation


async def _add_pods_to_come(session: ClusterSession, intake: Intake, found: Found, notes: list[str]) -> None:
    """A Job that is not let in has no pods: they are thought to be there, as its controller would make them."""
    job = found.job
    owner = job.owner if job is not None and not job.tasks and job.waits_for_queue else None
    if job is None or owner is None or (owner.kind, owner.api_version) != (JOBS.kind, JOBS.api_version):
        return
    try:
        manifest = await session.find(JOBS, owner.name, job.namespace)
    except ApiError as error:
        notes.append(f"Job {owner.name} could not be read: {refusal_text(error)}")
        return
    count = add_pods_to_come(intake, job, manifest) if manifest is not None else 0
    if count:
        pods = "pod does not exist yet: it is" if count == 1 else f"{count} pods do not exist yet: they are"
        notes.append(f"Its {pods} created from Job {owner.name} when it is admitted.")


async def _add_events(session: ClusterSession, subject: Subject) -> None:
    """What Events tell of a job, its PodGroup and its pods, or of a queue or a node."""
    if not isinstance(subject, JobExplanation):
        return
    objects = {subject.pod_group, subject.name, subject.pod} - {""}
    try:
        told: list[Happening] = []
        for name in sorted(objects):
            fields = f"involvedObject.name={name}"
            listed = await session.list(EVENTS, subject.namespace, fields=fields)
            told += map(happening, listed.items)
    except ApiError as error:
        subject.notes.append(f"Its events could not be read: {refusal_text(error)}")
        return
    if subject.state == "empty":
        subject.summary += _missing_pods_text(told)
    entries = [
        HistoryEntry(
            time=time_text(each.last),
            kind="event",
            text=f"{each.reason}: {each.message}",
            count=each.times,
            source="events",
        )
        for each in merged(told)
    ]
    subject.history = subject.history.merged(history_of(entries))


def without_wrappings(entries: list[HistoryEntry]) -> list[HistoryEntry]:
    """Less what repeats a sentence of another in more words: a PodGroup wraps why its job waits, and its events do."""
    sentences = {entry.text.removeprefix(WAITS) for entry in entries if entry.text.startswith(f"{WAITS}Job ")}
    return [
        entry
        for entry in entries
        if not any(text in entry.text for text in sentences if entry.text != f"{WAITS}{text}")
    ]


def _missing_pods_text(told: Sequence[Happening]) -> str:
    """Why a job that was let in has no pods, as its controller said last."""
    failures = [each for each in told if each.reason == names.FAILED_CREATE]
    return f": {max(failures, key=lambda each: each.last).message}" if failures else ""


async def _add_leader(
    session: ClusterSession, subject: Subject, explanation: Explanation, leader: str
) -> LeaderAnswer | None:
    """What the leader remembers; a cluster without our scheduler has nobody to ask."""
    if isinstance(subject, JobExplanation):
        resource, name = "podgroups.scheduling.k8s.io" if subject.native else "podgroups", subject.pod_group
        if not name:
            return None
    else:
        resource, name = RESOURCES[subject.kind], subject.name
    answer = await ask_leader(session, resource, subject.namespace, name, leader)
    if isinstance(answer, Unreachable):
        if answer.note:
            explanation.warnings.append(shown(answer.note))
        return None
    explanation.source = "leader and objects"
    add_leader_facts(subject, answer)
    return answer
