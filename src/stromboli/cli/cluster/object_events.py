"""What happened to objects, by their Events: of several objects in one sequence, each told once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import EVENTS, Manifest, name_of, namespace_of
from stromboli.cli.cluster.object_output import GAP, table_lines
from stromboli.embedded.tables.age_text import duration_text, instant

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

LONGEST_MESSAGE = 2000
"""Characters of a message that are kept."""
MOST_SHOWN = 20
"""Events at the end of a description, the latest ones."""


class Happening(NamedTuple):
    """One or more Events that say the same of the same object."""

    first: float
    last: float
    type: str
    reason: str
    object: str
    """`pod/train-worker-0`."""
    message: str
    times: int
    source: str
    namespace: str

    @property
    def identity(self) -> tuple[str, ...]:
        return (self.namespace, self.object, self.type, self.reason, self.message)

    def when(self, now: float) -> str:
        """How long ago, as kubectl tells it."""
        last = duration_text(now - self.last)
        return last if self.times < 2 else f"{last} (x{self.times} over {duration_text(now - self.first)})"


def happening(event: Manifest) -> Happening:
    """What an Event tells. Old recorders set a count and two times, new ones eventTime and a series."""
    series, source = event.get("series") or {}, event.get("source") or {}
    about = event.get("involvedObject") or {}
    created = (event.get("metadata") or {}).get("creationTimestamp")
    times = (event.get("firstTimestamp"), event.get("eventTime"), created)
    first = next((moment for moment in map(instant, times) if moment is not None), 0.0)
    latest = (series.get("lastObservedTime"), event.get("lastTimestamp"))
    last = next((moment for moment in map(instant, latest) if moment is not None), first)
    count = series.get("count") or event.get("count") or 1
    return Happening(
        min(first, last),
        last,
        str(event.get("type") or ""),
        str(event.get("reason") or ""),
        f"{str(about.get('kind') or '').lower()}/{about.get('name') or ''}",
        str(event.get("message") or "").strip()[:LONGEST_MESSAGE],
        count if isinstance(count, int) else 1,
        str(source.get("component") or event.get("reportingComponent") or ""),
        str(about.get("namespace") or ""),
    )


def merged(happenings: Iterable[Happening]) -> list[Happening]:
    """In the order of time, those that say the same of the same object as one."""
    by_identity: dict[tuple[str, ...], Happening] = {}
    for each in happenings:
        known = by_identity.get(each.identity)
        by_identity[each.identity] = each if known is None else _together(known, each)
    return sorted(by_identity.values(), key=lambda each: (each.last, each.first))


def _together(known: Happening, other: Happening) -> Happening:
    return known._replace(
        first=min(known.first, other.first),
        last=max(known.last, other.last),
        times=known.times + other.times,
    )


async def events_of(session: ClusterSession, manifest: Manifest) -> list[Happening]:
    """The events of an object: those of its kind and name, and of its uid if they say one."""
    name, uid = name_of(manifest), (manifest.get("metadata") or {}).get("uid")
    fields = f"involvedObject.name={name},involvedObject.kind={manifest.get('kind')}"
    where = namespace_of(manifest)
    listed = await session.list(EVENTS, where, fields=fields)
    mine = [
        event for event in listed.items if (event.get("involvedObject") or {}).get("uid") in (None, "", uid)
    ]
    return merged(map(happening, mine))


def event_lines(happenings: list[Happening], most: int = MOST_SHOWN) -> list[str]:
    """The latest events as lines of a table; messages, which come last, in full."""
    now = time.time()
    latest = happenings[-most:]
    heads = table_lines(
        ["AGE", "TYPE", "REASON"], [[each.when(now), each.type, each.reason] for each in latest]
    )
    width = max(map(len, heads))
    messages = ["MESSAGE", *(shown(each.message) for each in latest)]
    return (
        [f"{head:<{width}}{GAP}{text}" for head, text in zip(heads, messages, strict=True)] if latest else []
    )
