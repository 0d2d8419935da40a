"""The plugin `fairshare`: jobs of users with less recent usage first, across restarts. Volcano has no such plugin.

Usage is a share of the cluster times seconds, and decays. It is not added up in every cycle: a `UsageRecord` is the
usage at a moment and the share held since, which determines usage at any later moment. So a record changes only when
the share does.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
from msgspec import Meta

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.engine.decisions import QueueAnnotation
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.amounts import Amounts, Vector, dominant_share, shift
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.policy.argument_checks import duration_like
from stromboli.policy.arguments import arg, arg_map

# -- usage that decays, as plain numbers that a dump or an annotation can hold without loss


MAX_GAP = 600.0
"""Maximum seconds between two cycles (or a save and a restart) that count."""

Number = Annotated[float, Meta(ge=0, le=1e18)]


class UsageRecord(NamedTuple):
    """Usage at a moment, and the share of the cluster that is held since then."""

    usage: Number
    at: Number
    share: Number


NO_USAGE = UsageRecord(0.0, 0.0, 0.0)


class QueueHistory(TypedDict):
    """The history of a queue: when it was saved, whether it changed since, the whole queue, its users."""

    saved: Number
    changed: bool
    whole: UsageRecord
    users: dict[str, UsageRecord]


class Memory(TypedDict):
    """Data that is kept between cycles: the time of the last one, and the history of each queue."""

    at: Number | None
    queues: dict[str, QueueHistory]


def new_history(now: float) -> QueueHistory:
    return QueueHistory(saved=now, changed=False, whole=NO_USAGE, users={})


def copy_of(history: QueueHistory) -> QueueHistory:
    history = history.copy()
    history["users"] = dict(history["users"])
    return history


def rounded(number: float) -> float:
    """As it is stored: with nine significant digits."""
    return float(f"{number:.9g}")


def is_continuous(last: float, now: float) -> bool:
    """Whether all the time between two moments counts: it is neither negative nor longer than the gap."""
    return 0 <= now - last <= MAX_GAP


@dataclass(frozen=True, slots=True)
class Decay:
    """Exponential decay: every half-life, usage halves."""

    half_life: float

    def usage(self, record: UsageRecord, now: float) -> float:
        """The decayed usage at a moment."""
        elapsed = max(now - record.at, 0.0)
        return self._usage_after(record, elapsed, elapsed)

    def at(self, record: UsageRecord, now: float, share: float) -> UsageRecord:
        """The record at this moment, with another share from now on."""
        return UsageRecord(rounded(self.usage(record, now)), now, share)

    def across_gap(self, record: UsageRecord, last: float, now: float) -> UsageRecord:
        """The record after a gap, or after time ran backwards: decay counts in full, usage up to `MAX_GAP`."""
        at_last = record._replace(usage=self.usage(record, last), at=last)
        elapsed = max(now - last, 0.0)
        return UsageRecord(
            rounded(self._usage_after(at_last, elapsed, min(elapsed, MAX_GAP))), now, record.share
        )

    def _usage_after(self, record: UsageRecord, elapsed: float, counted: float) -> float:
        mean = self.half_life / math.log(2)
        return record.usage * math.exp(-elapsed / mean) - record.share * mean * math.expm1(-counted / mean)


# -- the plugin


log = logging.getLogger(__name__)

MAX_NAME_LENGTH = 253
MAX_REPORTED = 10
"""Maximum users of a queue whose usage is reported."""
REORDER_STEP = 1 / 4, 0.01
"""The change of a share, relative to itself or to the cluster, after which the user's jobs are ordered again."""


def _not_weights(weights: Mapping[str, float]) -> str | None:
    return None if all(weight > 0 for weight in weights.values()) else "every weight must be above zero"


@dataclass(frozen=True, slots=True)
class FairshareArguments:
    """What identifies a user, how fast usage decays, and the weights of users."""

    user_key: str = arg(
        "userKey",
        names.USER,
        "Annotation or label of a PodGroup that names its user; without one, or if this is empty, its namespace does.",
    )
    half_life: str = arg(
        "halfLife",
        "24h",
        "Half-life of past usage.",
        check=duration_like("24h", above_zero=True),
    )
    look_ahead: str = arg(
        "lookAhead",
        "1h",
        "Current usage counts as if it lasted this long; 0s: only past usage counts.",
        check=duration_like("1h30m"),
    )
    weights: Mapping[str, float] = arg_map(
        "weights", {}, "Weights of users' shares; 1 by default.", check=_not_weights
    )
    between_queues: bool = arg("betweenQueues", False, "Whether queues are also ordered by usage and weight.")
    save_every: str = arg(
        "saveEvery",
        "1m",
        "Minimum interval between two writes of a queue's annotation.",
        check=duration_like("1h30m"),
    )


class Fairshare(Plugin):
    """Orders jobs by their users' recent usage of the queue, which decays with a half-life."""

    name = "fairshare"
    Arguments = FairshareArguments
    arguments: FairshareArguments

    def __init__(self, arguments: FairshareArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._decay = Decay(duration(arguments.half_life) or 1.0)
        self._look_ahead = duration(arguments.look_ahead) or 0.0
        self._save_every = duration(arguments.save_every) or 0.0
        self._accounts = Accounts()
        self._memory = Memory(at=None, queues={})
        self._cycle = 0

    # -- sessions

    def opening(self, session: Session, dirty: Dirty) -> None:
        cluster = session.cluster
        self._cycle += 1
        reload = self._load_memory(cluster.memory) or dirty.everything
        self._advance(session.now)
        for queue in list(cluster.queues.values()) if reload else dirty.queues:
            self._load_queue(queue, session.now)
        if reload:
            self._accounts = Accounts()
        for job in cluster.jobs.values() if reload else dirty.jobs:
            self._accounts.update(job, self._user(job))
        changed = self._accounts.take_changed()
        if reload:
            self._update_all_records(session)
        for account in dict.fromkeys([*changed, *(self._accounts if dirty.nodes else ())]):
            self._update_record(account, session)
        self._drop_deleted_queues(cluster.queues)

    def on_move(self, change: Change) -> None:
        """Within a cycle a user has more with every task that is bound, so that users take turns."""
        sign = (change.status is Status.BINDING) - (change.old_status is Status.BINDING)
        if sign and change.task.job is not None:
            account = self._accounts.bind(change.task.job, change.task.request, sign)
            if account is not None and account.cycle == self._cycle:
                self._reorder_jobs(account)

    def _reorder_jobs(self, account: Account) -> None:
        """Order a user's pending jobs again, if there are other users: in steps, since all of them move at once."""
        share, (part, most) = self._share(account), REORDER_STEP
        if abs(share - account.share) > min(part * account.share, most) and not self._accounts.is_only_user(
            account
        ):
            self._compute_order_key(account, share)
            backlog = self.session.cluster.backlog
            self.session.reorder(job for job in account.jobs if job in backlog)

    def closing(self, session: Session) -> None:
        """Record the shares after this cycle; write the annotations that are due."""
        changed = self._accounts.take_changed()
        for queue in dict.fromkeys(account.queue for account in changed):
            self._record_undo(session, queue)
        for account in changed:
            self._update_record(account, session)
        for queue, history in sorted(self._memory["queues"].items()):
            if self._due(history, session.now):
                self._record_undo(session, queue)
                bring_up_to_date(history, self._decay, session.now)
                history["saved"], history["changed"] = session.now, False
                text = to_annotation(history, session.now)
                session.journal.decisions.append(QueueAnnotation(queue, names.FAIR_SHARE, text))

    def remembered(self, subject: Job | Queue) -> Mapping[str, str]:
        """The decayed usage of a job's user and of its queue, or of a queue and its largest users."""
        if isinstance(subject, Job):
            account = self._accounts.of(subject)
            whole = account and self._accounts.find(account.queue, None)
            texts = {"user": account.user or ""} if account else {}
            texts |= {"usage of the user": self._usage_text(account)} if account else {}
            return texts | ({"usage of the queue": self._usage_text(whole)} if whole else {})
        accounts = [account for account in self._accounts if account.queue == subject.name]
        accounts.sort(key=self._usage, reverse=True)
        shown = [account for account in accounts if account.user is None] + [
            account for account in accounts if account.user is not None
        ]
        return {
            f"usage of {account.user}" if account.user is not None else "usage": self._usage_text(account)
            for account in shown[: MAX_REPORTED + 1]
        }

    def _usage(self, account: Account) -> float:
        return self._decay.usage(self._record_of(account), self.session.now)

    def _usage_text(self, account: Account) -> str:
        """`1.5 hours of the whole cluster lately, and 12.5 % of it now`."""
        hours, percent = self._usage(account) / 3600, 100 * self._share(account)
        return f"{hours:.3g} hours of the whole cluster lately, and {percent:.3g} % of it now"

    # -- order

    def job_order(self, job: Job) -> float:
        account = self._accounts.of(job)
        return self._order_key(account) if account else 0.0

    def queue_order(self, queue: Queue) -> float:
        account = self._accounts.find(queue.name, None) if self.arguments.between_queues else None
        if account is None:
            return 0.0
        self._compute_order_key(account, self._share(account))
        return account.order_key / queue.weight

    def _order_key(self, account: Account) -> float:
        """The key of all jobs of a user; it is computed again in steps of `REORDER_STEP`."""
        if account.cycle != self._cycle:
            self._compute_order_key(account, self._share(account))
        return account.order_key

    def _compute_order_key(self, account: Account, share: float) -> None:
        if account.cycle != self._cycle:
            account.cycle = self._cycle
            account.usage = self._usage(account)
        weight = 1.0 if account.user is None else self.arguments.weights.get(account.user, 1.0)
        account.share = share
        account.order_key = (account.usage + share * self._look_ahead) / weight

    def _share(self, account: Account) -> float:
        return dominant_share(account.held, self.session.total)

    def _user(self, job: Job) -> str:
        if job.group is None:
            return job.namespace
        key, meta = self.arguments.user_key, job.group.metadata
        user = meta.annotations.get(key) or meta.labels.get(key) or ""
        return user if 0 < len(user) <= MAX_NAME_LENGTH else job.namespace

    # -- history

    def _load_memory(self, memory: dict[str, Any]) -> bool:
        """Load the history from the cluster's memory; true if it changed."""
        stored = memory.get(self.name)
        if stored is self._memory:
            return False
        self._memory = Memory(at=None, queues={})
        if stored is not None:
            try:
                self._memory = msgspec.convert(stored, Memory)
            except msgspec.ValidationError as error:
                log.warning("fairshare: its memory is ignored: %s", error)
        memory[self.name] = self._memory
        return True

    def _advance(self, now: float) -> None:
        """Record the time, and shorten the time since the last cycle if it does not count in full."""
        last, self._memory["at"] = self._memory["at"], now
        if last is None or is_continuous(last, now):
            return
        for history in self._memory["queues"].values():
            history["whole"] = self._decay.across_gap(history["whole"], last, now)
            history["users"] = {
                user: self._decay.across_gap(record, last, now) for user, record in history["users"].items()
            }
            history["saved"], history["changed"] = min(history["saved"], now), True

    def _load_queue(self, queue: Queue, now: float) -> None:
        """Load a queue's annotation, if the queue has no history yet."""
        text = queue.annotations.get(names.FAIR_SHARE)
        if text is None or queue.name in self._memory["queues"]:
            return
        try:
            history = from_annotation(text, self._decay, now)
        except (ValueError, RecursionError) as error:
            log.warning(
                'queue "%s": annotation %s is ignored, its users start without a history: %s',
                queue.name,
                names.FAIR_SHARE,
                error,
            )
            history = new_history(now)
        self._memory["queues"][queue.name] = history

    def _drop_deleted_queues(self, known: Mapping[str, Queue]) -> None:
        gone = [name for name in self._memory["queues"] if name not in known or not known[name].exists]
        for name in gone:
            del self._memory["queues"][name]

    def _record_of(self, account: Account) -> UsageRecord:
        history = self._memory["queues"].get(account.queue)
        if history is None:
            return NO_USAGE
        return history["whole"] if account.user is None else history["users"].get(account.user, NO_USAGE)

    def _update_record(self, account: Account, session: Session) -> None:
        """If the share of an account changed, record its usage up to now."""
        share = rounded(self._share(account))
        record = self._record_of(account)
        if share == record.share:
            return
        record = self._decay.at(record, session.now, share)
        history = self._memory["queues"].setdefault(account.queue, new_history(session.now))
        history["changed"] = True
        if account.user is None:
            history["whole"] = record
        else:
            history["users"][account.user] = record

    def _update_all_records(self, session: Session) -> None:
        """Update all records with a share, whether or not there is still an account."""
        for queue, history in self._memory["queues"].items():
            holding = [user for user, record in history["users"].items() if record.share]
            for user in (None, *holding):
                account = self._accounts.find(queue, user) or Account(queue, user)
                self._update_record(account, session)

    def _due(self, history: QueueHistory, now: float) -> bool:
        """Whether to save: changes after `saveEvery`, and held shares often enough that a restart finds no gap."""
        age = now - history["saved"]
        if history["changed"]:
            return age >= self._save_every
        return history["whole"].share > 0 and age >= MAX_GAP

    def _record_undo(self, session: Session, queue: str) -> None:
        """Restore the history if the cycle fails after all."""
        queues = self._memory["queues"]
        history = queues.get(queue)
        session.restore_if_lost(queues, queue, copy_of(history) if history else None)


# -- what users hold now: one account per user of a queue, and one for the queue as a whole


@dataclass(slots=True, eq=False)
class Account:
    """What a user of a queue holds (or, without a user, the whole queue), and its order key in this cycle."""

    queue: str
    user: str | None
    held: Amounts = field(default_factory=dict)
    jobs: dict[Job, None] = field(default_factory=dict)
    cycle: int = -1
    """The cycle in which past usage, the share held and the order key were computed."""
    usage: float = 0.0
    share: float = 0.0
    order_key: float = 0.0


class JobHolding(NamedTuple):
    """What one job holds, and the accounts in which it counts."""

    user: Account
    whole: Account
    amounts: Amounts

    def add(self, amounts: Vector, sign: int = 1) -> None:
        for total in (self.amounts, self.user.held, self.whole.held):
            shift(total, amounts, sign)


class Accounts:
    """All accounts, and those that changed."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str | None], Account] = {}
        self._holdings: dict[Job, JobHolding] = {}
        self._changed: dict[Account, None] = {}

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def take_changed(self) -> list[Account]:
        """The accounts that changed since the last call; those without jobs are removed."""
        changed, self._changed = self._changed, {}
        for account in changed:
            if not account.jobs:
                self._accounts.pop((account.queue, account.user), None)
        return list(changed)

    def of(self, job: Job) -> Account | None:
        holding = self._holdings.get(job)
        return holding.user if holding else None

    def find(self, queue: str, user: str | None) -> Account | None:
        """The account of a user, or of a queue as a whole, if it has any job."""
        return self._accounts.get((queue, user))

    def is_only_user(self, account: Account) -> bool:
        """Whether all jobs of a queue are of one user."""
        return len(account.jobs) == len(self._get(account.queue, None).jobs)

    def _get(self, queue: str, user: str | None) -> Account:
        account = self._accounts.get((queue, user))
        if account is None:
            account = self._accounts[queue, user] = Account(queue, user)
        return account

    def update(self, job: Job, user: str) -> None:
        """Replace what a job counts by what it holds now."""
        self._remove(job)
        if job.queue is not None and job.visible:
            user_account, whole = self._get(job.queue.name, user), self._get(job.queue.name, None)
            holding = self._holdings[job] = JobHolding(user_account, whole, {})
            for account in (holding.user, holding.whole):
                account.jobs[job] = None
                self._changed[account] = None
            holding.add(job.allocated)

    def bind(self, job: Job, request: Vector, sign: int) -> Account | None:
        """Count a task that is bound, or no longer; returns the account of its user."""
        holding = self._holdings.get(job)
        if holding is None:
            return None
        holding.add(request, sign)
        self._changed[holding.user] = self._changed[holding.whole] = None
        return holding.user

    def _remove(self, job: Job) -> None:
        holding = self._holdings.pop(job, None)
        if holding is None:
            return
        holding.add(dict(holding.amounts), -1)
        for account in (holding.user, holding.whole):
            del account.jobs[job]
            self._changed[account] = None


# -- a queue's history as an annotation of the queue: compact, bounded, and validated when read


MAX_USERS = 256
MAX_BYTES = 16 * 1024
MAX_IDLE_USERS = 10_000
"""Maximum users without holdings that are kept between saves, per queue."""
NEGLIGIBLE = 1e-6
"""Smaller usage is dropped: a whole cluster for a microsecond."""

Entry = tuple[Number, Number]
"""Usage, and the share that is held."""


class Saved(msgspec.Struct, forbid_unknown_fields=True):
    """`{"v":1,"at":1793534400.0,"queue":[5400.0,0.75],"users":{"ann":[3600.0,0.5],"bob":[1800.0,0.25]}}`."""

    v: Literal[1]
    at: Number
    queue: Entry
    users: dict[str, Entry]


def bring_up_to_date(history: QueueHistory, decay: Decay, now: float) -> None:
    """Bring all records up to now, and drop users with negligible usage."""
    history["whole"] = decay.at(history["whole"], now, history["whole"].share)
    users = {user: decay.at(record, now, record.share) for user, record in history["users"].items()}
    idle = [user for user in _largest_first(users) if not users[user].share]
    for index, user in enumerate(idle):
        if index >= MAX_IDLE_USERS or users[user].usage < NEGLIGIBLE:
            del users[user]
    history["users"] = users


def to_annotation(history: QueueHistory, now: float) -> str:
    """A history as a text of at most `MAX_BYTES`: the smallest usages are left out first."""
    saved = Saved(1, now, _entry(history["whole"]), {})
    left = MAX_BYTES - len(msgspec.json.encode(saved))
    for user in _largest_first(history["users"])[:MAX_USERS]:
        entry = _entry(history["users"][user])
        left -= len(msgspec.json.encode({user: entry}))
        if left < 0:
            break
        saved.users[user] = entry
    return msgspec.json.encode(saved, order="deterministic").decode()


def from_annotation(text: str, decay: Decay, now: float) -> QueueHistory:
    """The history in an annotation, brought up to now; raises `ValueError` if it is invalid."""
    if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
        raise ValueError(f"longer than {MAX_BYTES} bytes")
    saved = msgspec.json.decode(text, type=Saved)

    def record(entry: Entry) -> UsageRecord:
        usage, share = entry
        stored = UsageRecord(usage, saved.at, share)
        return stored if is_continuous(saved.at, now) else decay.across_gap(stored, saved.at, now)

    users = {user: record(entry) for user, entry in saved.users.items()}
    return QueueHistory(saved=min(saved.at, now), changed=False, whole=record(saved.queue), users=users)


def _entry(record: UsageRecord) -> Entry:
    return record.usage, record.share


def _largest_first(users: dict[str, UsageRecord]) -> list[str]:
    names: Iterable[str] = users
    return sorted(names, key=lambda user: (-users[user].usage, -users[user].share, user))
