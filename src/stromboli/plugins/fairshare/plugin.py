"""Jobs of users with less recent usage first. An extension of Stromboli's, not in Volcano."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.engine.decisions import QueueAnnotation
from stromboli.engine.plugin import Plugin
from stromboli.engine.session import Session
from stromboli.model.amounts import dominant_share
from stromboli.model.cluster import Change, Dirty
from stromboli.model.job import Job
from stromboli.model.queue import Queue
from stromboli.model.status import Status
from stromboli.plugins.fairshare.accounts import Account, Accounts
from stromboli.plugins.fairshare.history_annotation import bring_up_to_date, from_annotation, to_annotation
from stromboli.plugins.fairshare.usage_history import (
    MAX_GAP,
    NO_USAGE,
    Decay,
    Memory,
    QueueHistory,
    UsageRecord,
    copy_of,
    is_continuous,
    new_history,
    rounded,
)
from stromboli.policy.argument_checks import duration_like
from stromboli.policy.arguments import arg, arg_map

log = logging.getLogger(__name__)

LONGEST_NAME = 253
MOST_TOLD = 10
"""Users of a queue whose usage is told."""
REORDER_STEP = 1 / 4, 0.01
"""By how much, relative to itself or to the cluster, a share changes before the user's jobs are ordered again."""


def _not_weights(weights: Mapping[str, float]) -> str | None:
    return None if all(weight > 0 for weight in weights.values()) else "every weight must be above zero"


@dataclass(frozen=True, slots=True)
class FairshareArguments:
    """Who counts as one user, how fast usage is forgotten, and who may have more."""

    user_key: str = arg(
        "userKey",
        names.USER,
        "Annotation or label of a PodGroup that names its user; without one, or if this is empty, its namespace does.",
    )
    half_life: str = arg(
        "halfLife",
        "24h",
        "How long until half of a usage is forgotten.",
        check=duration_like("24h", above_zero=True),
    )
    look_ahead: str = arg(
        "lookAhead",
        "1h",
        "What a user holds now counts as if it were kept for so long; 0s counts the past alone.",
        check=duration_like("1h30m"),
    )
    weights: Mapping[str, float] = arg_map(
        "weights", {}, "How much more than others a user may have; 1 unless given.", check=_not_weights
    )
    between_queues: bool = arg(
        "betweenQueues", False, "Whether queues, too, come in the order of their usage, by their weights."
    )
    save_every: str = arg(
        "saveEvery", "1m", "How often at most a queue's annotation is written.", check=duration_like("1h30m")
    )


class Fairshare(Plugin):
    """The job whose user had less of the queue lately comes first; what was long ago is forgotten by halves."""

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
        """Order a user's waiting jobs again, if there are other users: in steps, as all of them move at once."""
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
                session.decisions.append(QueueAnnotation(queue, names.FAIR_SHARE, text))

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
            for account in shown[: MOST_TOLD + 1]
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
        return user if 0 < len(user) <= LONGEST_NAME else job.namespace

    # -- history

    def _load_memory(self, memory: dict[str, Any]) -> bool:
        """Load the history from the cluster's memory; whether it is another than before."""
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
        """Note the time, and shorten the time since the last cycle if it does not count in full."""
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
                'queue "%s": annotation %s is ignored, its users begin anew: %s',
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
        """If an account holds another share than before, record its usage up to now."""
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
        """Restore the history if the cycle is lost after all."""
        queues = self._memory["queues"]
        history = queues.get(queue)
        session.restore_if_lost(queues, queue, copy_of(history) if history else None)
