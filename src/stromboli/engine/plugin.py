"""The base of every plugin: one documented method per extension point; overriding is registering.

A plugin lives as long as its policy. When a session opens, `opening` reports what changed; the plugin must then equal
a new one. A public method that is not an extension point is an error of the class, so that misspelt names are found;
names of helpers start with an underscore. A class may declare its own extension points with `@point`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from stromboli.engine.placement.node_functions import Check, Column, NodeFilter, Nodes, NodeScore, Refusal
from stromboli.engine.points import (
    Point,
    Vote,
    every,
    every_of_first_tier,
    first_answer,
    first_nonzero,
    gather,
    narrow,
    notify,
    point,
    side_by_side,
    some,
    sort_keys,
    sum_by_name,
    tier_intersection,
    union_of_first_tier,
    vote,
)
from stromboli.model.remedy import Remedy, Why
from stromboli.model.requirements.placement_requirement import REQUIREMENTS

if TYPE_CHECKING:
    from stromboli.engine.session import Session
    from stromboli.engine.waiting.ordered_waits import WaitingColumns
    from stromboli.model.amounts import Amounts, Vector
    from stromboli.model.cards.node_cards import NodeCards
    from stromboli.model.cluster import Change, Dirty
    from stromboli.model.job import Job, SubJob
    from stromboli.model.ledgers import Grant
    from stromboli.model.node_columns import Ints, Node
    from stromboli.model.queue import Queue
    from stromboli.model.task import Task
    from stromboli.model.topology.domain import Domain


@dataclass(frozen=True, slots=True)
class NoArguments:
    """This plugin takes no arguments."""


class Invalid(Why):
    """Why a job cannot be scheduled as it stands."""

    __slots__ = ()

    def __new__(
        cls,
        reason: str,
        message: str,
        remedy: str | Remedy = "",
        summary: str = "",
        title: str = "",
        *,
        way_out: str = "",
    ) -> Invalid:
        return super().__new__(cls, message, remedy or way_out, reason, summary, title)

    @property
    def reason(self) -> str:
        """One word for programs, as in a condition: `NotEnoughTasks`."""
        return self.code

    @property
    def way_out(self) -> str:
        """The older name of `remedy`."""
        return self.remedy.steady_text()


class HeldBack(Why):
    """Why a job may not start yet though there may be capacity for it: it would delay jobs that come before it."""

    __slots__ = ()

    def __new__(cls, message: str, summary: str, remedy: str | Remedy = "", *, way_out: str = "") -> HeldBack:
        return super().__new__(cls, message, remedy or way_out, "HeldBack", summary, "Held back")


class Promise(Struct, frozen=True, omit_defaults=True):
    """When a job that waits for capacity starts at the latest, and what for it waits; the leader reports it so."""

    start: float
    """When it starts at the latest, in seconds since 1970, if all others keep to their time limits."""
    nodes: tuple[str, ...] = ()
    """The nodes on which capacity is reserved for it."""
    after: tuple[str, ...] = ()
    """The jobs that are expected to end there before, by their keys; the first to end first."""
    overdue: bool = False
    """Whether it waits for jobs that are over their time limit."""


Attempt = Callable[[], bool]
"""Places a job as `allocate` does, in the statement that is open; whether it could start with that."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A request of a gang-aware action for victims: its kind, the job and the domain."""

    kind: str
    """`preempt` within a queue, `reclaim` between queues, `consolidate` for tasks that start again elsewhere."""
    job: Job
    """The beneficiary of the eviction."""
    domain: Domain | None = None
    """The HyperNode, or the whole cluster, that it is placed in; candidates elsewhere belong to gangs there."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An upper bound on the victims that a plugin allows: `may` is whether any task of a job could be one.

    `key` is all that the answer reads of the preempting task; what failed for one task need not be tried for the next
    with the same key while nothing moves.
    An answer about a job of another queue may be kept until a task of that queue moves; with `of_queue`, until a task
    of the job moves or what that returns changes.
    """

    key: Hashable
    """All that the answer reads of the preempting task."""
    may: Callable[[Job], bool]
    """Whether any task of a job could be a victim."""
    of_queue: Callable[[Queue], object] | None = None
    """All that the answer reads of the job's queue and of other jobs there, if that is known."""


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """A limit of a queue or of an ancestor, and what it holds of it.

    Resources that `most` does not name are not limited by it; `remedy` says how to get more, up to `raised_to`.
    """

    queue: Queue
    """The queue that the limit is of."""
    name: str
    """The name of the limit, such as `capability`."""
    most: Amounts
    """The maximum of each resource."""
    held: Amounts
    """What counts against it now."""
    remedy: str
    """What would raise the limit, for users."""
    raised_to: Amounts | None = None
    """What the remedy could raise the limit to; None: all that the cluster has."""
    code: str = ""
    """For programs: `capability`, `deserved`, `limit`, or a word of the plugin's own; empty: the name."""


CAPABILITY, DESERVED, LIMIT = "capability", "deserved", "limit"
"""Codes of limits: what `spec.capability` says, the share of the cluster, and what is left below other queues."""
Key = Any
"""A sort key: smaller comes first; `functools.cmp_to_key` serves for a pairwise rule."""


class Plugin:
    """The base class of plugins. Override the extension points that you need; each says when it is called."""

    name: ClassVar[str] = ""
    """As in the configuration file."""
    Arguments: ClassVar[type] = NoArguments
    """A frozen dataclass, one documented field per argument."""

    counts_gangs: ClassVar[bool] = False
    """Whether its votes on victims only protect a gang's minimum, which no longer counts if all of it is evicted."""

    guards_room: ClassVar[bool] = False
    """Whether it refuses jobs at the gate only because the cluster as a whole is full."""

    fewer_pods_remedy: str = ""
    """If it asks a HyperNode for capacity for all pods of a gang, though fewer could start: what lets these start."""

    ignores_node_labels: bool = False
    """Whether it lets pods start on nodes that their node selector or node affinity does not match."""

    keeps_off_barred_nodes: bool = False
    """Whether it lets no pod start on a node that is cordoned or has a taint which the pod does not tolerate."""

    keeps_pods_apart: bool = False
    """Whether it lets no pod start against the required anti-affinity of a pod."""

    orders_jobs_by_priority: bool = False
    """Whether its `job_order` puts jobs of a higher priority first."""

    limits_queues: bool = False
    """Whether it lets no queue hold more than its `spec.capability`."""

    limits_queue_trees: bool = False
    """Whether it lets no queue and those below it together hold more than its `spec.capability`."""

    honours: frozenset[str] = frozenset()
    """Requirements that it honours, by their names in `model.requirements.placement_requirement`.

    If no plugin of the policy honours a requirement of a pod, PodGroup or queue, the pods wait, or an event reports
    that the field has no effect.
    """

    session: Session
    """The session that is open; set before `opening`."""

    def __init__(self, arguments: Any, switches: dict[str, bool]):
        self.arguments = arguments
        """Its `Arguments`, filled in from the policy."""
        self.switches = switches
        """The switches that its entry in the policy sets, such as `enableJobOrder`."""

    @classmethod
    def build(cls, arguments: Any, switches: dict[str, bool]) -> Plugin:
        """Make the plugin for these arguments; override to choose among variants."""
        return cls(arguments, switches)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if unknown := set(cls.honours) - {requirement.name for requirement in REQUIREMENTS}:
            known_names = ", ".join(sorted(requirement.name for requirement in REQUIREMENTS))
            raise TypeError(
                f"plugin {cls.name or cls.__name__}: unknown requirement {sorted(unknown)[0]!r} in honours;"
                f" valid requirements: {known_names}"
            )
        known = {name for base in cls.__mro__[1:] for name in vars(base)}
        for name, value in vars(cls).items():
            own = hasattr(value, "__point__")
            if name.startswith("_") or name in known or own or not callable(value) or isinstance(value, type):
                continue
            near = difflib.get_close_matches(name, known, 1)
            suggestion = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(
                f"plugin {cls.name or cls.__name__}: {name!r} is not an extension point{suggestion}"
                " (start names of helpers with an underscore, declare your own points with @point)"
            )

    # -- life

    def opening(self, session: Session, dirty: Dirty) -> None:
        """A session opens; `dirty` says what changed since this plugin last saw the cluster."""

    def closing(self, session: Session) -> None:
        """The actions have run; the outcome is about to be reported."""

    def on_move(self, change: Change) -> str | None:
        """A task moved, or a move was taken back. A text refuses the move (never asked when taking back)."""
        return None

    def remembered(self, subject: Job | Queue) -> Mapping[str, str]:
        """What it keeps in mind of a job or a queue, for its user: a few short texts by name. Asked between cycles."""
        return {}

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        """Why it allows no victim among pods of one job, for `stromboli explain`; asked after it allowed none."""
        return ""

    # -- orders: sort keys, smaller first

    @point(sort_keys, "enableJobOrder")
    def job_order(self, job: Job) -> Key:
        """Which job of a queue comes first. Then: creation time, then name."""

    @point(sort_keys, "enableQueueOrder")
    def queue_order(self, queue: Queue) -> Key:
        """Which queue comes first. Then: creation time, then name."""

    @point(sort_keys, "enableTaskOrder")
    def task_order(self, task: Task) -> Key:
        """Which task of a job comes first. Then: replica number, creation time, uid."""

    @point(sort_keys, "enabledSubJobOrder")
    def sub_job_order(self, sub_job: SubJob) -> Key:
        """Which sub-group of a job comes first. Then: number of its first match label, then id."""

    @point(first_nonzero)
    def victim_queue_order(self, left: Queue, right: Queue, preemptor: Queue) -> int:
        """Which queue loses first. Then: the reverse of queue order."""
        return 0

    # -- may it start, is it done

    @point(first_answer)
    def job_valid(self, job: Job) -> Invalid | None:
        """Why a job cannot be scheduled as it stands; the first objection counts."""

    @point(every, "enableJobReady")
    def job_ready(self, job: Job) -> bool:
        """Whether the job may start with its allocated tasks."""
        return True

    def tasks_needed(self, unit: Job | SubJob) -> int:
        """The least number of further tasks that a job or sub-group needs before this plugin lets it start.

        It decides nothing: a search skips domains with capacity for fewer.
        """
        return 0

    @point(vote, "enableJobPipelined")
    def job_pipelined(self, job: Job) -> Vote:
        """Whether the job could start once its pipelined tasks have their resources."""
        return Vote.ABSTAIN

    @point(every, "enabledSubJobReady")
    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """As job_ready, for a sub-group; called only for jobs with sub-group policies."""
        return True

    @point(vote, "enabledSubJobPipelined")
    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        """As job_pipelined, for a sub-group; called only for jobs with sub-group policies."""
        return Vote.ABSTAIN

    @point(every_of_first_tier, "enableJobStarving")
    def job_starving(self, job: Job) -> bool:
        """Whether pods may be evicted for the job; the first tier with such a plugin decides."""
        return False

    # -- which jobs may start before others

    @point(first_answer)
    def held_back(self, job: Job) -> HeldBack | None:
        """Why `allocate` may not place a job in its turn, to protect jobs before it; the first objection counts.

        Called before each turn of a job, so that it may depend on the turns before.
        """

    @point(notify)
    def no_room(self, job: Job, attempt: Attempt) -> None:
        """A job could not start in its turn in `allocate`: it lacked capacity, or it was held back.

        Inside a `session.rehearsal()` the attempt shows whether and where the job would start after changes.
        """

    @point(first_answer)
    def promised(self, job: Job) -> Promise | None:
        """The latest start of a pending job, for its user; None without a promise."""

    @point(first_answer)
    def reserved_places(self, job: Job) -> Mapping[Task, Node] | None:
        """The reserved nodes of a job's tasks, used if the ordinary search fails; None: no reserved nodes."""

    def may_overtake(self, waiting: WaitingColumns) -> Ints | None:
        """Which of the jobs that wait in order could pass `held_back`, by slot; None: any could.

        It decides nothing: once a plugin of `no_room` answers, other jobs have no turn. `no_room` was not called for
        running jobs with more pods than they need, nor for jobs without a turn so far (`waiting.had_turn`).
        """
        return None

    def promised_before(self) -> Sequence[Job]:
        """The jobs to which starts were promised in the session before, before others: they have the first turns."""
        return ()

    def keeps_first_turn(self, job: Job) -> bool:
        """Whether such a job has it even before jobs of a higher priority in other queues."""
        return False

    # -- the gate of a queue

    @point(vote, "enableJobEnqueued")
    def job_enqueueable(self, job: Job) -> Vote:
        """Whether a pending job may be admitted; called only for jobs with minResources. Changes nothing."""
        return Vote.ABSTAIN

    @point(notify, "enableJobEnqueued")
    def job_enqueued(self, job: Job) -> None:
        """A job was admitted: count it."""

    @point(some)
    def admitted_early(self, job: Job) -> bool:
        """Whether a job is admitted though the capacity that it needs is in use. Changes nothing.

        Called only for jobs that the gate rejects although the limits of the cluster and their queue could hold them.
        """
        return False

    # -- limits of a queue

    @point(some, "enabledOverused")
    def overused(self, queue: Queue) -> bool:
        """Whether a queue has used up its share."""
        return False

    @point(every, "enabledAllocatable")
    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether a queue may still take this task."""
        return True

    def may_allocate(self, queue: Queue, task: Task, count: int) -> bool:
        """Whether a queue could take this many tasks like this one, as long as none of its tasks is evicted.

        It decides nothing: jobs that need more are not tried. If not, `allocatable` refuses one of them.
        """
        return True

    @point(every, "enablePreemptive")
    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        """Whether a queue may reclaim resources from other queues for these tasks."""
        return True

    @point(every, "enablePreemptive")
    def may_reclaim_for(self, job: Job) -> bool:
        """Whether a job's queue could reclaim its `minResources` from other queues, before any of its pods exists."""
        return True

    @point(every, "enablePreemptive")
    def brings_closer_to_shares(self, taker: Queue, gained: Vector, losses: Mapping[Queue, Vector]) -> bool:
        """Whether the trial reclaim that was just made brings queues closer to their shares.

        True also for a queue that is within its share of all that it took.
        """
        return True

    @point(gather, "enabledAllocatable", "enabledOverused")
    def queue_limits(self, queue: Queue) -> Iterable[QueueLimit]:
        """What `overused` and `allocatable` compare, so that a refusal can name it; decides nothing."""
        return ()

    # -- victims

    @point(tier_intersection, "enablePreemptable")
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        """Which candidates may be evicted for a task of the same queue; None abstains."""

    @point(tier_intersection, "enableReclaimable")
    def reclaimable(self, task: Task, candidates: list[Task]) -> list[Task] | None:
        """Which candidates may be evicted for a task of another queue; None abstains."""

    @point(tier_intersection)
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task] | None:
        """Which candidates a gang-aware action may evict, or `consolidate` may move; None abstains."""

    def victim_bound(self, point: str, task: Task) -> Bound | None:
        """A quick upper bound on the victims that this plugin allows at a victim point; None: there is none."""
        return None

    @point(union_of_first_tier, "enabledVictim")
    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        """Which running tasks to evict, independent of pending jobs (shuffle); they are in no particular order."""
        return []

    @point(narrow, "enabledVictim")
    def victim_limits(self, victims: list[Task]) -> list[Task]:
        """Which of the selected victims may be evicted (shuffle); they are in the order of eviction."""
        return victims

    @point(every, "enableBackfillVictim")
    def backfill_victim(self, beneficiary: Task, victim: Task) -> bool:
        """Whether backfill may reassign what an unready gang holds."""
        return True

    @point(every, "enableBackfillBeneficiary")
    def backfill_beneficiary(self, job: Job) -> bool:
        """Whether a job may start on resources that backfill reassigns."""
        return True

    # -- nodes

    @point(side_by_side)
    def shape_key(self, task: Task) -> Any:
        """What this plugin's node functions read of a task beyond its shape; must be hashable."""

    @point(first_answer, "enablePredicate")
    def prefilter(self, task: Task) -> Refusal | None:
        """Why no node can take this task; the first objection counts for every node."""

    @point(gather, "enablePredicate")
    def node_filters(self, task: Task) -> Iterable[NodeFilter]:
        """The filters that a task must pass. Default: `filter_nodes`, if overridden."""
        if type(self).filter_nodes is Plugin.filter_nodes:
            return ()
        return (NodeFilter(self.filter_nodes, plugin=self.name, reads=_reads(type(self).filter_nodes)),)

    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        """Which nodes can take a task: one check after the other; the first that fails a node is its reason."""
        yield from ()

    @point(gather, "enableNodeOrder")
    def node_scores(self, task: Task) -> Iterable[NodeScore]:
        """The scores of nodes for a task. Default: `score_nodes`, if overridden."""
        if type(self).score_nodes is Plugin.score_nodes:
            return ()
        return (NodeScore(self.score_nodes, plugin=self.name, reads=_reads(type(self).score_nodes)),)

    def score_nodes(self, task: Task, nodes: Nodes) -> Column:
        """How good each node is for a task; scores of all plugins are added."""
        return nodes.zeros()

    @point(first_answer, "enableBestNode")
    def best_node(self, task: Task, scores: dict[str, float]) -> str | None:
        """The node to select, given the scores; None: the node with the highest score."""

    @point(gather, "enablePredicate")
    def grants(self, task: Task, node: Node, now: bool) -> Iterable[Grant | Refusal]:
        """The grants of a task on its selected node: what it holds besides amounts, such as volumes, devices, CPUs.

        Without `now` the task waits until other pods have left, and its grants may include what these hold. A refusal
        keeps the task off the node. Called only for tasks that a ledger of the model counts; the bind includes the
        grants.
        """
        return ()

    @point(first_answer, "enableNodeOrder")
    def card_order(self, task: Task, node: Node, cards: NodeCards) -> Sequence[int] | None:
        """The cards of the selected node in the order in which a task takes them; None: `deviceshare` decides.

        Cards that do not fit the task are skipped. Called only for tasks that request shared cards.
        """

    # -- HyperNodes

    @point(sum_by_name, "enabledHyperNodeOrder")
    def hyper_node_scores(self, sub_job: SubJob, domains: Sequence[Domain]) -> Mapping[str, float]:
        """How good each HyperNode is for a sub-group, by name; scores of all plugins are added, the best is taken."""
        return {}

    @point(first_answer, "enabledHyperNodeGradient")
    def hyper_node_gradients(
        self, unit: Job | SubJob, root: Domain, purpose: str
    ) -> list[list[Domain]] | None:
        """Groups of HyperNodes to try for a job or a sub-group, the best group first; None: another plugin decides.

        The `root` is where to look, the `purpose` "allocate", "evict", "consolidate" (others may be moved) or
        "reserve" (others are supposed to have ended, though they had not when the session opened).
        """


def _reads(method: Callable[..., Any]) -> str:
    return getattr(method, "__reads__", "external")


POINTS: dict[str, Point] = {
    name: method.__point__ for name, method in vars(Plugin).items() if hasattr(method, "__point__")
}

# Switches of the configuration file that no point of ours needs are accepted all the same (spec 01 13).
SWITCHES: dict[str, bool] = {
    **{switch: True for declared in POINTS.values() for switch in declared.switches},
    "enableHierarchy": False,
    "enabledClusterOrder": False,
    "enableTargetJob": True,
    "enableReservedNodes": True,
}
