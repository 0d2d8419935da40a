"""Let starving queues take back their share from queues that have more than theirs (spec 02 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from stromboli.api import names
from stromboli.engine.catalog import action
from stromboli.engine.eviction.eviction_options import Manners, settle_in, welcome
from stromboli.engine.eviction.node_clearing import clear
from stromboli.engine.eviction.starving_jobs import feed, starving_jobs
from stromboli.engine.eviction.victim_search import Hunt, Offer, enough
from stromboli.engine.session import Session
from stromboli.engine.statement import Statement
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.accepted_arguments import error_cache
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments(Manners):
    """Arguments of the reclaim action."""

    predicate_error_cache: bool = error_cache()
    same_queue: bool = arg(
        "enableSameQueueReclaim",
        False,
        "Also take from jobs of the same queue with a strictly lower priority.",
    )


@action("reclaim", Arguments)
def reclaim(session: Session) -> None:
    """For each starving queue, job by job: evict what other queues hold beyond their share, until the job can start."""
    arguments: Arguments = session.arguments("reclaim")
    offer = Offer(
        "reclaimable",
        (Status.RUNNING,),
        partial(_offered, arguments.same_queue),
        accepts=lambda task, victim: arguments.lets_go(session, victim),
        somebody=True,
        depends_on=lambda task: task.job.priority if task.job and arguments.same_queue else None,
    )
    hunt = Hunt(session, offer, arguments.fewest_victims, arguments.no_harm)
    jobs_by_queue = session.jobs_by_queue(starving_jobs(session))
    for _, jobs in jobs_by_queue.visits(skip=session.rules.overused):
        for job in jobs:
            feed(session, job, partial(_make_room, session, hunt, arguments), arguments)


def _offered(same_queue: bool, task: Task, job: Job) -> bool:
    if task.job is None or job.queue is None:
        return False
    if job.queue is task.job.queue:
        return same_queue and job.priority < task.job.priority
    return job.queue.reclaimable


def _make_room(session: Session, hunt: Hunt, arguments: Arguments, trial: Statement, task: Task) -> bool:
    queue = session.queue_of(task)
    if queue is None or not task.may_preempt or not session.rules.preemptive(queue, [task]):
        return False
    if arguments.fewest_victims and settle_in(session, trial, task):
        return True
    if hunt.hopeless(task):
        return False
    for step in hunt.steps(task):
        if any(_take(session, step, arguments, task, node) for node in step.nodes_in_order(task)):
            return True
    hunt.give_up(task)
    return False


def _take(session: Session, hunt: Hunt, arguments: Arguments, task: Task, node: Node) -> bool:
    """Evict on one node until the task fits; nodes on which nobody is offered are passed over."""
    choice = hunt.choose(task, node)
    if choice is None or not enough(session, task, node, choice.victims):
        return False
    # quirk: spec 02 5: filters and limits of queues above are not asked again once somebody went
    fits = welcome if arguments.fewest_victims else enough
    return clear(session, hunt, arguments, names.EVICTED_BY_RECLAIM, task, node, choice, fits)
