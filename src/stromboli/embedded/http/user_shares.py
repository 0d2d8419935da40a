"""Fair shares of the server: how many requests and watches a user may have at a time, and whose turn it is.

A request takes a seat while it is worked on, a large one several. Each user has so many seats, and further requests
wait; free seats go to the users who wait in turn, so that whoever sends the most does not delay the others.
Administrators and the components of the cluster have seats and watches of their own, which nobody else can take.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from stromboli.daemon.connection_limits import MOST_CONNECTIONS
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import ANONYMOUS
from stromboli.embedded.rbac.authorizer import MASTERS
from stromboli.embedded.rbac.policy_rules import User

COMPONENTS = frozenset(
    f"system:serviceaccount:volcano-system:stromboli-{name}"
    for name in ("scheduler", "controllers", "admission")
)
"""The users of our own processes, as `deploy/` names them; not the dashboard, without which everything goes on."""
SERVICE_ACCOUNTS = "system:serviceaccount:"
PRIVILEGED_GROUPS = frozenset({MASTERS, "system:nodes"})

SHARED_SEATS = 32
"""Seats that all users without privileges have together."""
PRIVILEGED_SEATS = 128
"""Seats of administrators and components."""
MOST_WATCHES = 2_000
"""Watches at a time, and logs that are followed."""
SHARED_WATCHES = 1_500
"""Of these, how many all users without privileges may have together."""
MOST_STREAMS = 128
"""Streams at a time: commands in containers, attached containers, forwarded ports of a pod."""
SHARED_STREAMS = 96
"""Of these, how many all users without privileges may have together."""
USER_STREAMS = 32
USER_SEATS = 8
USER_WAITING = 200
"""Requests of a user that may wait for a seat."""
USER_WATCHES = 200
USER_CONNECTIONS = 512
"""Connections of a user: more than the requests and watches that they may have at a time."""
ANONYMOUS_SEATS = 1
ANONYMOUS_WAITING = 8
ANONYMOUS_WATCHES = 2
ANONYMOUS_STREAMS = 1
ANONYMOUS_CONNECTIONS = 16
PRIVILEGED_WAITING = 2_000
RETRY_AFTER = 1
WATCH_RETRY_AFTER = 5
"""Seconds after which a client that is refused may try again."""


TURNS = 16
"""Parts of long lists and watches that are encoded in one round of the event loop."""
USER_TURNS = 2
"""How many of these are one user's."""


class Share(NamedTuple):
    """What one user may have at a time."""

    owner: str
    """A user, or the service accounts of a namespace: whoever may edit it can make more of them."""
    seats: int
    waiting: int
    watches: int
    connections: int
    streams: int = USER_STREAMS

    @property
    def subject(self) -> str:
        """The owner, as errors name it."""
        if self.owner.startswith(SERVICE_ACCOUNTS) and self.owner.count(":") == 2:
            return f'the service accounts of namespace "{self.owner.removeprefix(SERVICE_ACCOUNTS)}" together have'
        return f'user "{self.owner}" has'


def is_privileged(user: User) -> bool:
    return user.name in COMPONENTS or not PRIVILEGED_GROUPS.isdisjoint(user.groups)


def share_of(user: User) -> Share:
    if is_privileged(user):
        return Share(
            user.name, PRIVILEGED_SEATS, PRIVILEGED_WAITING, MOST_WATCHES, MOST_CONNECTIONS, MOST_STREAMS
        )
    if user.name == ANONYMOUS.name:
        return Share(
            user.name,
            ANONYMOUS_SEATS,
            ANONYMOUS_WAITING,
            ANONYMOUS_WATCHES,
            ANONYMOUS_CONNECTIONS,
            ANONYMOUS_STREAMS,
        )
    prefix, _, account = user.name.rpartition(":")
    owner = prefix if account and prefix.startswith(SERVICE_ACCOUNTS) else user.name
    return Share(owner, USER_SEATS, USER_WAITING, USER_WATCHES, USER_CONNECTIONS, USER_STREAMS)


@dataclass(slots=True)
class _Line:
    """The requests of one user: the seats that they have, and those that wait."""

    share: Share
    used: int = 0
    waiting: deque[tuple[asyncio.Future[None], int]] = field(default_factory=deque)


class SeatPool:
    """Seats, handed out to users in turn."""

    def __init__(self, seats: int):
        self._free = seats
        self._lines: dict[str, _Line] = {}
        self._turns: deque[_Line] = deque()
        """Users with waiting requests; the next is the first."""

    async def acquire(self, share: Share, width: int) -> None:
        """Take seats as soon as it is the user's turn; an error if too many of their requests wait already."""
        line = self._lines.get(share.owner)
        if line is None:
            line = self._lines[share.owner] = _Line(share)
        if not self._turns and width <= self._free and line.used + width <= share.seats:
            line.used += width
            self._free -= width
            return
        if len(line.waiting) >= share.waiting:
            raise StatusError(
                429,
                f"{share.subject} {len(line.waiting)} requests waiting, and {share.waiting} may wait:"
                " send fewer at a time, or try again later",
                retry_after=RETRY_AFTER,
            )
        request = asyncio.get_running_loop().create_future(), width
        line.waiting.append(request)
        if len(line.waiting) == 1:
            self._turns.append(line)
        self._hand_out()
        if request[0].done():
            return
        try:
            await request[0]
        except asyncio.CancelledError:
            if not request[0].cancelled():
                self.release(share, width)
            elif request in line.waiting:
                self._leave(line, request)
            raise

    def _leave(self, line: _Line, request: tuple[asyncio.Future[None], int]) -> None:
        line.waiting.remove(request)
        if not line.waiting:
            self._turns.remove(line)
            self._forget_if_idle(line)

    def release(self, share: Share, width: int) -> None:
        line = self._lines[share.owner]
        line.used -= width
        self._free += width
        self._hand_out()
        self._forget_if_idle(line)

    def _forget_if_idle(self, line: _Line) -> None:
        if not line.used and not line.waiting:
            self._lines.pop(line.share.owner, None)

    def _hand_out(self) -> None:
        """Give free seats to the users who wait, a request each, until nobody can have more."""
        blocked = 0
        while blocked < len(self._turns):
            line = self._turns[0]
            turn, width = line.waiting[0]
            if turn.cancelled():  # and its task has yet to hear of it
                self._leave(line, line.waiting[0])
                continue
            self._turns.popleft()
            if line.used + width > line.share.seats:
                self._turns.append(line)
                blocked += 1
                continue
            if width > self._free:
                # Nobody overtakes, lest small requests always take the room of a large one.
                self._turns.appendleft(line)
                return
            line.waiting.popleft()
            line.used += width
            self._free -= width
            turn.set_result(None)
            if line.waiting:
                self._turns.append(line)
            blocked = 0


class Seats(AbstractAsyncContextManager[None]):
    """Seats that a user has within `async with`, as often as that is entered."""

    def __init__(self, pool: SeatPool, share: Share, width: int):
        self._pool = pool
        self._share = share
        self._width = width

    async def __aenter__(self) -> None:
        await self._pool.acquire(self._share, self._width)

    async def __aexit__(self, *_: object) -> None:
        """They are free when the event loop has come round, so that others are served before this user's next."""
        asyncio.get_running_loop().call_soon(self._pool.release, self._share, self._width)


class OpenResponses:
    """Responses without an end of their own, counted by user."""

    def __init__(self, noun: str, most: int, shared: int):
        """`noun` is what errors call them; `shared` is how many all users without privileges may have together."""
        self._noun = noun
        self._most = most
        self._shared = shared
        self._counts: dict[str, int] = {}
        self._shared_count = 0

    @contextmanager
    def count(self, share: Share, allowed: int, shared: bool) -> Iterator[None]:
        """An error if the user, or all together, have too many."""
        count = self._counts.get(share.owner, 0)
        if count >= allowed:
            raise self._too_many(share, count, f"{allowed} are allowed")
        everybody = self._shared_count if shared else sum(self._counts.values())
        most = self._shared if shared else self._most
        if everybody >= most:
            raise self._too_many(share, count, f"all users {everybody} of {most}")
        self._counts[share.owner] = count + 1
        self._shared_count += shared
        try:
            yield
        finally:
            self._shared_count -= shared
            self._counts[share.owner] -= 1
            if not self._counts[share.owner]:
                del self._counts[share.owner]

    def _too_many(self, share: Share, count: int, why: str) -> StatusError:
        message = f"{share.subject} {count} {self._noun} open, and {why}: close some, or try again later"
        return StatusError(429, message, retry_after=WATCH_RETRY_AFTER)


class UserShares:
    """The seats, watches and streams of all users."""

    def __init__(self) -> None:
        self._shared = SeatPool(SHARED_SEATS)
        self._privileged = SeatPool(PRIVILEGED_SEATS)
        self._turns = SeatPool(TURNS)
        self._privileged_turns = SeatPool(TURNS)
        self._watches = OpenResponses("watches", MOST_WATCHES, SHARED_WATCHES)
        self._streams = OpenResponses("streams", MOST_STREAMS, SHARED_STREAMS)

    def seats(self, user: User, width: int = 1) -> Seats:
        """For a request, once it is the user's turn; an error if too many of their requests wait already."""
        share = share_of(user)
        pool = self._privileged if is_privileged(user) else self._shared
        return Seats(pool, share, min(width, USER_SEATS, share.seats))

    def turns(self, user: User) -> Seats:
        """For each part of a long response of this user that is to be encoded."""
        privileged = is_privileged(user)
        pool = self._privileged_turns if privileged else self._turns
        share = share_of(user)._replace(seats=TURNS if privileged else USER_TURNS, waiting=MOST_CONNECTIONS)
        return Seats(pool, share, 1)

    def watch(self, user: User) -> AbstractContextManager[None]:
        """A watch, or a log that is followed; an error if the user has too many."""
        share = share_of(user)
        return self._watches.count(share, share.watches, not is_privileged(user))

    def stream(self, user: User) -> AbstractContextManager[None]:
        """A stream of a pod; an error if the user has too many."""
        share = share_of(user)
        return self._streams.count(share, share.streams, not is_privileged(user))
