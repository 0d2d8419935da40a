"""Ask a server of the user what to do, over HTTP (spec 04 11)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from stromboli.api import go_scalars
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.plugins.extender import extender_messages
from stromboli.plugins.extender.extender_client import Line, NoAnswer
from stromboli.policy.arguments import arg

log = logging.getLogger(__name__)

T = TypeVar("T")
CURABLE = 2
"""The code of a refusal that evicting somebody could cure."""
LONGEST = 500
"""Characters of a reason that users are shown."""
_HELD = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class ExtenderArguments:
    """Where the server is, what it is asked (a path below its address for each question), and how far it is trusted."""

    url: str = arg("extender.urlPrefix", "", "The address of the server.")
    timeout: str = arg(
        "extender.httpTimeout", "1s", "How long to wait for an answer; no duration counts as 1s."
    )
    ignorable: bool = arg(
        "extender.ignorable", False, "Whether to go on as if it had not been asked when it fails."
    )
    managed: tuple[str, ...] = arg(
        "extender.managedResources",
        (),
        "Only tasks with a container that names one of these are asked about.",
    )
    open: str = arg("extender.onSessionOpenVerb", "", "Told of the whole cluster when a cycle begins.")
    close: str = arg("extender.onSessionCloseVerb", "", "Told when a cycle ends.")
    predicate: str = arg("extender.predicateVerb", "", "Whether a node can take a task.")
    prioritize: str = arg("extender.prioritizeVerb", "", "How good each node is for a task.")
    preemptable: str = arg("extender.preemptableVerb", "", "Which tasks may make room within a queue.")
    reclaimable: str = arg("extender.reclaimableVerb", "", "Which tasks may make room for another queue.")
    overused: str = arg("extender.queueOverusedVerb", "", "Whether a queue has had its share.")
    enqueueable: str = arg("extender.jobEnqueueableVerb", "", "Whether a waiting job may be let in.")
    enqueued: str = arg("extender.jobEnqueuedVerb", "", "Told when a job was let in.")
    ready: str = arg("extender.jobReadyVerb", "", "Whether a job may start with what it has.")
    allocate: str = arg("extender.allocateFuncVerb", "", "Told when a task is given room; may refuse.")
    deallocate: str = arg("extender.deallocateFuncVerb", "", "Told when a task loses its room; may refuse.")


class Extender(Plugin):
    """Asks a server of yours; what it answers counts like the opinion of any plugin, and is never trusted blindly."""

    name = "extender"
    Arguments = ExtenderArguments
    arguments: ExtenderArguments

    def __init__(self, arguments: ExtenderArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        seconds = go_scalars.duration(arguments.timeout)
        self._line = Line(arguments.url, seconds if seconds is not None and seconds > 0 else 1.0)
        self._heard = False
        self._asked: tuple[Any, list[extender_messages.Predicate]] | None = None

    # -- life

    def opening(self, session: Session, dirty: Dirty) -> None:
        """A server that must not fail and does not hear of the cluster is not asked in this cycle."""
        self._asked = None
        way_out = session.services.get("post")
        self._heard = way_out is not None
        if way_out is None:
            log.info("extender: nothing is asked, since nothing here may call out, as in a rehearsal")
            return
        self._line.begin(way_out)
        if self.arguments.open:
            news = extender_messages.everything(session.cluster, session.jobs())
            self._heard = self._told(self.arguments.open, news) or self.arguments.ignorable

    def closing(self, session: Session) -> None:
        if self.arguments.close and "post" in session.services:
            self._told(self.arguments.close, {})

    def _told(self, verb: str, news: Any) -> bool:
        try:
            self._line.tell(verb, news)
        except NoAnswer:
            return False
        return True

    def _answer(self, verb: str, question: Any, kind: type[T]) -> T | None:
        """What the server says; none if it fails, which the line has mentioned."""
        try:
            return self._line.ask(verb, question, kind)
        except NoAnswer:
            return None

    def _cares(self, task: Task) -> bool:
        managed, spec = self.arguments.managed, task.shape.spec
        return self._heard and (
            not managed
            or any(
                name in one.resources.requests or name in one.resources.limits
                for one in (*spec.containers, *spec.init_containers)
                for name in managed
            )
        )

    # -- nodes

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        if self.arguments.predicate:
            yield NodeFilter(self._checks, plugin=self.name, reads="external")

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if not self._cares(task):
            return
        reasons: dict[tuple[str, bool], int] = {("", False): 0}
        given = [
            reasons.setdefault((one.status, one.code == CURABLE) if one.status else ("", False), len(reasons))
            for one in self._opinions(task, nodes)
        ]
        codes = np.array(given, dtype=np.int64)
        for (reason, curable), code in reasons.items():
            if code:
                yield Check(codes != code, reason[:LONGEST], curable)

    def _opinions(self, task: Task, nodes: Nodes) -> list[extender_messages.Predicate]:
        """What the server says of each node. Why no node would do is the same question again: not asked twice."""
        question = (task, nodes.columns.clock, len(nodes))
        if self._asked is None or self._asked[0] != question:
            rows = nodes.each(lambda node: node.row).tolist()
            asking = extender_messages.task(task, self.session.cluster.dims)
            said = [self._opinion(asking, nodes.columns.nodes[row]) for row in rows]
            self._asked = (question, said)
        return self._asked[1]

    def _opinion(self, asking: extender_messages.Json, node: Node) -> extender_messages.Predicate:
        question = {"task": asking, "node": extender_messages.node(node, self.session.cluster)}
        try:
            return self._line.ask(self.arguments.predicate, question, extender_messages.Predicate)
        except NoAnswer as error:
            return extender_messages.Predicate("" if self.arguments.ignorable else str(error))

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self.arguments.prioritize:
            yield NodeScore(
                _some_order, plugin=self.name, reads="external", finish=self._prioritise, batch=True
            )

    def _prioritise(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        """The server scores the candidates together, if there is a choice; one that must not fail ends the search."""
        scores = np.zeros(len(raw))
        rows = {nodes.columns.nodes[row].name: row for row in np.flatnonzero(candidates).tolist()}
        if len(rows) < 2 or not self._cares(task):
            return scores
        cluster = self.session.cluster
        listed = [extender_messages.node(cluster.nodes[name], cluster) for name in rows]
        question = {"task": extender_messages.task(task, cluster.dims), "nodes": listed}
        try:
            answer = self._line.ask(self.arguments.prioritize, question, extender_messages.Prioritize)
        except NoAnswer:
            if self.arguments.ignorable:
                return scores
            raise
        if answer.error_message or answer.node_score is None:
            raise NoAnswer(f"{self.arguments.prioritize}: {answer.error_message[:LONGEST] or 'no scores'}")
        for name in rows.keys() & answer.node_score.keys():
            scores[rows[name]] = answer.node_score[name]
        return scores

    # -- victims

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims(self.arguments.preemptable, task, candidates)

    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims(self.arguments.reclaimable, task, candidates)

    def _victims(self, verb: str, task: Task, candidates: list[Task]) -> list[Task] | None:
        """# quirk: spec 04 11: a server that fails spares everybody, ignorable or not."""
        if not verb or not self._cares(task):
            return None
        dims = self.session.cluster.dims
        question = {
            "evictor": extender_messages.task(task, dims),
            "evictees": [extender_messages.task(one, dims) for one in candidates],
        }
        answer = self._answer(verb, question, extender_messages.Victims)
        if answer is None:
            return []
        named = {one.uid for one in answer.victims or ()}
        return [one for one in candidates if one.uid in named] if answer.status else None

    # -- jobs and queues

    def job_enqueueable(self, job: Job) -> Vote:
        if not self.arguments.enqueueable or not self._heard:
            return Vote.ABSTAIN
        answer = self._answer(self.arguments.enqueueable, self._about(job), extender_messages.Opinion)
        if answer is None:
            return Vote.PERMIT if self.arguments.ignorable else Vote.REJECT
        return Vote((answer.status > 0) - (answer.status < 0))

    def job_enqueued(self, job: Job) -> None:
        if self.arguments.enqueued and self._heard:
            self._told(self.arguments.enqueued, self._about(job))

    def job_ready(self, job: Job) -> bool:
        if not self.arguments.ready or not self._heard:
            return True
        answer = self._answer(self.arguments.ready, self._about(job), extender_messages.Ready)
        # quirk: spec 04 11: one that must not fail makes jobs ready when it does
        return not self.arguments.ignorable if answer is None else answer.status

    def overused(self, queue: Queue) -> bool:
        if not self.arguments.overused or not self._heard:
            return False
        answer = self._answer(
            self.arguments.overused, {"queue": extender_messages.queue(queue)}, extender_messages.Overused
        )
        return not self.arguments.ignorable if answer is None else answer.overused

    def _about(self, job: Job) -> extender_messages.Json:
        return {"job": extender_messages.job(job, self.session.cluster.dims)}

    # -- moves

    def on_move(self, change: Change) -> str | None:
        """Tell of room given and lost; the server may refuse a move, but not that one is taken back."""
        before, now = _held(change.old_status, change.old_node), _held(change.status, change.node)
        verb = self.arguments.allocate if now else self.arguments.deallocate
        if before == now or not verb or not self._cares(change.task):
            return None
        question = {"task": extender_messages.task(change.task, self.session.cluster.dims)}
        try:
            problem = self._line.ask(verb, question, extender_messages.Accepted).error_message[:LONGEST]
        except NoAnswer as error:
            problem = "" if self.arguments.ignorable else str(error)
        return problem if problem and not change.undo else None


def _held(status: Status, node: Node | None) -> bool:
    return node is not None and status in _HELD


def _some_order(task: Task, nodes: Nodes) -> Column:
    """Scores that differ, so that the candidates are looked at; what they are plays no part."""
    return nodes.pick(np.arange(len(nodes.columns), dtype=np.float64))
