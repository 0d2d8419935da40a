"""Each extension point as one function: the combined answer of all plugins that take part."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.engine.attribution import Method, raise_attributed
from stromboli.engine.placement.node_functions import NodeFilter, NodeScore, Refusal
from stromboli.engine.plugin import (
    POINTS,
    Attempt,
    Bound,
    Eviction,
    HeldBack,
    Invalid,
    Key,
    Plugin,
    Promise,
    QueueLimit,
)
from stromboli.engine.points import (
    ALL_TIERS,
    Choice,
    Point,
    answers,
    any_depends,
    attributed,
    vote,
)
from stromboli.model.amounts import Vector
from stromboli.model.cards.node_cards import NodeCards
from stromboli.model.job import Job, SubJob
from stromboli.model.ledgers import Grant
from stromboli.model.node_columns import Ints, Node
from stromboli.model.queue import Queue
from stromboli.model.task import Task
from stromboli.model.topology.domain import Domain

if TYPE_CHECKING:
    from stromboli.engine.waiting.ordered_waits import WaitingColumns

VICTIM_POINTS = ("preemptable", "reclaimable", "unified_evictable")


class Rules:
    """Every extension point as one function, resolved once from plugins in their tiers."""

    queue_order: Callable[[Queue], tuple[Key, ...]]
    job_order: Callable[[Job], tuple[Key, ...]]
    task_order: Callable[[Task], tuple[Key, ...]]
    sub_job_order: Callable[[SubJob], tuple[Key, ...]]
    victim_queue_order: Callable[[Queue, Queue, Queue], int]
    job_valid: Callable[[Job], Invalid | None]
    job_ready: Callable[[Job], bool]
    job_pipelined: Callable[[Job], bool]
    sub_job_ready: Callable[[SubJob], bool]
    sub_job_pipelined: Callable[[SubJob], bool]
    job_starving: Callable[[Job], bool]
    held_back: Callable[[Job], HeldBack | None]
    no_room: Callable[[Job, Attempt], None]
    promised: Callable[[Job], Promise | None]
    reserved_places: Callable[[Job], Mapping[Task, Node] | None]
    job_enqueueable: Callable[[Job], bool]
    job_enqueued: Callable[[Job], None]
    admitted_early: Callable[[Job], bool]
    overused: Callable[[Queue], bool]
    allocatable: Callable[[Queue, Task], bool]
    queue_limits: Callable[[Queue], list[QueueLimit]]
    preemptive: Callable[[Queue, Sequence[Task]], bool]
    may_reclaim_for: Callable[[Job], bool]
    brings_closer_to_shares: Callable[[Queue, Vector, Mapping[Queue, Vector]], bool]
    preemptable: Callable[[Task, list[Task]], Choice]
    reclaimable: Callable[[Task, list[Task]], Choice]
    unified_evictable: Callable[[Eviction, list[Task]], Choice]
    victim_tasks: Callable[[Sequence[Task]], dict[Task, str]]
    victim_limits: Callable[[list[Task]], list[Task]]
    backfill_victim: Callable[[Task, Task], bool]
    backfill_beneficiary: Callable[[Job], bool]
    shape_key: Callable[[Task], tuple[Any, ...]]
    prefilter: Callable[[Task], Refusal | None]
    node_filters: Callable[[Task], list[NodeFilter]]
    node_scores: Callable[[Task], list[NodeScore]]
    best_node: Callable[[Task, dict[str, float]], str | None]
    grants: Callable[[Task, Node, bool], list[Grant | Refusal]]
    card_order: Callable[[Task, Node, NodeCards], Sequence[int] | None]
    hyper_node_scores: Callable[[SubJob, Sequence[Domain]], dict[str, float]]
    hyper_node_gradients: Callable[[Job | SubJob, Domain, str], list[list[Domain]] | None]

    def __init__(self, tiers: Sequence[Sequence[Plugin]], disabled: Iterable[tuple[str, str]] = ()):
        self._disabled = frozenset(disabled)
        self._tiers = [list(tier) for tier in tiers]
        self.plugins = [plugin for tier in tiers for plugin in tier]
        self.honoured = frozenset[str]().union(*(plugin.honours for plugin in self.plugins))
        """Requirements of pods, PodGroups and queues that some plugin honours."""
        self.ignores_node_labels = any(plugin.ignores_node_labels for plugin in self.plugins)
        self.keeps_off_barred_nodes = any(plugin.keeps_off_barred_nodes for plugin in self.plugins)
        self.keeps_pods_apart = any(plugin.keeps_pods_apart for plugin in self.plugins)
        points = dict(POINTS)
        for plugin in self.plugins:
            points.update(own_points(type(plugin)))
        methods = {name: self._methods(point) for name, point in points.items()}
        self._asked: dict[str, Method] = {
            name: point.combine(
                methods[name]
                if name in POINTS
                else [[attributed(method) for method in tier] for tier in methods[name]]
            )
            for name, point in points.items()
        }
        self.enqueueable_if_capacity_is_free: Callable[[Job], bool] = vote(
            [
                [plugin.job_enqueueable for plugin in tier if not plugin.guards_room]
                for tier in self._plugins_at(POINTS["job_enqueueable"])
            ]
        )
        """As job_enqueueable, without plugins that refuse jobs only because the cluster is full."""
        self.enqueueable_beside_limits: Callable[[Job], bool] = vote(
            [
                [
                    plugin.job_enqueueable
                    for plugin in tier
                    if not plugin.guards_room and not self._takes_part(plugin, POINTS["queue_limits"])
                ]
                for tier in self._plugins_at(POINTS["job_enqueueable"])
            ]
        )
        """As job_enqueueable, without the plugins that compare what the cluster or a queue holds with a limit."""
        self._answered = {name for name, tiers in methods.items() if any(tiers)}
        for name in POINTS:
            setattr(self, name, self._asked[name])
        self._voters = {point: self._plugins_at(POINTS[point]) for point in VICTIM_POINTS}
        self._counting = (
            self._counting_plugins("job_ready", "job_pipelined"),
            self._counting_plugins("sub_job_ready", "sub_job_pipelined"),
        )
        ordering = [plugin for tier in self._plugins_at(POINTS["job_order"]) for plugin in tier]
        self.orders_jobs_by_priority = any(plugin.orders_jobs_by_priority for plugin in ordering)
        self._limiting = [plugin for tier in self._plugins_at(POINTS["allocatable"]) for plugin in tier]
        self.limits_queues = any(plugin.limits_queues for plugin in self._limiting)
        self.limits_queue_trees = any(plugin.limits_queue_trees for plugin in self._limiting)
        self._ordering = [plugin for tier in self._plugins_at(POINTS["no_room"]) for plugin in tier]
        self.queue_order_follows_all = self._follows("queue_order", "everything")
        self.queue_order_follows_branch = self._follows("queue_order", "branch")
        self.job_order_follows_all = self._follows("job_order", "everything")

    def ask(self, point: str, *items: Any) -> Any:
        """Call a point by name, for points that custom plugins declare."""
        if point not in self._asked:
            raise LookupError(f"no plugin in the policy declares the extension point {point!r}")
        return self._asked[point](*items)

    def has(self, point: str) -> bool:
        """Whether any plugin takes part in a point."""
        return point in self._answered

    def votes(
        self, point: str, beneficiary: Any, candidates: list[Task]
    ) -> list[tuple[Plugin, list[Task] | None]]:
        """The vote of each plugin of the first tier that votes at a victim point."""
        plugins = next(iter(self._voters[point]), [])
        methods = [getattr(plugin, point) for plugin in plugins]
        return list(zip(plugins, answers(methods, (beneficiary, candidates)), strict=True))

    def agreed_by_all(self, point: str, beneficiary: Any, candidates: list[Task]) -> Choice:
        """The candidates that all plugins allow that vote at a victim point, in all tiers."""
        chosen, voters = candidates, []
        for plugins in self._voters[point]:
            methods = [getattr(plugin, point) for plugin in plugins]
            for plugin, answer in zip(plugins, answers(methods, (beneficiary, candidates)), strict=True):
                if answer is not None:
                    named = set(answer)
                    chosen = [task for task in chosen if task in named]
                    voters.append(plugin.name)
        return Choice(chosen, ALL_TIERS, tuple(voters))

    def methods_by_tier(self, point: str) -> list[tuple[int, list[Method]]]:
        """The methods of a point by tier, with the number of the tier."""
        return list(enumerate(self._methods(POINTS[point]), 1))

    def first_tier(self, point: str) -> int:
        """The number of the first tier with a plugin that votes at a point."""
        return next((number for number, tier in self.methods_by_tier(point) if tier), 0)

    def bound(
        self,
        point: str,
        task: Task,
        first_tier_spares: bool = False,
        of_jobs: bool = False,
        first_tier_only: bool = False,
    ) -> Bound:
        """Which jobs could have a victim for this task, by the tiers that vote at a point.

        The key has all that votes may read of the task or, with `of_jobs`, what `may` reads of it. With
        `first_tier_spares`, a job that the first tier rules out has no victim, unless only plugins rule it out that
        count what a gang can spare. With `first_tier_only`, later tiers are not asked.
        """
        keys: list[Hashable] = []
        tiers: list[list[tuple[Plugin, Bound]]] = []
        unknown = task.job.id if task.job and not of_jobs else None
        for plugins in self._voters[point][: 1 if first_tier_only else None]:
            bounds = []
            try:
                for plugin in plugins:
                    bound = plugin.victim_bound(point, task)
                    keys.append(bound.key if bound else unknown)
                    if bound:
                        bounds.append((plugin, bound))
            except BaseException as error:
                raise_attributed(error, plugin.name, "victim_bound")
            tiers.append(bounds)
        always = (
            [entry for entry in tiers[0] if not entry[0].counts_gangs] if first_tier_spares and tiers else []
        )
        return Bound(
            tuple(keys),
            lambda job: _all_may(always, job) and any(_all_may(bounds, job) for bounds in tiers),
            lambda queue: [_read_of(queue, *entry) for bounds in tiers for entry in bounds],
        )

    def may_allocate(self, queue: Queue, task: Task, count: int) -> bool:
        """Whether the limits of a queue allow it so many tasks like this one, if it loses none."""
        return all(answers((plugin.may_allocate for plugin in self._limiting), (queue, task, count)))

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        """Which of the jobs that wait in order could start before others, by slot; None: any could."""
        asked = answers((plugin.may_overtake for plugin in self._ordering), (waiting,))
        known: list[Ints] = [slots for slots in asked if slots is not None]
        return reduce(np.intersect1d, known) if known else None

    def promised_before(self) -> list[Job]:
        """The jobs to which plugins promised a start in the last session, before all others."""
        asked = answers((plugin.promised_before for plugin in self._ordering), ())
        return [job for jobs in asked for job in jobs]

    def keeps_first_turn(self, job: Job) -> bool:
        """Whether such a job comes even before jobs of a higher priority in other queues."""
        return any(answers((plugin.keeps_first_turn for plugin in self._ordering), (job,)))

    def tasks_needed(self, unit: Job | SubJob) -> int:
        """How many more tasks of a job or a sub-group must be placed, at least, before it can start."""
        needed = 1
        for plugin in self._counting[isinstance(unit, SubJob) and bool(unit.job.policies)]:
            try:  # each attempt of a job asks this, and the generator of `answers` takes twice as long
                needed = max(needed, plugin.tasks_needed(unit))
            except BaseException as error:
                raise_attributed(error, plugin.name, "tasks_needed")
        return needed

    def _counting_plugins(self, ready: str, pipelined: str) -> list[Plugin]:
        """Plugins that must accept each start: they vote on ready jobs, and first on pipelined ones."""
        first_votes = next(iter(self._plugins_at(POINTS[pipelined])), [])
        return [plugin for plugin in first_votes if self._takes_part(plugin, POINTS[ready])]

    def _methods(self, point: Point) -> list[list[Method]]:
        return [
            [getattr(plugin, point.name) for plugin in tier if self._takes_part(plugin, point)]
            for tier in self._tiers
        ]

    def _plugins_at(self, point: Point) -> list[list[Plugin]]:
        """The plugins that take part in a point, by tier; tiers without any are left out."""
        tiers = [[plugin for plugin in tier if self._takes_part(plugin, point)] for tier in self._tiers]
        return [tier for tier in tiers if tier]

    def _takes_part(self, plugin: Plugin, point: Point) -> bool:
        if (plugin.name, point.name) in self._disabled or not _overrides(type(plugin), point.name):
            return False
        return not point.switches or any(plugin.switches.get(switch, True) for switch in point.switches)

    def _follows(self, name: str, on: str) -> bool:
        methods = [
            getattr(type(plugin), name) for plugin in self.plugins if self._takes_part(plugin, POINTS[name])
        ]
        return any_depends(methods, on)


def _read_of(queue: Queue, plugin: Plugin, bound: Bound) -> object:
    """What a bound reads of a queue; a unique object if that is unknown."""
    try:
        return bound.of_queue(queue) if bound.of_queue is not None else object()
    except BaseException as error:
        raise_attributed(error, plugin.name, "victim_bound")


def _all_may(bounds: Iterable[tuple[Plugin, Bound]], job: Job) -> bool:
    """Whether a job could have a victim by each of these bounds."""
    for plugin, bound in bounds:
        try:
            if not bound.may(job):
                return False
        except BaseException as error:
            raise_attributed(error, plugin.name, "victim_bound")
    return True


# A plugin that overrides the simple form of a point takes part in the general one.
_SIMPLE_FORMS = {"node_filters": "filter_nodes", "node_scores": "score_nodes"}


def points_of(kind: type[Plugin]) -> list[str]:
    """The points of a plugin and its variants, whatever the policy switches off."""
    variants = [kind, *(variant for variant in kind.__subclasses__() if variant.name == kind.name)]
    return [
        name
        for name in (*POINTS, *own_points(kind))
        if any(_overrides(variant, name) for variant in variants)
    ]


def _overrides(kind: type[Plugin], name: str) -> bool:
    if not hasattr(kind, name):
        return False
    return any(
        getattr(kind, form) is not getattr(Plugin, form, None)
        for form in (name, _SIMPLE_FORMS.get(name, name))
    )


def own_points(kind: type[Plugin]) -> dict[str, Point]:
    """The points that a plugin declares itself."""
    return {
        name: method.__point__
        for base in kind.__mro__
        for name, method in vars(base).items()
        if hasattr(method, "__point__") and name not in POINTS
    }
