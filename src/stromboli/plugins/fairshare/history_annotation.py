"""A queue's history as an annotation of the queue: compact, bounded, and read with suspicion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from stromboli.plugins.fairshare.usage_history import Fading, Number, Past, QueueHistory, regular

MOST_USERS = 256
MOST_BYTES = 16 * 1024
MOST_REMEMBERED = 10_000
"""Users without anything that a queue remembers between saves."""
NEGLIGIBLE = 1e-6
"""Usage that is as good as forgotten: a whole cluster for a microsecond."""

Entry = tuple[Number, Number]
"""Usage, and the share that is held."""


class Saved(msgspec.Struct, forbid_unknown_fields=True):
    """`{"v":1,"at":1793534400.0,"queue":[5400.0,0.75],"users":{"ann":[3600.0,0.5],"bob":[1800.0,0.25]}}`."""

    v: Literal[1]
    at: Number
    queue: Entry
    users: dict[str, Entry]


def settle(history: QueueHistory, fading: Fading, now: float) -> None:
    """Bring everybody's past up to now, and forget whoever is as good as forgotten."""
    history["whole"] = fading.settled(history["whole"], now, history["whole"].share)
    users = {user: fading.settled(past, now, past.share) for user, past in history["users"].items()}
    idle = [user for user in _largest_first(users) if not users[user].share]
    for place, user in enumerate(idle):
        if place >= MOST_REMEMBERED or users[user].usage < NEGLIGIBLE:
            del users[user]
    history["users"] = users


def written(history: QueueHistory, now: float) -> str:
    """A settled history as a text of at most `MOST_BYTES`: the smallest usages are left out first."""
    saved = Saved(1, now, _entry(history["whole"]), {})
    room = MOST_BYTES - len(msgspec.json.encode(saved))
    for user in _largest_first(history["users"])[:MOST_USERS]:
        entry = _entry(history["users"][user])
        room -= len(msgspec.json.encode({user: entry}))
        if room < 0:
            break
        saved.users[user] = entry
    return msgspec.json.encode(saved, order="deterministic").decode()


def read(text: str, fading: Fading, now: float) -> QueueHistory:
    """The history that an annotation tells, brought across the time since; `ValueError` if it makes no sense."""
    if len(text) > MOST_BYTES or len(text.encode()) > MOST_BYTES:
        raise ValueError(f"longer than {MOST_BYTES} bytes")
    saved = msgspec.json.decode(text, type=Saved)

    def past(entry: Entry) -> Past:
        usage, share = entry
        found = Past(usage, saved.at, share)
        return found if regular(saved.at, now) else fading.across(found, saved.at, now)

    users = {user: past(entry) for user, entry in saved.users.items()}
    return QueueHistory(saved=min(saved.at, now), changed=False, whole=past(saved.queue), users=users)


def _entry(past: Past) -> Entry:
    return past.usage, past.share


def _largest_first(users: dict[str, Past]) -> list[str]:
    names: Iterable[str] = users
    return sorted(names, key=lambda user: (-users[user].usage, -users[user].share, user))
