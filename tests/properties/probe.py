"""What all rules say about a cluster, and what the model counts, in plain values: two models can be compared.

A probe decides nothing. It asks each plugin alone and all of them together about every job, queue, task, node and
HyperNode, and it places all tasks in a rehearsal, with the questions asked again meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import GeneratorType
from typing import Any, cast

import numpy as np

from stromboli.api.types.meta import Object
from stromboli.engine.catalog import action
from stromboli.engine.cycle import Engine
from stromboli.engine.placement.node_functions import Nodes, checked, finished, passes, scored
from stromboli.engine.placement.node_placement import Place
from stromboli.engine.plugin import POINTS, Eviction, Plugin, QueueLimit
from stromboli.engine.points import Choice
from stromboli.engine.session import Session
from stromboli.model.job import Job, SubJob
from stromboli.model.node_columns import Node
from stromboli.model.queue import Queue
from stromboli.model.remedy import Remedy
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain
from stromboli.policy.policy import load_policy
from stromboli.scheduler.mirror.node_shards import NodeShards
from stromboli.testing.policy_text import catalog_with
from tests.properties.feed_worlds import Follower, Setting
from tests.properties.held_grants import ledger_sums
from tests.properties.living import LivingWorld
from tests.properties.rebuild import kept_sums

Record = dict[str, Any]
SHARD = "volcano"
REHEARSED = "rehearsed"
OF_JOBS = (
    *("job_order", "job_valid", "job_ready", "job_pipelined", "job_starving", "job_enqueueable"),
    *("held_back", "promised", "admitted_early", "may_reclaim_for", "backfill_beneficiary"),
)
OF_QUEUES = ("queue_order", "overused", "queue_limits")
OF_TASKS = ("task_order", "prefilter")
OF_SUB_JOBS = ("sub_job_order", "sub_job_ready", "sub_job_pipelined")


class ProbedWorld(LivingWorld):
    """A living world whose cycles decide nothing: they record what would be decided, and take it back."""

    def __init__(self, objects: Iterable[Object], setting: Setting):
        self.record: Record = {}
        """What the last cycle that ran came to."""
        catalog = catalog_with((Follower,), (action("probe")(self._probe),))
        super().__init__(objects, lambda: Engine(load_policy(setting.policy, catalog), catalog))
        self._rehearses = True
        self._shards = NodeShards(SHARD, setting.strict_shard)

    def probe(self) -> Record:
        """Run a cycle unless it could only repeat the last one; what it came to, and what the model says after it."""
        self._rehearses = True
        return self._cycle()

    def catch_up(self) -> None:
        """Run cycles without a rehearsal: no cache is behind the model, and the next has nothing to decide."""
        self._rehearses = False
        for _ in range(2):
            self._cycle()

    def _cycle(self) -> Record:
        self._shards.refresh(self.intake.cluster)
        outcome = self.cycle()
        assert outcome.lost is None, outcome.lost
        return {**self.record, **dict(_of_model(self))}

    def _probe(self, session: Session) -> None:
        self.record = dict(_Probe(session).answers(self._rehearses))


class _Probe:
    """The questions of one session."""

    def __init__(self, session: Session):
        self.session = session
        self.cluster = session.cluster
        self.jobs = sorted(session.jobs(), key=lambda job: job.key)
        self.queues = sorted(session.cluster.queues.values(), key=lambda queue: queue.name)
        self.waiting = _waiting(session)
        self.running = sorted(
            (task for task in session.cluster.tasks.values() if task.status is Status.RUNNING), key=_key_of
        )
        self._methods: dict[str, list[Callable[..., Any]]] = {}

    def answers(self, with_trial: bool) -> Iterator[tuple[str, Any]]:
        for part in (
            *(self._of_queues, self._of_jobs, self._of_sub_jobs, self._of_tasks, self._of_victims),
            self._of_nodes,
        ):
            yield from part()
        if with_trial:
            yield REHEARSED, True
            yield from self._of_trial()

    def _alone(self, point: str, *items: Any) -> Iterator[tuple[str, Any]]:
        """What each plugin that takes part in a point answers."""
        methods = self._methods.get(point)
        if methods is None:
            tiers = self.session.rules.methods_by_tier(point)
            methods = self._methods[point] = [method for _, tier in tiers for method in tier]
        for method in methods:
            answer = method(*items)
            if point == "queue_limits":
                answer = [self._by_resource(limit) for limit in answer]
            yield cast(Plugin, cast(Any, method).__self__).name, plain(answer)

    def _by_resource(self, limit: QueueLimit) -> tuple[object, ...]:
        """A limit with the names of resources: their numbers, and those that nothing names, differ between models."""
        most, held, raised_to = (
            self.cluster.dims.named({dim: amount for dim, amount in (amounts or {}).items() if amount})
            for amounts in (limit.most, limit.held, limit.raised_to)
        )
        return (limit.queue, limit.code, most, held, raised_to, limit.remedy)

    def _ask(self, points: Sequence[str], what: str, *items: Any) -> Iterator[tuple[str, Any]]:
        for point in points:
            for plugin, answer in self._alone(point, *items):
                yield f"{plugin}.{point} {what}", answer

    # -- queues and jobs

    def _of_queues(self) -> Iterator[tuple[str, Any]]:
        order = sorted(self.queues, key=self.session.queue_key)
        yield "queues in order", [queue.name for queue in order]
        for queue in self.queues:
            yield from self._ask(OF_QUEUES, f"queue {queue.name}", queue)

    def _of_jobs(self) -> Iterator[tuple[str, Any]]:
        session, rules = self.session, self.session.rules
        yield "jobs in order", [job.key for job in sorted(self.jobs, key=session.job_key)]
        for job in self.jobs:
            yield from self._ask(OF_JOBS, f"job {job.key}", job)
            yield (
                f"job {job.key}",
                plain(
                    (
                        *(rules.job_valid(job), rules.job_ready(job), rules.job_pipelined(job)),
                        *(rules.job_enqueueable(job), rules.tasks_needed(job), session.needs.least(job)),
                        job.queue,
                    )
                ),
            )
            yield f"unmet of {job.key}", str(session.requirements.unmet(job) is None)

    def _of_sub_jobs(self) -> Iterator[tuple[str, Any]]:
        """Also which HyperNodes they may use, and how good these are."""
        session, top = self.session, self.cluster.hyper_nodes.top
        for job in self.jobs:
            for sub_job in sorted(job.sub_jobs.values(), key=lambda sub_job: sub_job.id):
                what = f"sub-group {sub_job.id} of {job.key}"
                if job.policies:
                    yield from self._ask(OF_SUB_JOBS, what, sub_job)
                groups = session.topology.gradients(sub_job, top, "allocate")
                yield f"gradients of {what}", plain(groups)
                domains = [domain for group in groups for domain in group]
                yield f"scores of {what}", plain(session.topology.domain_scores(sub_job, domains))

    # -- tasks

    def _of_tasks(self) -> Iterator[tuple[str, Any]]:
        """Where each task that waits fits now and later, how good each node is, and why it fits on no other."""
        for task in self.waiting:
            yield from self._ask(OF_TASKS, f"task {task.key}", task)
            if task.job is not None and task.job.queue is not None:
                queue = task.job.queue
                yield from self._ask(("allocatable",), f"{queue.name} for {task.key}", queue, task)
                yield from self._ask(("preemptive",), f"{queue.name} for {task.key}", queue, [task])
            yield from self._of_filters(task)
            yield from self._of_places(task)
            for node in self.cluster.columns.nodes:
                yield from self._of_grants(task, node)

    def _of_filters(self, task: Task) -> Iterator[tuple[str, Any]]:
        """What each filter and each score says of all nodes, apart from what the engine remembers of them."""
        nodes, rules = Nodes(self.cluster.columns), self.session.rules
        for number, filter in enumerate(rules.node_filters(task)):
            failing = [
                (check.reason, check.curable, plain(check.passes), plain(check.now))
                for check in checked(filter, task, nodes)
                if not check.passes.all() or (check.now is not None and not check.now.all())
            ]
            yield f"filter {number} of {filter.plugin} for {task.key}", sorted(failing, key=str)
        passing = nodes.all()
        for filter in rules.node_filters(task):
            passing &= passes(filter, task, nodes).later
        for number, score in enumerate(rules.node_scores(task)):
            raw = scored(score, task, nodes)
            final = finished(score, task, nodes, raw, passing) if score.finish and passing.any() else raw
            yield f"score {number} of {score.plugin} for {task.key}", (plain(raw), plain(final))

    def _of_places(self, task: Task) -> Iterator[tuple[str, Any]]:
        session, nodes = self.session, self.cluster.columns.nodes
        refused = session.refused(task)
        yield f"refused {task.key}", refused.text if refused is not None else ""
        evaluation = session.evaluation(task)
        own = self.cluster.reservations.own_reservation(task)
        for now in (True, False):
            scores = evaluation.group(task, now, None, own)
            yield (
                f"nodes of {task.key}, {now=}",
                {nodes[row].name: float(score) for row, score in scores.items()},
            )
        verdict = evaluation.verdict(task, None, own)
        reasons = sorted((reason.text, reason.nodes, reason.curable) for reason in verdict.reasons)
        yield f"verdict on {task.key}", (verdict.nodes, reasons)
        yield f"reach of {task.key}", [nodes[row].name for row in np.flatnonzero(session.reachable(task))]

    def _of_grants(self, task: Task, node: Node) -> Iterator[tuple[str, Any]]:
        evaluation = self.session.evaluation(task)
        if self.cluster.ledgers_of(task.shape) and evaluation.reachable(task)[node.row]:
            yield f"grants of {task.key} on {node.name}", plain(self.session.rules.grants(task, node, True))

    # -- victims

    def _of_victims(self) -> Iterator[tuple[str, Any]]:
        rules, running = self.session.rules, self.running
        jobs = dict.fromkeys(task.job for task in self.waiting if task.job is not None)
        for task in {task.job: task for task in self.waiting}.values():
            for point in ("preemptable", "reclaimable"):
                yield from self._ask((point,), f"for {task.key}", task, running)
                choice = getattr(rules, point)(task, running)
                yield f"{point} for {task.key}", plain(choice)
            yield from self._ask(("backfill_victim",), f"for {task.key}", task, running[0])
        for job in jobs:
            for kind in ("preempt", "consolidate"):
                yield from self._ask(
                    ("unified_evictable",), f"to {kind} for {job.key}", Eviction(kind, job), running
                )
        yield from self._ask(("victim_limits",), "", running)

    # -- nodes, and what happens when tasks are placed

    def _of_nodes(self) -> Iterator[tuple[str, Any]]:
        cluster = self.cluster
        for what, sums in kept_sums(cluster).items():
            for name, amounts in sums.items() if what in ("nodes", "jobs", "queues", "spare") else ():
                yield f"sums of {what}: {name}", plain(amounts)
        yield "backlog", sorted(job.key for job in cluster.backlog)
        yield "ledgers", plain(ledger_sums(cluster))
        total = cluster.dims.named({dim: int(amount) for dim, amount in cluster.total.items()})
        yield "total", plain(total)
        for node in cluster.columns.nodes:
            seen = cluster.devices.pools.pools_of(node)
            yield f"pools of {node.name}", [str(pool.id) for pool in seen]

    def _of_trial(self) -> Iterator[tuple[str, Any]]:
        """Where tasks would go one after the other, and with which grants, and what is said of the last state."""
        session = self.session
        with session.rehearsal() as trial:
            for victim in self.running[::3]:
                yield f"evicting {victim.key}", str(trial.evict(victim, "probe"))
            for task in self.waiting:
                place = session.place(task)
                if isinstance(place, Place):
                    refused = (trial.allocate if place.now else trial.pipeline)(task, place.node)
                    yield (
                        f"place of {task.key}",
                        (place.node.name, place.now, str(refused), plain(task.grants)),
                    )
            for task in self.waiting[::3]:
                for key, answer in self._of_filters(task):
                    yield f"after the trial: {key}", answer
                for key, answer in self._of_places(task):
                    yield f"after the trial: {key}", answer
            yield "ledgers after the trial", plain(ledger_sums(self.cluster))
            for queue in self.queues:
                yield from self._ask(("overused", "queue_limits"), f"{queue.name} after the trial", queue)


def differences(live: Record, made: Record) -> Record:
    """What differs; a cycle that repeats one without a rehearsal is compared in what that one was asked."""
    keys = {**live, **made} if REHEARSED in live else live
    return {key: (live.get(key), made.get(key)) for key in keys if live.get(key) != made.get(key)}


def _of_model(world: ProbedWorld) -> Iterator[tuple[str, Any]]:
    """What the model says once the cycle has closed, whether it ran or not."""
    cluster = world.intake.cluster
    for queue in cluster.queues.values():
        yield f"reported of {queue.name}", dict(queue.reported or {})
    for job in cluster.jobs.values():
        yield (
            f"state of {job.key}",
            (job.priority, job.created),
        )  # its phase follows decisions, which are not written


def _waiting(session: Session) -> list[Task]:
    """The tasks that wait, of each job one of a shape."""
    tasks = (task for task in session.cluster.tasks.values() if task.status is Status.PENDING and task.job)
    alike = {(task.job, task.shape): task for task in sorted(tasks, key=_key_of, reverse=True)}
    return sorted(alike.values(), key=_key_of)


def _key_of(task: Task) -> str:
    return task.key


def plain(value: Any) -> Any:
    """An answer of a rule with the names of what belongs to a model, so that answers about two models are equal."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Task | Job):
        return value.key
    if isinstance(value, SubJob):
        return value.id
    if isinstance(value, Queue | Node | Domain):
        return value.name
    if isinstance(value, Remedy):
        return None  # a text for users, made when it is read
    if isinstance(value, Choice):
        return plain((value.victims, value.by))
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(plain, value)))
    if isinstance(value, tuple | list | GeneratorType):
        return [plain(each) for each in value]
    fields = getattr(value, "__dataclass_fields__", None) or getattr(value, "__struct_fields__", None)
    if fields is not None:
        return [type(value).__name__, *(plain(getattr(value, name)) for name in fields)]
    return type(value).__name__  # a key of `cmp_to_key`: the order is compared instead


assert set(OF_JOBS + OF_QUEUES + OF_TASKS + OF_SUB_JOBS) <= POINTS.keys()
