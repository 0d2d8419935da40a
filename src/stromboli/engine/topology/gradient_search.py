"""The search for the domain of a gang: group by group, the nearest first, and the best of a group (spec 02 3.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stromboli.engine.topology.nomination import place_nominated

if TYPE_CHECKING:
    from stromboli.engine.pending_tasks import PendingTasks
    from stromboli.engine.session import Session
    from stromboli.engine.statement import Statement
    from stromboli.model.job import Job, SubJob
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain

PlaceTasks = Callable[["Session", "Statement", "SubJob", "list[Task]", "Domain"], bool]
"""Places tasks of a sub-group in a domain, one after the other; whether the sub-group could start with them."""


class GradientSearch:
    """Places jobs with a network topology or with sub-groups."""

    def __init__(self, session: Session, place_tasks: PlaceTasks):
        self._session = session
        self._place_tasks = place_tasks

    def place(self, job: Job, pending: PendingTasks) -> bool:
        """Place a job in the best domain of the first group that has any for it; whether it could start there."""
        session = self._session
        for group in session.gradients(job, session.cluster.hyper_nodes.top, "allocate"):
            scores: dict[Domain, float] = {}
            for domain in group:
                with session.statement() as trial:
                    score = self._place_in(trial, job, pending.copy(), domain)
                    if score is not None:
                        scores[domain] = score
            if scores:
                best = max(scores, key=lambda domain: scores[domain])
                return self._settle(job, pending, best)
        return False

    def _settle(self, job: Job, pending: PendingTasks, domain: Domain) -> bool:
        """Place a job in the domain that was chosen, for good."""
        session = self._session
        with session.statement() as trial:
            left = pending.copy()
            if self._place_in(trial, job, left, domain) is None:
                return False
            session.widen(job, domain)
            trial.keep()
        pending.become(left)
        return True

    def _place_in(self, trial: Statement, job: Job, pending: PendingTasks, domain: Domain) -> float | None:
        """Place sub-group by sub-group until the job is ready; what the domains are worth, none if it cannot start."""
        session = self._session
        session.forget_verdicts(job)
        total = 0.0
        while pending:
            sub_job, tasks = pending.pop()
            score = self._place_sub_job(sub_job, tasks, domain)
            if score is None:
                continue
            total += score
            if tasks:
                pending.push(sub_job, tasks)
            if session.rules.job_ready(job):
                break
        could_start = session.rules.job_ready(job) or session.rules.job_pipelined(job)
        return total if len(trial) and could_start else None

    def _place_sub_job(self, sub_job: SubJob, tasks: list[Task], root: Domain) -> float | None:
        """Place a sub-group in the best domain of its first group that has any for it; what that domain is worth."""
        session = self._session
        if sub_job.nominated_hyper_node and place_nominated(session, sub_job, tasks, root):
            return 0.0
        for group in session.gradients(sub_job, root, "allocate"):
            serving = [domain for domain in group if self._fits(sub_job, tasks, domain)]
            if serving:
                scores = session.rules.hyper_node_scores(sub_job, serving)
                best = max(serving, key=lambda domain: scores.get(domain.name, 0.0))
                self._place_tasks_in(sub_job, tasks, best)
                return scores.get(best.name, 0.0)
        return None

    def _fits(self, sub_job: SubJob, tasks: list[Task], domain: Domain) -> bool:
        with self._session.statement() as trial:
            return self._placed(trial, sub_job, list(tasks), domain)
        return False

    def _place_tasks_in(self, sub_job: SubJob, tasks: list[Task], domain: Domain) -> None:
        with self._session.statement() as trial:
            if self._placed(trial, sub_job, tasks, domain):
                self._session.widen(sub_job, domain)
                trial.keep()

    def _placed(self, trial: Statement, sub_job: SubJob, tasks: list[Task], domain: Domain) -> bool:
        self._session.clear_failed_roles(sub_job)
        return self._place_tasks(self._session, trial, sub_job, tasks, domain) and len(trial) > 0
