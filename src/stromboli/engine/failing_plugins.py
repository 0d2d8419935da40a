"""The effect of failures: a job is left out if a plugin fails over it, an order or a score if it fails for all jobs.

Whatever a plugin raises over a job leaves that job out of the cycle. After such a cycle the plugin is asked about other
jobs too, those of other namespaces first. Only where it fails for all of them, and they are two at least, the failure
counts against the plugin: after `MAX_FAILURES` such cycles in a row the order or score is set aside. It is asked again,
out of turn, after pauses that double, and takes part again as soon as it has an answer for any job.
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
"""Jobs about which a plugin that failed is asked at most, to find out whether it fails for all."""
_GENERAL_FORMS = {"score_nodes": "node_scores"}
_MAY_BE_SET_ASIDE = {"node_scores", *(name for name, point in POINTS.items() if point.combine is sort_keys)}


class Culprit(NamedTuple):
    """An order or a score of a plugin."""

    plugin: str
    point: str

    def __str__(self) -> str:
        return f"plugin {self.plugin!r}: {self.point}"


class Lapse(NamedTuple):
    """Since when an order or a score is set aside, and why."""

    since: float
    why: str


class FailingPlugins:
    """The orders and scores that are set aside, and those that are about to be."""

    def __init__(self) -> None:
        self.set_aside: dict[Culprit, Lapse] = {}
        self._in_a_row: dict[Culprit, int] = {}
        """Cycles in a row in which it failed for all jobs."""
        self._pauses: Pauses[Culprit] = Pauses()

    def update(self, session: Session, plugins: Iterable[Plugin]) -> list[Event]:
        """After a cycle: set aside what fails for all jobs, ask again what was; events about what changed."""
        failed, now = culprits(session.failures), session.now
        tried = [each for each in self.set_aside if not self._pauses.is_on(each, now)]
        trials = {each: _Trial(session, plugins, each) for each in (*failed, *tried)}
        self._in_a_row = {
            each: self._in_a_row.get(each, 0) + 1 for each in failed if trials[each].fails_for_all
        }
        failing = [each for each, cycles in self._in_a_row.items() if cycles >= MAX_FAILURES]
        events = [self._set_aside(each, Lapse(now, failed[each].message)) for each in failing]
        events += [self._resume(each) for each in tried if trials[each].worked]
        for each in tried:
            if not trials[each].worked:
                log.warning("%s still fails; %s", each, self._next_attempt(each, now))
        return events

    def _set_aside(self, culprit: Culprit, lapse: Lapse) -> Event:
        self.set_aside[culprit] = lapse
        text = (
            f"{culprit} failed for all jobs in {MAX_FAILURES} cycles in a row and is set aside;"
            f" {self._next_attempt(culprit, lapse.since)}"
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
    """An event on the queue `root`, which stands for the whole cluster."""
    return Event("Queue", "", names.ROOT_QUEUE, type, reason, text)


class CostlyJobs:
    """Jobs over which a cycle was lost: left out, with a verdict, for pauses that double."""

    def __init__(self) -> None:
        self._failures: dict[JobId, Failure] = {}
        self._pauses: Pauses[JobId] = Pauses()

    def add(self, jobs: Iterable[Job], failure: Failure, now: float) -> None:
        for job in jobs:
            self._failures[job.id] = failure
            pause = self._pauses.begin(job.id, now)
            log.error("job %s is left out for %g seconds: %s", job.key, pause.seconds, failure.message)

    def leave_out(self, session: Session) -> None:
        """Leave out of a session those whose pause is not over."""
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
    """The orders and scores among what failed, each with its first failure."""
    failed: dict[Culprit, Failure] = {}
    for failure in failures:
        point = _GENERAL_FORMS.get(failure.point, failure.point)
        if point in _MAY_BE_SET_ASIDE:
            failed.setdefault(Culprit(failure.plugin, point), failure)
    return failed


class _Trial:
    """An order or a score asked about jobs (or queues) of the cluster, until it has an answer."""

    def __init__(self, session: Session, plugins: Iterable[Plugin], culprit: Culprit):
        self.worked = False
        """Whether it answered."""
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
        """Whether it failed each time, for more than one job."""
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
    """What a point can be asked about: a queue each, or a job, task or sub-group of a job each."""
    if point == "queue_order":
        return (queue for queue in session.cluster.queues.values() if queue.exists and queue.jobs)
    jobs = _jobs(session)
    if point == "job_order":
        return jobs
    if point == "sub_job_order":
        return (sub_job for job in jobs for sub_job in islice(job.sub_jobs.values(), 1))
    return (task for job in jobs for task in islice(job.tasks.values(), 1))


def _jobs(session: Session) -> Iterator[Job]:
    """Of each namespace a job that waits and one with pods on nodes; then all others."""
    asked: dict[Job, None] = {}
    for jobs in (session.cluster.backlog, (job for job in session.jobs() if job.allocated_count)):
        namespaces: set[str] = set()
        for job in jobs:
            if job.visible and job.tasks and job not in asked and job.namespace not in namespaces:
                namespaces.add(job.namespace)
                asked[job] = None
                yield job
    yield from (job for job in session.jobs() if job.tasks and job not in asked)
