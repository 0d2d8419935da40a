"""Who holds what now: one account per user of a queue, and one for the queue as a whole.

Kept up job by job between cycles and bind by bind within one, in whole numbers, so that it equals a count afresh.
"""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.model.amounts import Amounts, Vector, shift
from stromboli.model.job import Job


class Account:
    """What a user of a queue holds (or, without a user, the whole queue), and how it stands in this cycle."""

    __slots__ = ("cycle", "held", "jobs", "queue", "share", "standing", "usage", "user")

    def __init__(self, queue: str, user: str | None):
        self.queue = queue
        self.user = user
        self.held: Amounts = {}
        self.jobs: dict[Job, None] = {}
        self.cycle = -1
        """The cycle for which the rest is told: usage in the past, the share held, and the order that they make."""
        self.usage = 0.0
        self.share = 0.0
        self.standing = 0.0


class Holding:
    """What one job holds, and in whose accounts that stands."""

    __slots__ = ("amounts", "user", "whole")

    def __init__(self, user: Account, whole: Account):
        self.user = user
        self.whole = whole
        self.amounts: Amounts = {}

    def add(self, amounts: Vector, sign: int = 1) -> None:
        for total in (self.amounts, self.user.held, self.whole.held):
            shift(total, amounts, sign)


class Accounts:
    """All accounts, with those that changed since somebody asked."""

    def __init__(self) -> None:
        self._accounts: dict[tuple[str, str | None], Account] = {}
        self._holdings: dict[Job, Holding] = {}
        self._changed: dict[Account, None] = {}

    def __iter__(self) -> Iterator[Account]:
        return iter(self._accounts.values())

    def take_changed(self) -> list[Account]:
        """The accounts that changed since this was last asked; those whose last job left are closed."""
        changed, self._changed = self._changed, {}
        for account in changed:
            if not account.jobs:
                self._accounts.pop((account.queue, account.user), None)
        return list(changed)

    def of(self, job: Job) -> Account | None:
        holding = self._holdings.get(job)
        return holding.user if holding else None

    def find(self, queue: str, user: str | None) -> Account | None:
        """The account of a user, or of a queue as a whole, if any of its jobs is there."""
        return self._accounts.get((queue, user))

    def alone(self, account: Account) -> bool:
        """Whether all jobs of a queue are of one user."""
        return len(account.jobs) == len(self._get(account.queue, None).jobs)

    def _get(self, queue: str, user: str | None) -> Account:
        account = self._accounts.get((queue, user))
        if account is None:
            account = self._accounts[queue, user] = Account(queue, user)
        return account

    def regard(self, job: Job, user: str) -> None:
        """Count a job as it is now, in place of what it was."""
        self._leave(job)
        if job.queue is not None and job.visible:
            holding = self._holdings[job] = Holding(
                self._get(job.queue.name, user), self._get(job.queue.name, None)
            )
            for account in (holding.user, holding.whole):
                account.jobs[job] = None
                self._changed[account] = None
            holding.add(job.allocated)

    def bind(self, job: Job, request: Vector, sign: int) -> Account | None:
        """A task of a job is bound, or no longer; gives the account of its user."""
        holding = self._holdings.get(job)
        if holding is None:
            return None
        holding.add(request, sign)
        self._changed[holding.user] = self._changed[holding.whole] = None
        return holding.user

    def _leave(self, job: Job) -> None:
        holding = self._holdings.pop(job, None)
        if holding is None:
            return
        holding.add(dict(holding.amounts), -1)
        for account in (holding.user, holding.whole):
            del account.jobs[job]
            self._changed[account] = None
