"""The oracle of `allocate` on a tree of HyperNodes: every domain is tried, and the best that serves is taken.

As the pseudo-code of spec 02 3.2 to 3.4 has it. Nothing is left out, nothing is remembered, and nodes of a domain are
chosen by a mask over all nodes.
"""

from __future__ import annotations

from stromboli.engine.catalog import Action
from stromboli.engine.pending_tasks import PendingTasks, pending_tasks, worth_going_on
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.session import Session
from stromboli.model.job import Job, SubJob
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain


def naive_allocate(session: Session) -> None:
    by_job: dict[Job, PendingTasks] = {}
    for job in list(session.cluster.backlog):
        if (
            not job.waits_for_queue
            and not session.requirements.unmet(job)
            and session.rules.job_valid(job) is None
        ):
            by_job[job] = pending_tasks(session, job)
    jobs = session.jobs_by_queue([job for job, pending in by_job.items() if pending])
    for _, job in jobs.turns(skip=session.rules.overused):
        with session.statement() as trial:
            plain = not job.policies and session.topology.tier_limit(job) is None
            if not (place_plain if plain else place_job)(session, job, by_job[job]):
                continue
            if not session.rules.job_ready(job):
                trial.keep()
                continue
            trial.commit()
        if by_job[job]:
            jobs.push(job)


NAIVE = Action("naive-allocate", naive_allocate)


def place_plain(session: Session, job: Job, pending: PendingTasks) -> bool:
    top = session.cluster.hyper_nodes.top
    for sub_job, tasks in pending.items():
        place_tasks(session, sub_job, tasks, top, afresh=False)
    return session.rules.job_ready(job) or session.rules.job_pipelined(job)


def place_job(session: Session, job: Job, pending: PendingTasks) -> bool:
    top = session.cluster.hyper_nodes.top
    for gradient in session.topology.gradients(job, top, "allocate"):
        solutions: dict[Domain, float] = {}
        for domain in gradient:
            with session.statement():
                score = place_in(session, job, pending.copy(), domain)
                if score is not None:
                    solutions[domain] = score
        if solutions:
            best = max(solutions, key=lambda domain: solutions[domain])
            left = pending.copy()
            with session.statement() as trial:
                assert place_in(session, job, left, best) == solutions[best]
                session.topology.widen(job, best)
                trial.keep()
            pending.become(left)
            return True
    return False


def place_in(session: Session, job: Job, pending: PendingTasks, domain: Domain) -> float | None:
    before = len(session.journal)
    total = 0.0
    while pending:
        sub_job, tasks = pending.pop()
        score = place_sub_job(session, sub_job, tasks, domain)
        if score is None:
            continue
        total += score
        if tasks:
            pending.push(sub_job, tasks)
        if session.rules.job_ready(job):
            break
    if len(session.journal) == before:
        return None
    return total if session.rules.job_ready(job) or session.rules.job_pipelined(job) else None


def place_sub_job(session: Session, sub_job: SubJob, tasks: list[Task], root: Domain) -> float | None:
    for gradient in session.topology.gradients(sub_job, root, "allocate"):
        serving = []
        for domain in gradient:
            with session.statement():
                if place_tasks(session, sub_job, list(tasks), domain):
                    serving.append(domain)
        if serving:
            scores = session.rules.hyper_node_scores(sub_job, serving)
            best = max(serving, key=lambda domain: scores.get(domain.name, 0.0))
            with session.statement() as trial:
                assert place_tasks(session, sub_job, tasks, best)
                session.topology.widen(sub_job, best)
                trial.keep()
            return scores.get(best.name, 0.0)
    return None


def place_tasks(
    session: Session, sub_job: SubJob, tasks: list[Task], domain: Domain, afresh: bool = True
) -> bool:
    if afresh:
        session.attempts.clear_failed_roles(sub_job)
    before = len(session.journal)
    mask = domain.mask(len(session.cluster.columns))
    while tasks:
        task = tasks.pop()
        queue = sub_job.job.queue
        if queue is None or not session.rules.allocatable(queue, task) or task.gates:
            continue
        if task.role and task.role in session.attempts.failed_roles(sub_job):
            continue
        place = session.place(task, mask, domain=session.cluster.hyper_nodes.top)
        if not isinstance(place, Place):
            session.explain(task, place)
            if worth_going_on(session, sub_job):
                continue
            break
        if session.statement().assign(task, place) is None:
            session.topology.follow(sub_job, place.node)
            if session.sub_job_ready(sub_job):
                break
    session.topology.stop_following(sub_job)
    started = session.sub_job_ready(sub_job) or session.sub_job_pipelined(sub_job)
    return started and len(session.journal) > before
