"""What users hold now: one account per user of a queue, and one for the queue as a whole.

Updated by job between cycles and by bind within one, in whole numbers, so that it equals a new sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.model.amounts import Amounts, Vector, shift
from stromboli.model.job import Job


@dataclass(slots=True, eq=False)
class Account:
    """What a user of a queue holds (or, without a user, the whole queue), and its order key in this cycle."""

    queue: str
    user: str | None
    held: Amounts = field(default_factory=dict)
    jobs: dict[Job, None] = field(default_factory=dict)
    cycle: int = -1
    """The cycle in which the rest was computed: past usage, the share held, and the order key of both."""
    usage: float = 0.0
    share: float = 0.0
    order_key: float = 0.0


class Holding(NamedTuple):
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
        self._holdings: dict[Job, Holding] = {}
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
            holding = self._holdings[job] = Holding(user_account, whole, {})
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
