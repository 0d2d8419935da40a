"""Let starving queues take back their share from queues that have more than theirs (spec 02 5)."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_commit import (
    may_reclaim_from,
    may_reclaim_from_queue,
    no_attempt_before,
)
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.engine.eviction.node_clearing import clear_first
from stromboli.engine.eviction.starving_jobs import evict_for_job, pipeline_without_eviction, starving_jobs
from stromboli.engine.eviction.victim_candidates import VictimCandidates
from stromboli.engine.eviction.victim_selection import VictimSelection
from stromboli.engine.session import Session
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.policy.arguments import arg, error_cache


@dataclass(frozen=True, slots=True)
class Arguments(EvictionOptions):
    """Arguments of the reclaim action."""

    predicate_error_cache: bool = error_cache()
    same_queue: bool = arg(
        "enableSameQueueReclaim",
        False,
        "Also evict jobs of the same queue with a strictly lower priority.",
    )


@action("reclaim", Arguments, evicts_by="reclaimable", reclaims=True, for_waiting=True)
def reclaim(session: Session) -> None:
    """Evict what other queues hold beyond their share, until a starving job can start."""
    arguments: Arguments = session.arguments("reclaim")
    spared: dict[Job, frozenset[Queue]] = {}
    """By job, the queues from which it would only take in turn."""

    def may_take_from(task: Task, job: Job) -> bool:
        if task.job is not None and job.queue is task.job.queue:
            return arguments.same_queue and job.priority < task.job.priority
        if task.job is not None and job.queue in spared.get(task.job, ()):
            return False
        return may_reclaim_from(session, task, job, arguments)

    def may_take_from_queue(task: Task, queue: Queue | None) -> bool | None:
        if task.job is not None and queue is task.job.queue:
            return None if arguments.same_queue else False
        if task.job is not None and queue in spared.get(task.job, ()):
            return False
        return may_reclaim_from_queue(session, task, queue)

    candidates = VictimCandidates(
        "reclaimable",
        (Status.RUNNING,),
        may_take_from,
        may_take_from_queue,
        accepts=arguments.may_evict(session),
        required=True,
        key=lambda task: (task.job.priority, spared.get(task.job)) if task.job else None,
    )
    search = VictimSelection(session, candidates, arguments)
    starving = starving_jobs(session, may_help=search.may_help)
    for _, jobs in session.jobs_by_queue(starving).visits(skip=session.rules.overused):
        for job in jobs:
            if no_attempt_before(session, job) is not None:
                continue
            while queues := evict_for_job(search, job, _serve):
                spared[job] = spared.get(job, frozenset()) | queues


def _serve(search: VictimSelection, task: Task, within: Domain | None) -> bool:
    """Pipeline a task to a node that has capacity, else to one that is cleared of victims."""
    session, options = search.session, search.options
    queue = session.queue_of(task)
    if queue is None or not task.may_preempt or not options.has_waited(session, task):
        return False
    if not session.rules.preemptive(queue, [task]):
        return False
    if options.fewest_victims and pipeline_without_eviction(session, task, within):
        return True
    # quirk: spec 02 5: filters and limits of queues above are not asked again after an eviction
    by_amounts = not options.fewest_victims
    for part in search.searches(task, within):
        nodes = part.nodes_in_order(task, within)
        if clear_first(part, task, nodes, within, by_amounts):
            return True
    return False
