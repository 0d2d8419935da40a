"""Jobs by what their users had lately: less first. Ours, beyond Volcano."""

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
from stromboli.plugins.fairshare.history_annotation import read, settle, written
from stromboli.plugins.fairshare.usage_history import (
    GAP,
    NOTHING,
    Fading,
    Memory,
    Past,
    QueueHistory,
    copy_of,
    new_history,
    regular,
    rounded,
)
from stromboli.policy.arguments import arg, arg_map

log = logging.getLogger(__name__)

LONGEST_NAME = 253
NOTICEABLE = 1 / 4, 0.01
"""How much more of what it has, or of the cluster, a user gets in a cycle before its waiting jobs are ordered anew."""


def _not_a_duration(text: str) -> str | None:
    seconds = duration(text)
    return None if seconds is not None and seconds >= 0 else "must be a duration such as 1h30m"


def _not_a_half_life(text: str) -> str | None:
    seconds = duration(text)
    return None if seconds is not None and seconds > 0 else "must be a duration above zero such as 24h"


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
        "halfLife", "24h", "How long until half of a usage is forgotten.", check=_not_a_half_life
    )
    look_ahead: str = arg(
        "lookAhead",
        "1h",
        "What a user holds now counts as if it were kept for so long; 0s counts the past alone.",
        check=_not_a_duration,
    )
    weights: Mapping[str, float] = arg_map(
        "weights", {}, "How much more than others a user may have; 1 unless given.", check=_not_weights
    )
    between_queues: bool = arg(
        "betweenQueues", False, "Whether queues, too, come in the order of their usage, by their weights."
    )
    save_every: str = arg(
        "saveEvery", "1m", "How often at most a queue's annotation is written.", check=_not_a_duration
    )


class Fairshare(Plugin):
    """The job whose user had less of the queue lately comes first; what was long ago is forgotten by halves."""

    name = "fairshare"
    Arguments = FairshareArguments
    arguments: FairshareArguments

    def __init__(self, arguments: FairshareArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._fading = Fading(duration(arguments.half_life) or 1.0)
        self._look_ahead = duration(arguments.look_ahead) or 0.0
        self._save_every = duration(arguments.save_every) or 0.0
        self._accounts = Accounts()
        self._memory = Memory(at=None, queues={})
        self._cycle = 0

    # -- keeping up

    def opening(self, session: Session, dirty: Dirty) -> None:
        cluster = session.cluster
        self._cycle += 1
        afresh = self._recall(cluster.memory) or dirty.everything
        self._let_time_pass(session.now)
        for queue in list(cluster.queues.values()) if afresh else dirty.queues:
            self._recall_queue(queue, session.now)
        if afresh:
            self._accounts = Accounts()
        for job in cluster.jobs.values() if afresh else dirty.jobs:
            self._accounts.regard(job, self._user(job))
        changed = self._accounts.take_changed()
        if afresh:
            self._settle_all(session)
        for account in dict.fromkeys([*changed, *(self._accounts if dirty.nodes else ())]):
            self._settle(account, session)
        self._forget_queues(cluster.queues)

    def on_move(self, change: Change) -> None:
        """Within a cycle a user has more with every task that is bound, so that users take turns."""
        sign = (change.status is Status.BINDING) - (change.old_status is Status.BINDING)
        if sign and change.task.job is not None:
            account = self._accounts.bind(change.task.job, change.task.request, sign)
            if account is not None and account.cycle == self._cycle:
                self._look_again(account)

    def _look_again(self, account: Account) -> None:
        """Order a user's waiting jobs anew, if there are others: few times in a cycle, as all of them move."""
        share, (part, most) = self._share(account), NOTICEABLE
        if abs(share - account.share) > min(part * account.share, most) and not self._accounts.alone(account):
            self._stand(account, share)
            backlog = self.session.cluster.backlog
            self.session.reorder(job for job in account.jobs if job in backlog)

    def closing(self, session: Session) -> None:
        """From now on everybody holds what was bound in this cycle; save what is due."""
        changed = self._accounts.take_changed()
        for queue in dict.fromkeys(account.queue for account in changed):
            self._secure(session, queue)
        for account in changed:
            self._settle(account, session)
        for queue, history in sorted(self._memory["queues"].items()):
            if self._due(history, session.now):
                self._secure(session, queue)
                settle(history, self._fading, session.now)
                history["saved"], history["changed"] = session.now, False
                text = written(history, session.now)
                session.decisions.append(QueueAnnotation(queue, names.FAIR_SHARE, text))

    # -- who comes first

    def job_order(self, job: Job) -> float:
        account = self._accounts.of(job)
        return self._standing(account) if account else 0.0

    def queue_order(self, queue: Queue) -> float:
        account = self._accounts.find(queue.name, None) if self.arguments.between_queues else None
        if account is None:
            return 0.0
        self._stand(account, self._share(account))
        return account.standing / queue.weight

    def _standing(self, account: Account) -> float:
        """What the jobs of a user are ordered by: the same for all of them, so it moves on in noticeable steps."""
        if account.cycle != self._cycle:
            self._stand(account, self._share(account))
        return account.standing

    def _stand(self, account: Account, share: float) -> None:
        if account.cycle != self._cycle:
            account.cycle = self._cycle
            account.usage = self._fading.usage(self._past(account), self.session.now)
        weight = 1.0 if account.user is None else self.arguments.weights.get(account.user, 1.0)
        account.share = share
        account.standing = (account.usage + share * self._look_ahead) / weight

    def _share(self, account: Account) -> float:
        return dominant_share(account.held, self.session.total)

    def _user(self, job: Job) -> str:
        if job.group is None:
            return job.namespace
        key, meta = self.arguments.user_key, job.group.metadata
        named = meta.annotations.get(key) or meta.labels.get(key) or ""
        return named if 0 < len(named) <= LONGEST_NAME else job.namespace

    # -- memory

    def _recall(self, memory: dict[str, Any]) -> bool:
        """Take up what the cluster remembers; whether that is something else than what was known."""
        found = memory.get(self.name)
        if found is self._memory:
            return False
        self._memory = Memory(at=None, queues={})
        if found is not None:
            try:
                self._memory = msgspec.convert(found, Memory)
            except msgspec.ValidationError as error:
                log.warning("fairshare: its memory is ignored: %s", error)
        memory[self.name] = self._memory
        return True

    def _let_time_pass(self, now: float) -> None:
        """Nothing to do, unless the time since the last cycle does not count in full."""
        last, self._memory["at"] = self._memory["at"], now
        if last is None or regular(last, now):
            return
        for history in self._memory["queues"].values():
            history["whole"] = self._fading.across(history["whole"], last, now)
            history["users"] = {
                user: self._fading.across(past, last, now) for user, past in history["users"].items()
            }
            history["saved"], history["changed"] = min(history["saved"], now), True

    def _recall_queue(self, queue: Queue, now: float) -> None:
        """What the queue's annotation tells, if nothing is known of the queue."""
        text = queue.annotations.get(names.FAIR_SHARE)
        if text is None or queue.name in self._memory["queues"]:
            return
        try:
            history = read(text, self._fading, now)
        except (ValueError, RecursionError) as error:
            log.warning(
                'queue "%s": annotation %s is ignored, its users begin anew: %s',
                queue.name,
                names.FAIR_SHARE,
                error,
            )
            history = new_history(now)
        self._memory["queues"][queue.name] = history

    def _forget_queues(self, known: Mapping[str, Queue]) -> None:
        gone = [name for name in self._memory["queues"] if name not in known or not known[name].exists]
        for name in gone:
            del self._memory["queues"][name]

    def _past(self, account: Account) -> Past:
        history = self._memory["queues"].get(account.queue)
        if history is None:
            return NOTHING
        return history["whole"] if account.user is None else history["users"].get(account.user, NOTHING)

    def _settle(self, account: Account, session: Session) -> None:
        """If an account holds another share than it did, remember its past up to now."""
        share = rounded(self._share(account))
        past = self._past(account)
        if share == past.share:
            return
        past = self._fading.settled(past, session.now, share)
        history = self._memory["queues"].setdefault(account.queue, new_history(session.now))
        history["changed"] = True
        if account.user is None:
            history["whole"] = past
        else:
            history["users"][account.user] = past

    def _settle_all(self, session: Session) -> None:
        """Whoever is remembered to hold something, whether or not anything is left of it."""
        for queue, history in self._memory["queues"].items():
            holding = [user for user, past in history["users"].items() if past.share]
            for user in (None, *holding):
                account = self._accounts.find(queue, user) or Account(queue, user)
                self._settle(account, session)

    def _due(self, history: QueueHistory, now: float) -> bool:
        """Changes are saved now and then; what is held, often enough that no restart finds a gap."""
        age = now - history["saved"]
        if history["changed"]:
            return age >= self._save_every
        return history["whole"].share > 0 and age >= GAP

    def _secure(self, session: Session, queue: str) -> None:
        """Should the cycle be lost after all, let its end not be remembered."""
        queues = self._memory["queues"]
        history = queues.get(queue)
        before = copy_of(history) if history else None

        def back() -> None:
            if before is None:
                queues.pop(queue, None)
            else:
                queues[queue] = before

        session.record(back, committed=True)
