"""The effect of failures: a job is left out if a plugin fails over it, an order or a score if it fails for all jobs.

An error of a plugin about a job leaves that job out of the cycle. After such a cycle the plugin is called for other
jobs too, those of other namespaces first. The failure counts only if it fails for all of them, and for two at least:
after `MAX_FAILURES` such cycles in a row the order or score is set aside. It is tried again after pauses that double,
and takes part again as soon as it returns a result for any job.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.engine.attribution import take_attribution
from stromboli.engine.decisions import Event
from stromboli.engine.placement.node_functions import Nodes, finished, scored
from stromboli.engine.plugin import POINTS, Plugin
from stromboli.engine.plugin_failures import Failure, exclude_failed_before
from stromboli.engine.points import sort_keys
from stromboli.engine.session import Session
from stromboli.model.job import Job, JobId
from stromboli.model.pauses import Pauses

log = logging.getLogger(__name__)

MAX_FAILURES = 3
"""Cycles in a row in which an order or a score may fail for all jobs before it is set aside."""
MAX_ASKED = 16
"""Jobs for which a failed plugin is called to find out whether it fails for all."""
_GENERAL_FORMS = {"score_nodes": "node_scores"}
_MAY_BE_SET_ASIDE = {"node_scores", *(name for name, point in POINTS.items() if point.combine is sort_keys)}


class Culprit(NamedTuple):
    """An order or a score of a plugin."""

    plugin: str
    point: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}: {self.point}"


class DisabledSince(NamedTuple):
    """When an order or a score was set aside, and why."""

    since: float
    why: str


class FailingPlugins:
    """The orders and scores that are set aside, and those that failed in the last cycles."""

    def __init__(self) -> None:
        self.set_aside: dict[Culprit, DisabledSince] = {}
        self._in_a_row: dict[Culprit, int] = {}
        """How many cycles in a row each of them failed for all jobs."""
        self._pauses: Pauses[Culprit] = Pauses()

    def update(self, session: Session, plugins: Iterable[Plugin]) -> list[Event]:
        """After a cycle, set aside what fails for all jobs and retry what is set aside; return events about changes."""
        failed, now = culprits(session.failures), session.now
        tried = [each for each in self.set_aside if not self._pauses.is_on(each, now)]
        trials = {each: _Trial(session, plugins, each) for each in (*failed, *tried)}
        self._in_a_row = {
            each: self._in_a_row.get(each, 0) + 1 for each in failed if trials[each].fails_for_all
        }
        failing = [each for each, cycles in self._in_a_row.items() if cycles >= MAX_FAILURES]
        events = [self._set_aside(each, DisabledSince(now, failed[each].message)) for each in failing]
        events += [self._resume(each) for each in tried if trials[each].worked]
        for each in tried:
            if not trials[each].worked:
                log.warning("%s still fails; %s", each, self._next_attempt(each, now))
        return events

    def _set_aside(self, culprit: Culprit, disabled: DisabledSince) -> Event:
        self.set_aside[culprit] = disabled
        text = (
            f"{culprit} failed for all jobs in {MAX_FAILURES} cycles in a row and is set aside;"
            f" {self._next_attempt(culprit, disabled.since)}"
        )
        log.error("%s", text)
        return _event(names.WARNING, names.EVENT_PLUGIN_SET_ASIDE, text)

    def _next_attempt(self, culprit: Culprit, now: float) -> str:
        return f"it is tried again in {self._pauses.begin(culprit, now).seconds:g} seconds"

    def _resume(self, culprit: Culprit) -> Event:
        del self.set_aside[culprit]
        text = f"{culprit} works again and takes part again"
        log.warning("%s", text)
        return _event(names.NORMAL, names.EVENT_PLUGIN_RESUMED, text)


def _event(type: str, reason: str, text: str) -> Event:
    """An event about the queue `root`, which stands for the whole cluster."""
    return Event("Queue", "", names.ROOT_QUEUE, type, reason, text)


class QuarantinedJobs:
    """Jobs for which a cycle was lost: they are left out, with a verdict, for pauses that double."""

    def __init__(self) -> None:
        self._failures: dict[JobId, Failure] = {}
        self._pauses: Pauses[JobId] = Pauses()

    def add(self, jobs: Iterable[Job], failure: Failure, now: float) -> None:
        for job in jobs:
            self._failures[job.id] = failure
            pause = self._pauses.begin(job.id, now)
            log.error("job %s is left out for %g seconds: %s", job.key, pause.seconds, failure.message)

    def leave_out(self, session: Session) -> None:
        """Leave out of a session the jobs whose pause is not over."""
        if self._failures:
            known, now = session.cluster.jobs, session.now
            self._failures = {
                id: failure
                for id, failure in self._failures.items()
                if id in known and self._pauses.is_on(id, now)
            }
            self._pauses.forget(now)
            for id, failure in self._failures.items():
                exclude_failed_before(session, known[id], failure)


def culprits(failures: Iterable[Failure]) -> dict[Culprit, Failure]:
    """The orders and scores that failed, each with its first failure."""
    failed: dict[Culprit, Failure] = {}
    for failure in failures:
        point = _GENERAL_FORMS.get(failure.point, failure.point)
        if point in _MAY_BE_SET_ASIDE:
            failed.setdefault(Culprit(failure.plugin, point), failure)
    return failed


class _Trial:
    """Calls an order or a score for jobs (or queues) of the cluster until it returns a result."""

    def __init__(self, session: Session, plugins: Iterable[Plugin], culprit: Culprit):
        self.worked = False
        """Whether it returned a result."""
        self._failed = 0
        self._least = 1 if culprit.point == "queue_order" else 2
        asked = [
            _question(session, plugin, culprit.point) for plugin in plugins if plugin.name == culprit.plugin
        ]
        for item in islice(_items(session, culprit.point), MAX_ASKED):
            try:
                for ask in asked:
                    ask(item)
            except session.confined as error:
                take_attribution(error)
                self._failed += 1
            else:
                self.worked = True
                return

    @property
    def fails_for_all(self) -> bool:
        """Whether it failed for each of several jobs."""
        return not self.worked and self._failed >= self._least


def _question(session: Session, plugin: Plugin, point: str) -> Callable[[Any], object]:
    ask = POINTS[point].combine([[getattr(plugin, point)]])
    if point != "node_scores":
        return ask

    def score(task: Any) -> None:
        nodes = Nodes(session.cluster.columns)
        for score in ask(task):
            raw = scored(score, task, nodes)
            if len(nodes):
                finished(score, task, nodes, raw, nodes.all())

    return score


def _items(session: Session, point: str) -> Iterator[Any]:
    """The subjects of a point: queues, jobs, or one task or sub-group of each job."""
    if point == "queue_order":
        return (queue for queue in session.cluster.queues.values() if queue.exists and queue.jobs)
    jobs = _jobs(session)
    if point == "job_order":
        return jobs
    if point == "sub_job_order":
        return (sub_job for job in jobs for sub_job in islice(job.sub_jobs.values(), 1))
    return (task for job in jobs for task in islice(job.tasks.values(), 1))


def _jobs(session: Session) -> Iterator[Job]:
    """A waiting job and a job with pods on nodes of each namespace; then all others."""
    asked: dict[Job, None] = {}
    for jobs in (session.cluster.backlog, (job for job in session.jobs() if job.allocated_count)):
        namespaces: set[str] = set()
        for job in jobs:
            if job.visible and job.tasks and job not in asked and job.namespace not in namespaces:
                namespaces.add(job.namespace)
                asked[job] = None
                yield job
    yield from (job for job in session.jobs() if job.tasks and job not in asked)
