"""A queue's history as an annotation of the queue: compact, bounded, and validated when read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from stromboli.plugins.fairshare.usage_history import Decay, Number, QueueHistory, UsageRecord, is_continuous

MAX_USERS = 256
MAX_BYTES = 16 * 1024
MAX_IDLE_USERS = 10_000
"""Users who hold nothing and are kept between saves, per queue."""
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
    room = MAX_BYTES - len(msgspec.json.encode(saved))
    for user in _largest_first(history["users"])[:MAX_USERS]:
        entry = _entry(history["users"][user])
        room -= len(msgspec.json.encode({user: entry}))
        if room < 0:
            break
        saved.users[user] = entry
    return msgspec.json.encode(saved, order="deterministic").decode()


def from_annotation(text: str, decay: Decay, now: float) -> QueueHistory:
    """The history in an annotation, brought up to now; `ValueError` if it is invalid."""
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
