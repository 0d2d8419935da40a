"""What waits and why: jobs that wait for the same cause together, however numbers and names in their reasons differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from stromboli.cli.dashboard.pages.page_content import address, queue_address
from stromboli.cli.dashboard.pages.page_elements import (
    TITLES,
    Row,
    age,
    amount,
    card,
    link,
    number_link,
    plain_table,
    short_text,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

TITLE = "What waits, and why"
CAUSES_SHOWN = 8
"""That have a row of their own."""
QUEUES_SHOWN = 5
"""Named for each cause."""
COMPARED_LENGTH = 400
"""Characters of a reason that are compared."""
KNOWN_REASONS = 4096
VARYING = "…"
_WORDS = re.compile(r'\s*"[^"]*"|\s*[^\s"]+|\s*"')


class Reason(NamedTuple):
    """Why a job waits, read in words."""

    words: tuple[str, ...]
    normal: tuple[str, ...]
    """The same without what tells the reasons of two jobs apart."""
    digest: str
    """Of the normal words: what addresses name a cause by."""


@dataclass(slots=True)
class WaitingCause:
    """Jobs that wait for the same cause."""

    digest: str
    words: list[str]
    """Of the reason; `VARYING` where it differs between them."""
    jobs: int = 0
    pods: int = 0
    """Of theirs that wait; those that do not exist yet are not among them."""
    wants: Counter[str] = field(default_factory=Counter)
    """What these pods ask for together."""
    to_come: int = 0
    """Pods of gangs that have none yet."""
    asks: Counter[str] = field(default_factory=Counter)
    """What those will ask for together."""
    queues: Counter[str] = field(default_factory=Counter)
    """Jobs by queue."""
    since: float = 0.0
    """When the oldest of them was created."""

    @property
    def text(self) -> str:
        return "".join(self.words).strip()

    def jobs_address(self, queue: str = "") -> str:
        """The list of these jobs, or of those in one queue."""
        return address("/jobs", cause=self.digest, queue=queue)

    def add_reason(self, words: Sequence[str]) -> None:
        """One more wording of the same reason."""
        self.words = [
            known if known == word or VARYING in known else _varying(known)
            for known, word in zip(self.words, words, strict=True)
        ]

    def add(self, row: Row) -> None:
        """One more job."""
        self.jobs += 1
        self.pods += row["pending"]
        for resource, wanted in row["waiting"].items():
            self.wants[resource] += wanted
        self.to_come += row["toCome"]
        for resource, wanted in row["asks"].items():
            self.asks[resource] += wanted
        self.queues[row["queue"]] += 1
        if row["created"] and (not self.since or row["created"] < self.since):
            self.since = row["created"]


def waiting_causes(rows: Iterable[Row]) -> list[WaitingCause]:
    """Causes for which jobs wait, those of most jobs first; `rows` are those of `ClusterContent.all_jobs`."""
    causes: dict[tuple[str, ...], WaitingCause] = {}
    by_reason: dict[tuple[str, str], WaitingCause] = {}
    for row in rows:
        if not row["waitsFor"]:
            continue
        key = row["waitsFor"][:COMPARED_LENGTH], row["queue"]
        cause = by_reason.get(key)
        if cause is None:
            reason = _reading(*key)
            new = WaitingCause(reason.digest, list(reason.words))
            cause = by_reason[key] = causes.setdefault(reason.normal, new)
            cause.add_reason(reason.words)
        cause.add(row)
    return sorted(causes.values(), key=lambda cause: (-cause.jobs, cause.text))


def waits_for_cause(row: Row, digest: str) -> bool:
    """Whether a job waits for the cause that an address names."""
    return (
        bool(row["waitsFor"]) and _reading(row["waitsFor"][:COMPARED_LENGTH], row["queue"]).digest == digest
    )


@lru_cache(KNOWN_REASONS)
def _reading(text: str, queue: str) -> Reason:
    words = tuple(_WORDS.findall(text))
    normal = tuple(_normal(word.strip(), queue) for word in words)
    digest = blake2b("\n".join(normal).encode(errors="replace"), digest_size=8).hexdigest()
    return Reason(words, normal, digest)


def _normal(word: str, queue: str) -> str:
    is_name = word.startswith('"') or word.strip(".,;:()'") == queue
    return VARYING if is_name or any(char.isdigit() for char in word) else word


def _varying(word: str) -> str:
    """The mark of words that differ, with the space and the punctuation that they have in common."""
    before = word[: len(word) - len(word.lstrip())]
    return f"{before}{VARYING}{',' if word.endswith(',') else ''}"


# -- as a card


def waiting_card(rows: Iterable[Row], now: float) -> Markup:
    """What waits and why, for the overview; `rows` are those of `ClusterContent.all_jobs`."""
    causes = waiting_causes(rows)
    if not causes:
        return card(TITLE, note="No job waits.")
    titles = ("Cause", "Jobs", "Pods", "Want", "Queues", "Longest")
    lines = [_cells(cause, now) for cause in causes[:CAUSES_SHOWN]]
    return card(
        TITLE,
        plain_table(TITLE, titles, lines, numbers=("Jobs", "Pods", "Longest"), text=("Cause", "Queues")),
        *_others(causes[CAUSES_SHOWN:]),
    )


def _cells(cause: WaitingCause, now: float) -> list[object]:
    target = cause.jobs_address()
    return [
        link(target, short_text(cause.text)),
        number_link(cause.jobs, target),
        _pods(cause, target),
        _wants(cause),
        _queues(cause),
        age(cause.since, now),
    ]


def _pods(cause: WaitingCause, target: str) -> Markup:
    """Those that wait, and in words those that do not exist yet."""
    if not cause.to_come:
        return number_link(cause.pods, target)
    waiting = [number_link(cause.pods, target), " and "] if cause.pods else []
    return joined([*waiting, f"{cause.to_come:,} to come"])


def _wants(cause: WaitingCause) -> str:
    """`12 CPU, 64Gi Memory`; a dash where nothing is known."""
    wanted, asked = _amounts(cause.wants), _amounts(cause.asks)
    return "; ".join(filter(None, [wanted, f"asks for {asked}" if asked else ""])) or "-"


def _amounts(wants: Counter[str]) -> str:
    parts = [
        f"{amount(value, resource)} {TITLES.get(resource, resource)}"
        for resource, value in wants.items()
        if value > 0
    ]
    return ", ".join(parts)


def _queues(cause: WaitingCause) -> Markup:
    """Each with the number of its jobs."""
    named = sorted(cause.queues.items(), key=lambda entry: (-entry[1], entry[0]))
    links = [
        element(
            "span",
            link(queue_address(name), shortened(name, 60)),
            " (",
            number_link(jobs, cause.jobs_address(name)),
            ")",
        )
        for name, jobs in named[:QUEUES_SHOWN]
    ]
    more = [f"and {len(named) - QUEUES_SHOWN:,} more"] if len(named) > QUEUES_SHOWN else []
    return joined([*links, *more], ", ")


def _others(causes: Sequence[WaitingCause]) -> list[Markup]:
    if not causes:
        return []
    jobs, others = sum(cause.jobs for cause in causes), len(causes)
    waiting = "1 more job waits" if jobs == 1 else f"{jobs:,} more jobs wait"
    text = f"{waiting} for {others:,} other cause{'' if others == 1 else 's'}: "
    return [element("p", text, link(address("/jobs", waiting=1), "all that wait"), class_="note")]
