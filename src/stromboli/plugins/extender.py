"""The plugin `extender`: calls an HTTP server of the user (spec 04 11).

Requests have a subset of Volcano's fields, under the names that Volcano exports: identities, requests, allocations, and
the decoded parts of Kubernetes objects. Amounts are milli-CPU, bytes, and thousandths of every other resource. A status
is a power of two, as in Volcano.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct, field

from stromboli.api import card_names, go_scalars, names
from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore
from stromboli.engine.plugin import Plugin
from stromboli.engine.points import Vote
from stromboli.engine.session import Session
from stromboli.model.cluster import Change, Cluster, Dirty
from stromboli.model.dimensions import CPU, MEMORY, Dimensions
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.requirements.placement_requirement import DEVICE_SHARING, NPU_CORES
from stromboli.model.requirements.pod_demands import shares_devices
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg
from stromboli.transport import CallFailed, shown_url

Json = dict[str, Any]

# -- requests as JSON


def resource(amounts: Mapping[int, float], dims: Dimensions) -> Json:
    scalars = {dims.names[dim]: amount for dim, amount in amounts.items() if dim > MEMORY}
    return {
        "MilliCPU": amounts.get(CPU, 0),
        "Memory": amounts.get(MEMORY, 0),
        "ScalarResources": scalars,
    }


def task_message(task: Task, dims: Dimensions) -> Json:
    request = resource(task.request, dims)
    return {
        "UID": task.uid,
        "Job": task.job.key if task.job is not None else "",
        "Name": task.name,
        "Namespace": task.namespace,
        "TaskRole": task.role,
        "Resreq": request,
        "InitResreq": request,
        "NodeName": task.node.name if task.node is not None else "",
        "Status": 1 << task.status,
        "Priority": task.priority,
        "Preemptable": task.preemptable,
        "BestEffort": task.best_effort,
        "RevocableZone": task.zone,
        "SchGated": bool(task.gates),
        "Pod": {
            "metadata": {
                "name": task.name,
                "namespace": task.namespace,
                "uid": task.uid,
                "labels": task.label_set.labels,
                "annotations": task.annotations,
            },
            "spec": task.shape.spec,
        },
    }


def node_message(node: Node, cluster: Cluster) -> Json:
    """A node with its amounts at this point of the cycle."""
    columns, dims = cluster.columns, cluster.dims
    held = {
        field: resource(dict(enumerate(block[:, node.row].tolist())) if node.row >= 0 else {}, dims)
        for field, block in (
            ("Idle", columns.idle),
            ("Used", columns.used),
            ("Releasing", columns.releasing),
            ("Pipelined", columns.pipelined),
            ("Allocatable", columns.allocatable),
        )
    }
    return {"Name": node.name, "Node": node.object, **held}


def job_message(job: Job, dims: Dimensions) -> Json:
    return {
        "UID": job.key,
        "Name": job.name,
        "Namespace": job.namespace,
        "Queue": job.queue.name if job.queue is not None else "",
        "Priority": job.priority,
        "MinAvailable": job.minimum,
        "TaskMinAvailable": job.role_minimums,
        "Allocated": resource(job.allocated, dims),
        "TotalRequest": resource(job.total, dims),
        "Tasks": {task.uid: task_message(task, dims) for task in job.tasks.values()},
        "PodGroup": job.group,
    }


def queue_message(queue: Queue) -> Json:
    return {"UID": queue.name, "Name": queue.name, "Weight": queue.weight, "Queue": queue.object}


def session_message(cluster: Cluster, jobs: Iterable[Job]) -> Json:
    """The cluster at the opening of a session."""
    nodes = {node.name: node_message(node, cluster) for node in cluster.columns.nodes}
    revocable = {node.name for node in cluster.columns.nodes if names.REVOCABLE_ZONE in node.labels}
    return {
        "Jobs": {job.key: job_message(job, cluster.dims) for job in jobs},
        "Nodes": nodes,
        "Queues": {queue.name: queue_message(queue) for queue in cluster.queues.values() if queue.exists},
        "NamespaceInfo": {name: {"Name": name} for name in cluster.objects.namespaces},
        "RevocableNodes": {name: nodes[name] for name in revocable},
        "NodeList": list(nodes),
    }


# -- responses as JSON


class Predicate(Struct):
    """Why a node cannot accept a task (empty: it can), and a code: 2 if evictions could help."""

    status: str = ""
    code: int = 0


class Prioritize(Struct, rename="camel"):
    node_score: dict[str, float] | None = None
    error_message: str = ""


class Victim(Struct):
    uid: str = field(name="UID")


class Victims(Struct):
    status: int = 0
    victims: list[Victim] | None = None


class VoteResponse(Struct):
    """1 for, -1 against, 0 no vote."""

    status: int = 0


class Overused(Struct):
    overused: bool = False


class Ready(Struct):
    status: bool = False


class Accepted(Struct, rename="camel"):
    """Whether a move is refused, and why."""

    error_message: str = ""


# -- the plugin


log = logging.getLogger(__name__)

T = TypeVar("T")
CURABLE = 2
"""The code of a refusal that evictions could resolve."""
MAX_LENGTH = 500
"""Maximum characters of a reason in messages."""
_HELD = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING, Status.BOUND, Status.RUNNING)


@dataclass(frozen=True, slots=True)
class ExtenderArguments:
    """The address of the server, the path of each request below it, and whether failures are ignored."""

    url: str = arg("extender.urlPrefix", "", "URL of the server.")
    timeout: str = arg("extender.httpTimeout", "1s", "Timeout of a call; an invalid duration counts as 1s.")
    ignorable: bool = arg("extender.ignorable", False, "Whether failed calls are ignored.")
    managed: tuple[str, ...] = arg(
        "extender.managedResources",
        (),
        "Only tasks with a container that requests one of these resources are sent.",
    )
    open: str = arg("extender.onSessionOpenVerb", "", "Receives the whole cluster when a cycle starts.")
    close: str = arg("extender.onSessionCloseVerb", "", "Called when a cycle ends.")
    predicate: str = arg("extender.predicateVerb", "", "Filters a node for a task.")
    prioritize: str = arg("extender.prioritizeVerb", "", "Scores nodes for a task.")
    preemptable: str = arg("extender.preemptableVerb", "", "Selects victims within a queue.")
    reclaimable: str = arg("extender.reclaimableVerb", "", "Selects victims for another queue.")
    overused: str = arg("extender.queueOverusedVerb", "", "Whether a queue has used up its share.")
    enqueueable: str = arg("extender.jobEnqueueableVerb", "", "Whether a pending job may be admitted.")
    enqueued: str = arg("extender.jobEnqueuedVerb", "", "Called when a job was admitted.")
    ready: str = arg("extender.jobReadyVerb", "", "Whether a job may start with its allocated tasks.")
    allocate: str = arg(
        "extender.allocateFuncVerb", "", "Called when a task is assigned to a node; may refuse."
    )
    deallocate: str = arg("extender.deallocateFuncVerb", "", "Called when a task loses its node; may refuse.")


class Extender(Plugin):
    """Calls your HTTP server, whose validated responses count like those of a plugin."""

    name = "extender"
    Arguments = ExtenderArguments
    arguments: ExtenderArguments

    def __init__(self, arguments: ExtenderArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        seconds = go_scalars.duration(arguments.timeout)
        self._client = ExtenderClient(arguments.url, seconds if seconds is not None and seconds > 0 else 1.0)
        self._reachable = False
        self._cached: tuple[Any, list[Predicate]] | None = None
        if arguments.predicate and any(map(shares_devices, arguments.managed)):
            self.honours |= {DEVICE_SHARING.name}
        if arguments.predicate and card_names.NPU_CORE in arguments.managed:
            self.honours |= {NPU_CORES.name}

    # -- session

    def opening(self, session: Session, dirty: Dirty) -> None:
        """Without the response to the opening call a server that is not ignorable is not called in this cycle."""
        self._cached = None
        post = session.services.get("post")
        self._reachable = post is not None
        if post is None:
            log.info("extender: the server is not called: this process makes no calls, as in a rehearsal")
            return
        self._client.begin(post, session.services["clock"])
        if self.arguments.open:
            message = session_message(session.cluster, session.jobs())
            self._reachable = self._notify(self.arguments.open, message) or self.arguments.ignorable

    def closing(self, session: Session) -> None:
        if self.arguments.close and "post" in session.services:
            self._notify(self.arguments.close, {})

    def _notify(self, verb: str, message: Any) -> bool:
        try:
            self._client.notify(verb, message)
        except ExtenderFailed:
            return False
        return True

    def _call(self, verb: str, request: Any, kind: type[T]) -> T | None:
        """The response; None if the call failed, which the client has logged."""
        try:
            return self._client.call(verb, request, kind)
        except ExtenderFailed:
            return None

    def _is_interested(self, task: Task) -> bool:
        managed, spec = self.arguments.managed, task.shape.spec
        return self._reachable and (
            not managed
            or any(
                name in container.resources.requests or name in container.resources.limits
                for container in (*spec.containers, *spec.init_containers)
                for name in managed
            )
        )

    # -- nodes

    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        if self.arguments.predicate:
            yield NodeFilter(self._checks, plugin=self.name, reads="external")

    def _checks(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        if not self._is_interested(task):
            return
        reasons: dict[tuple[str, bool], int] = {("", False): 0}
        codes = np.array(
            [
                reasons.setdefault(_reason(response), len(reasons))
                for response in self._responses(task, nodes)
            ],
            dtype=np.int64,
        )
        for (reason, curable), code in reasons.items():
            if code:
                yield Check(codes != code, reason[:MAX_LENGTH], curable)

    def _responses(self, task: Task, nodes: Nodes) -> list[Predicate]:
        """The response for each node; cached, as the reasons for refusing all nodes are the same request again."""
        key = (task, nodes.columns.clock, len(nodes))
        if self._cached is None or self._cached[0] != key:
            rows = nodes.each(lambda node: node.row).tolist()
            message = task_message(task, self.session.cluster.dims)
            responses = [self._predicate(message, nodes.columns.nodes[row]) for row in rows]
            self._cached = (key, responses)
        return self._cached[1]

    def _predicate(self, task: Json, node: Node) -> Predicate:
        request = {"task": task, "node": node_message(node, self.session.cluster)}
        try:
            return self._client.call(self.arguments.predicate, request, Predicate)
        except ExtenderFailed as error:
            return Predicate("" if self.arguments.ignorable else str(error))

    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        if self.arguments.prioritize:
            yield NodeScore(
                _distinct_scores, plugin=self.name, reads="external", finish=self._prioritise, batch=True
            )

    def _prioritise(self, task: Task, nodes: Nodes, raw: Column, candidates: Column) -> Column:
        """The server scores all candidates at once, if there is a choice; failing ends the search unless ignorable."""
        scores = np.zeros(len(raw))
        rows = {nodes.columns.nodes[row].name: row for row in np.flatnonzero(candidates).tolist()}
        if len(rows) < 2 or not self._is_interested(task):
            return scores
        cluster = self.session.cluster
        listed = [node_message(cluster.nodes[name], cluster) for name in rows]
        request = {"task": task_message(task, cluster.dims), "nodes": listed}
        try:
            response = self._client.call(self.arguments.prioritize, request, Prioritize)
        except ExtenderFailed:
            if self.arguments.ignorable:
                return scores
            raise
        if response.error_message or response.node_score is None:
            raise ExtenderFailed(
                f"{self.arguments.prioritize}: {response.error_message[:MAX_LENGTH] or 'no scores'}"
            )
        for name in rows.keys() & response.node_score.keys():
            scores[rows[name]] = response.node_score[name]
        return scores

    # -- victims

    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims(self.arguments.preemptable, task, candidates)

    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims(self.arguments.reclaimable, task, candidates)

    def _victims(self, verb: str, task: Task, candidates: list[Task]) -> list[Task] | None:
        """# quirk: spec 04 11: without a response there are no victims, ignorable or not."""
        if not verb or not self._is_interested(task):
            return None
        dims = self.session.cluster.dims
        request = {
            "evictor": task_message(task, dims),
            "evictees": [task_message(candidate, dims) for candidate in candidates],
        }
        response = self._call(verb, request, Victims)
        if response is None:
            return []
        uids = {victim.uid for victim in response.victims or ()}
        return [candidate for candidate in candidates if candidate.uid in uids] if response.status else None

    # -- jobs and queues

    def job_enqueueable(self, job: Job) -> Vote:
        if not self.arguments.enqueueable or not self._reachable:
            return Vote.ABSTAIN
        response = self._call(self.arguments.enqueueable, self._job_request(job), VoteResponse)
        if response is None:
            return Vote.PERMIT if self.arguments.ignorable else Vote.REJECT
        return Vote((response.status > 0) - (response.status < 0))

    def job_enqueued(self, job: Job) -> None:
        if self.arguments.enqueued and self._reachable:
            self._notify(self.arguments.enqueued, self._job_request(job))

    def job_ready(self, job: Job) -> bool:
        if not self.arguments.ready or not self._reachable:
            return True
        response = self._call(self.arguments.ready, self._job_request(job), Ready)
        # quirk: spec 04 11: a failure makes jobs ready unless ignorable
        return not self.arguments.ignorable if response is None else response.status

    def overused(self, queue: Queue) -> bool:
        if not self.arguments.overused or not self._reachable:
            return False
        response = self._call(
            self.arguments.overused,
            {"queue": queue_message(queue)},
            Overused,
        )
        return not self.arguments.ignorable if response is None else response.overused

    def _job_request(self, job: Job) -> Json:
        return {"job": job_message(job, self.session.cluster.dims)}

    # -- moves

    def on_move(self, change: Change) -> str | None:
        """Report allocations and deallocations; the server may refuse a move, but not the undo of one."""
        before, now = _held(change.old_status, change.old_node), _held(change.status, change.node)
        verb = self.arguments.allocate if now else self.arguments.deallocate
        if before == now or not verb or not self._is_interested(change.task):
            return None
        request = {"task": task_message(change.task, self.session.cluster.dims)}
        try:
            problem = self._client.call(verb, request, Accepted).error_message[:MAX_LENGTH]
        except ExtenderFailed as error:
            problem = "" if self.arguments.ignorable else str(error)
        return problem if problem and not change.undo else None


def _reason(response: Predicate) -> tuple[str, bool]:
    return (response.status, response.code == CURABLE) if response.status else ("", False)


def _held(status: Status, node: Node | None) -> bool:
    return node is not None and status in _HELD


def _distinct_scores(task: Task, nodes: Nodes) -> Column:
    """Scores that differ, so that `finish` is called for the candidates; their values do not matter."""
    return nodes.pick(np.arange(len(nodes.columns), dtype=np.float64))


# -- the HTTP client of an extender: bounded calls, and no more in a cycle in which it fails or is slow


Post = Callable[[str, bytes, float], bytes]
"""Posts JSON to a URL within some seconds; raises `CallFailed` without a response."""
MAX_FAILURES = 3
"""Failed calls in a row after which no more calls are made in this cycle."""
BUDGET = 30.0
"""Seconds that the calls of one cycle may take together."""
_encoder = msgspec.json.Encoder()


class ExtenderFailed(Exception):
    """The extender gave no valid response; the text is the reason."""


class ExtenderClient:
    """Calls one server, through the `post` and the clock of the session's services."""

    def __init__(self, prefix: str, timeout: float):
        self._prefix = prefix.rstrip("/")
        self._timeout = timeout

    def begin(self, post: Post, clock: Callable[[], float]) -> None:
        """Start a cycle: earlier failures do not count."""
        self._post, self._clock = post, clock
        self._failures = 0
        self._left = BUDGET

    def call(self, verb: str, request: Any, kind: type[T]) -> T:
        """Send a request and decode the response; raises `ExtenderFailed` without one of this type."""
        body = self._send(verb, request)
        try:
            response = msgspec.json.decode(body, type=kind)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._failed(f"{verb}: not an answer: {error}"[:300]) from None
        self._failures = 0
        return response

    def notify(self, verb: str, message: Any) -> None:
        """Send a request whose response does not matter."""
        self._send(verb, message)
        self._failures = 0

    def _send(self, verb: str, request: Any) -> bytes:
        url = f"{self._prefix}/{verb}"
        if self._failures >= MAX_FAILURES or self._left <= 0:
            raise ExtenderFailed(
                f"{shown_url(self._prefix)} is not called again in this cycle: it failed or was too slow"
            )
        begin = self._clock()
        try:
            return self._post(url, _encoder.encode(request), min(self._timeout, self._left))
        except CallFailed as error:
            text = f"failed {verb} with extender at URL {shown_url(url)}, code {error.status}"
            raise self._failed(text if error.status else str(error)) from None
        finally:
            self._left -= self._clock() - begin

    def _failed(self, problem: str) -> ExtenderFailed:
        self._failures += 1
        log.warning("extender: %s", problem)
        return ExtenderFailed(problem)
