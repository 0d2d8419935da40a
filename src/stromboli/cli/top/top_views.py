"""The views of `stromboli top`: which rows and columns each has, and by what it can be sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stromboli.api import names
from stromboli.cli.cluster.usage_bar import usage_bar
from stromboli.cli.live.cluster_content import GPU, WAITING, ClusterContent
from stromboli.cli.status.resource_columns import short_bytes
from stromboli.embedded.tables.age_text import duration_text

Content = dict[str, Any]
BAR = 10
"""Columns of a bar."""
TITLES = {names.CPU: "CPU", names.MEMORY: "MEM", GPU: "GPU"}


class ViewColumn(NamedTuple):
    """A column: its title, its text, and whether numbers stand to the right."""

    title: str
    text: Callable[[Content, float], str]
    to_the_right: bool = False


class Sorting(NamedTuple):
    """An order of rows, by a name that the user sees."""

    name: str
    key: Callable[[Content], Any]


@dataclass(frozen=True)
class View:
    """Rows of one kind."""

    title: str
    rows: Callable[[ClusterContent], list[Content]]
    columns: Callable[[Sequence[str]], list[ViewColumn]]
    """By the resources that the cluster has; the last one has the room that is left."""
    sortings: tuple[Sorting, ...]
    words: Callable[[Content], str]
    """What a filter looks at."""
    style: Callable[[Content], str] = lambda _: ""

    def chosen(self, content: ClusterContent, sorting: int, filter: str) -> list[Content]:
        """The rows that a filter leaves, in order."""
        key = f"{self.title}/{sorting}/{filter}"
        content.queues()  # shares change a little later than what they follow from
        return content.cached(key, lambda: self._chosen(content, sorting, filter))

    def _chosen(self, content: ClusterContent, sorting: int, filter: str) -> list[Content]:
        wanted = filter.lower()
        rows = [row for row in self.rows(content) if not wanted or wanted in self.words(row).lower()]
        return sorted(rows, key=self.sortings[sorting % len(self.sortings)].key)


def amount_text(amount: float | None, resource: str) -> str:
    """`12`, `1.5`, `180000`, `64Gi`; a dash for what is not stated."""
    if amount is None:
        return "-"
    if resource == names.MEMORY:
        return short_bytes(amount)
    return f"{amount:.4g}" if amount < 1000 else f"{amount:.0f}"


def of_text(row: Content, resource: str, whole: str) -> str:
    """`12/16`."""
    used, total = row["used"].get(resource, 0.0), row[whole].get(resource)
    return f"{amount_text(used, resource)}/{amount_text(total, resource)}"


def share(row: Content, resource: str, whole: str) -> float:
    """The part in use; of what nobody has any of, nothing."""
    total = row[whole].get(resource) or 0.0
    return float(row["used"].get(resource, 0.0)) / total if total else 0.0


def _largest_share(whole: str) -> Callable[[Content], float]:
    return lambda row: -max((share(row, resource, whole) for resource in row[whole]), default=0.0)


def _bar(resource: str, whole: str) -> Callable[[Content, float], str]:
    def bar(row: Content, now: float) -> str:
        total = row[whole].get(resource)
        return " " * BAR if total is None else usage_bar(row["used"].get(resource, 0.0), total, BAR)

    return bar


def _of(resource: str, whole: str) -> Callable[[Content, float], str]:
    return lambda row, _: of_text(row, resource, whole)


def _used(resource: str, part: str) -> Callable[[Content, float], str]:
    return lambda row, _: amount_text(row[part].get(resource, 0.0), resource)


def _field(key: str) -> Callable[[Content, float], str]:
    return lambda row, _: str(row[key])


def _age(row: Content, now: float) -> str:
    return duration_text(now - row["created"]) if row["created"] else "-"


def _bars(resources: Sequence[str], whole: str) -> list[ViewColumn]:
    columns = []
    for resource in resources:
        columns.append(ViewColumn(TITLES[resource], _bar(resource, whole)))
        columns.append(ViewColumn("used/of", _of(resource, whole), True))
    return columns


def _queue_columns(resources: Sequence[str]) -> list[ViewColumn]:
    return [
        ViewColumn("QUEUE", lambda row, _: f"{row['name']}{_state(row)}"),
        ViewColumn("RUN", _field("running"), True),
        ViewColumn("WAIT", _field("waiting"), True),
        *_bars(resources, "deserved"),
    ]


def _state(queue: Content) -> str:
    return f" ({queue['state']})" if queue["state"] not in ("", names.QUEUE_OPEN) else ""


def _job_name(row: Content, now: float) -> str:
    return f"{row['namespace']}/{row['name']}"


def _running_columns(resources: Sequence[str]) -> list[ViewColumn]:
    return [
        ViewColumn("JOB", _job_name),
        ViewColumn("QUEUE", _field("queue")),
        ViewColumn("PODS", lambda row, _: f"{row['running']}/{row['pods']}", True),
        *(ViewColumn(TITLES[resource], _used(resource, "used"), True) for resource in resources),
        ViewColumn("AGE", _age, True),
        ViewColumn("PHASE", _field("phase")),
    ]


def _waiting_columns(resources: Sequence[str]) -> list[ViewColumn]:
    return [
        ViewColumn("WAITING JOB", _job_name),
        ViewColumn("QUEUE", _field("queue")),
        ViewColumn("PODS", lambda row, _: f"{row['pods']}/{row['minMember']}", True),
        ViewColumn("AGE", _age, True),
        ViewColumn("WAITS FOR", _field("waitsFor")),
    ]


def _node_columns(resources: Sequence[str]) -> list[ViewColumn]:
    return [
        ViewColumn("NODE", _field("name")),
        ViewColumn("STATE", _field("state")),
        ViewColumn("PODS", _field("pods"), True),
        *_bars(resources, "total"),
    ]


def _news_columns(resources: Sequence[str]) -> list[ViewColumn]:
    return [
        ViewColumn("AGO", lambda row, now: duration_text(now - row["time"]), True),
        ViewColumn("WHAT", _field("what")),
        ViewColumn("LATELY", _news),
    ]


def _news(row: Content, now: float) -> str:
    more = f" and {row['pods'] - 1} more pods" if row["pods"] > 1 else ""
    return f"{row['subject']}{more}: {row['text']}"


def _by(*keys: str) -> Callable[[Content], Any]:
    return lambda row: tuple(row[key] for key in keys)


_JOB_SORTINGS = (
    Sorting("age", _by("created", "namespace", "name")),
    Sorting("name", _by("namespace", "name")),
    Sorting("queue", _by("queue", "created")),
)
QUEUES = View(
    "Queues",
    lambda content: [row for row in content.queues() if row["name"] != names.ROOT_QUEUE],
    _queue_columns,
    (
        Sorting("name", _by("name")),
        Sorting("use", _largest_share("deserved")),
        Sorting("waiting", lambda row: -row["waiting"]),
    ),
    lambda row: str(row["name"]),
)
RUNNING = View(
    "Jobs",
    lambda content: [row for row in content.jobs() if row["phase"] not in WAITING],
    _running_columns,
    (*_JOB_SORTINGS, Sorting("cpu", lambda row: -row["used"].get(names.CPU, 0.0))),
    lambda row: f"{row['namespace']}/{row['name']} {row['queue']} {row['phase']}",
)
WAITING_JOBS = View(
    "Waiting",
    lambda content: [row for row in content.jobs() if row["phase"] in WAITING],
    _waiting_columns,
    _JOB_SORTINGS,
    lambda row: f"{row['namespace']}/{row['name']} {row['queue']} {row['waitsFor']}",
    lambda _: "yellow",
)
NODES = View(
    "Nodes",
    lambda content: content.nodes(),
    _node_columns,
    (
        Sorting("name", _by("name")),
        Sorting("use", _largest_share("total")),
        Sorting("pods", lambda row: -row["pods"]),
        Sorting("state", _by("state", "name")),
    ),
    lambda row: f"{row['name']} {row['state']}",
    lambda row: "" if row["state"] in ("Ready", "Unknown") else "red",
)
NEWS = View(
    "Lately",
    lambda content: content.news(),
    _news_columns,
    (Sorting("time", lambda row: -row["time"]),),
    lambda row: f"{row['what']} {row['subject']} {row['text']}",
    lambda row: "red" if row["what"] == "evicted" else "green",
)
VIEWS = (QUEUES, WAITING_JOBS, RUNNING, NODES, NEWS)
ALL = "All"
TABS = (ALL, *(view.title for view in VIEWS))
