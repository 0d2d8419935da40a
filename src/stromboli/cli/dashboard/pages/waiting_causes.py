"""What waits and why: jobs that wait for the same cause together, however numbers and names in their reasons differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from stromboli.cli.dashboard.pages.page_content import address, queue_address
from stromboli.cli.dashboard.pages.page_elements import (
    TITLES,
    Row,
    age,
    amount,
    card,
    link,
    number_link,
    short_text,
)
from stromboli.simulator.reports.page.markup import Markup, element, joined, shortened

CAUSES_SHOWN = 8
"""That have a row of their own."""
QUEUES_SHOWN = 5
"""Named for each cause."""
COMPARED_LENGTH = 400
"""Characters of a reason that are compared."""
SEARCH_LENGTH = 150
"""Characters of the words by which the jobs of a cause are searched."""
KNOWN_REASONS = 4096
VARYING = "…"
_WORDS = re.compile(r'\s*"[^"]*"|\s*[^\s"]+|\s*"')


@dataclass(slots=True)
class WaitingCause:
    """Jobs that wait for the same cause."""

    words: list[str]
    """Of the reason; `VARYING` where it differs between them."""
    jobs: int = 0
    pods: int = 0
    """That they have, or need at least if there are fewer yet."""
    wants: Counter[str] = field(default_factory=Counter)
    """What those of their pods that wait ask for together."""
    queues: Counter[str] = field(default_factory=Counter)
    """Jobs by queue."""
    since: float = 0.0
    """When the oldest of them was created."""

    @property
    def text(self) -> str:
        return "".join(self.words).strip()

    @property
    def jobs_address(self) -> str:
        """The page with these jobs, by the words that all of them have in common."""
        search: list[str] = []
        for word in self.words:
            if VARYING not in word and sum(map(len, search)) + len(word) <= SEARCH_LENGTH:
                search.append(word)
        return address("/jobs", waiting=1, q="".join(search).strip())

    def add_reason(self, words: Sequence[str]) -> None:
        """One more wording of the same reason."""
        self.words = [
            known if known == word or VARYING in known else _varying(known)
            for known, word in zip(self.words, words, strict=True)
        ]

    def add(self, row: Row) -> None:
        """One more job."""
        self.jobs += 1
        self.pods += max(row["pods"], row["minMember"])
        for resource, wanted in row["waiting"].items():
            self.wants[resource] += wanted
        self.queues[row["queue"]] += 1
        if row["created"] and (not self.since or row["created"] < self.since):
            self.since = row["created"]


def waiting_causes(rows: Iterable[Row]) -> list[WaitingCause]:
    """Causes for which jobs wait, those of most jobs first; `rows` are those of `ClusterContent.jobs`."""
    causes: dict[tuple[str, ...], WaitingCause] = {}
    by_reason: dict[tuple[str, str], WaitingCause] = {}
    for row in rows:
        if not row["waitsFor"]:
            continue
        reason = row["waitsFor"][:COMPARED_LENGTH], row["queue"]
        cause = by_reason.get(reason)
        if cause is None:
            words, key = _reading(*reason)
            cause = by_reason[reason] = causes.setdefault(key, WaitingCause(list(words)))
            cause.add_reason(words)
        cause.add(row)
    return sorted(causes.values(), key=lambda cause: (-cause.jobs, cause.text))


@lru_cache(KNOWN_REASONS)
def _reading(reason: str, queue: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A reason in words, and the same without what tells the reasons of two jobs apart."""
    words = tuple(_WORDS.findall(reason))
    return words, tuple(_normal(word.strip(), queue) for word in words)


def _normal(word: str, queue: str) -> str:
    is_name = word.startswith('"') or word.strip(".,;:()'") == queue
    return VARYING if is_name or any(char.isdigit() for char in word) else word


def _varying(word: str) -> str:
    """The mark of words that differ, with the space and the punctuation that they have in common."""
    before = word[: len(word) - len(word.lstrip())]
    return f"{before}{VARYING}{',' if word.endswith(',') else ''}"


# -- as a card


def waiting_card(rows: Iterable[Row], now: float) -> Markup:
    """What waits and why, for the overview; `rows` are those of `ClusterContent.jobs`."""
    causes = waiting_causes(rows)
    if not causes:
        return card("What waits, and why", note="No job waits.")
    head = element(
        "tr",
        *(
            element("th", title, scope="col", class_=class_)
            for title, class_ in (
                ("Cause", "text"),
                ("Jobs", "number"),
                ("Pods", "number"),
                ("Want", None),
                ("Queues", "text"),
                ("Longest", "number"),
            )
        ),
    )
    body = element("tbody", joined((_row(cause, now) for cause in causes[:CAUSES_SHOWN]), "\n"))
    table = element("table", element("thead", head), body)
    return card(
        "What waits, and why",
        element("div", table, class_="scroll", tabindex="0", role="region", aria_label="What waits, and why"),
        *_others(causes[CAUSES_SHOWN:]),
    )


def _row(cause: WaitingCause, now: float) -> Markup:
    target = cause.jobs_address
    return element(
        "tr",
        element("td", link(target, short_text(cause.text)), class_="text"),
        element("td", number_link(cause.jobs, target), class_="number"),
        element("td", number_link(cause.pods, target), class_="number"),
        element("td", _wanted(cause.wants)),
        element("td", _queues(cause.queues), class_="text"),
        element("td", age(cause.since, now), class_="number"),
    )


def _wanted(wants: Counter[str]) -> str:
    """`12 CPU, 64Gi Memory`; a dash before their pods exist."""
    parts = [
        f"{amount(value, resource)} {TITLES.get(resource, resource)}"
        for resource, value in wants.items()
        if value > 0
    ]
    return ", ".join(parts) or "-"


def _queues(queues: Counter[str]) -> Markup:
    named = sorted(queues.items(), key=lambda entry: (-entry[1], entry[0]))
    links = [
        link(queue_address(name), f"{shortened(name, 60)} ({jobs:,})") for name, jobs in named[:QUEUES_SHOWN]
    ]
    more = [f"and {len(named) - QUEUES_SHOWN:,} more"] if len(named) > QUEUES_SHOWN else []
    return joined([*links, *more], ", ")


def _others(causes: Sequence[WaitingCause]) -> list[Markup]:
    if not causes:
        return []
    text = f"{sum(cause.jobs for cause in causes):,} more jobs wait for {len(causes):,} other causes"
    return [element("p", link(address("/jobs", waiting=1), text), class_="note")]
