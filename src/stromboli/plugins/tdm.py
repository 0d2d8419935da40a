"""Time division: nodes of a revocable zone accept batch work in certain hours (spec 03 13)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from stromboli.api import names
from stromboli.api.go_scalars import boolean, duration
from stromboli.engine.placement.node_functions import Check, Column, Nodes, reads
from stromboli.engine.plugin import Bound, Eviction, Plugin
from stromboli.engine.points import Vote, in_turn
from stromboli.engine.session import Session
from stromboli.engine.waiting.fixed_point import UnrepeatableReads
from stromboli.model.cluster import Dirty
from stromboli.model.job import Job
from stromboli.model.node_columns import Node
from stromboli.model.requirements.placement_requirement import REVOCABLE_ZONE
from stromboli.model.status import Status
from stromboli.model.task import Task
from stromboli.policy.arguments import arg, arg_prefix

_HOURS = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])-([01]?[0-9]|2[0-3]):([0-5][0-9])")
_NUMBER = re.compile(r"([+-]?[0-9]{1,18})(%?)")
_PERIOD = "1m"


def _no_hours(text: str) -> str | None:
    return None if _HOURS.fullmatch(text.strip()) else "must be hours such as 09:00-17:30"


def _no_duration(text: str) -> str | None:
    return None if duration(text) is not None else "must be a duration such as 1m30s"


@dataclass(frozen=True, slots=True)
class TdmArguments:
    """The hours of each zone, and how often tasks are evicted after hours."""

    zones: Mapping[str, str] = arg_prefix(
        "tdm.revocable-zone.",
        "",
        "Hours in which a revocable zone is open, such as 09:00-17:30; closed by default.",
        check=_no_hours,
    )
    evict_period: str = arg(
        "tdm.evict.period", _PERIOD, "Interval between two rounds of evictions.", check=_no_duration
    )


class Tdm(Plugin):
    """Lets preemptable tasks use revocable nodes during the hours of their zone."""

    name = "tdm"
    honours = frozenset({REVOCABLE_ZONE.name})
    Arguments = TdmArguments
    arguments: TdmArguments

    def __init__(self, arguments: TdmArguments, switches: dict[str, bool]):
        super().__init__(arguments, switches)
        self._period = duration(arguments.evict_period) or 0.0
        self._open: frozenset[str] = frozenset()
        """The zones that are open now."""
        self._evicts = False
        """Whether this cycle may evict, as the pause after the last round of evictions is over."""

    def opening(self, session: Session, dirty: Dirty) -> None:
        zones = self.arguments.zones.items()
        self._open = frozenset(zone for zone, hours in zones if _is_within(hours, session.reads))
        before = session.cluster.memory.get(self.name)
        self._evicts = before is None or self._is_over(session, before["evicted_at"])
        if self._evicts:
            session.restore_if_lost(session.cluster.memory, self.name, before)
            session.cluster.memory[self.name] = {"evicted_at": session.now}

    def _is_over(self, session: Session, evicted_at: float) -> bool:
        """Whether the pause after a round of evictions is over, or the clock was set back before it."""
        return session.has_come(evicted_at + self._period) or not session.has_come(evicted_at)

    # -- nodes

    def shape_key(self, task: Task) -> Hashable:
        """The open zones belong to the key: caches about nodes are valid until a zone opens or closes."""
        return task.zone, self._open

    @reads("static")
    def filter_nodes(self, task: Task, nodes: Nodes) -> Iterator[Check]:
        codes, zones = nodes.label(names.REVOCABLE_ZONE)
        revocable = {zone: code for zone, code in zones.items() if zone}
        for zone, code in revocable.items():
            if zone not in self._open:
                yield Check(codes != code, self._why_closed(zone))
        if not task.zone:
            yield Check(~np.isin(codes, list(revocable.values())), names.REVOCABLE_NODE_NOT_ALLOWED)

    def _why_closed(self, zone: str) -> str:
        if zone not in self.arguments.zones:
            return names.REVOCABLE_ZONE_UNKNOWN.format(zone=zone)
        return names.REVOCABLE_ZONE_CLOSED.format(zone=zone, hours=self.arguments.zones[zone])

    @reads("static")
    def score_nodes(self, task: Task, nodes: Nodes) -> Column:
        if not task.zone:
            return nodes.zeros()
        codes, zones = nodes.label(names.REVOCABLE_ZONE)
        return 100.0 * np.isin(codes, [code for zone, code in zones.items() if zone in self._open])

    # -- jobs

    def job_order(self, job: Job) -> bool:
        return _is_preemptable(job)

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.enough_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not _is_preemptable(job) and job.counts[Status.PENDING] > 0

    # -- victims

    def why_spared(self, task: Task, candidates: Sequence[Task]) -> str:
        return "its revocable zone is open"

    def victim_bound(self, point: str, task: Task) -> Bound:
        takes = _may_take_from_others(task)
        return Bound(takes, lambda job: takes, lambda queue: None)

    @in_turn
    def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:
        if not _may_take_from_others(task):
            return []
        return _within_budgets(
            candidate
            for candidate in candidates
            if candidate.preemptable and candidate.status is Status.RUNNING and _zone_of(candidate.node) == ""
        )

    @in_turn
    def unified_evictable(self, eviction: Eviction, candidates: list[Task]) -> list[Task] | None:
        """Evictions must be within the budgets of the job; Volcano's gang-aware actions ignore them."""
        return _within_budgets(candidates) if eviction.kind == "consolidate" else None

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        if not self._evicts:
            return []
        victims = []
        for zone in [zone for zone in self.arguments.zones if zone not in self._open]:
            leaving = [task for task in tasks if task.preemptable and _zone_of(task.node) == zone]
            victims += _within_budgets(sorted(leaving, key=self.session.task_key, reverse=True))
        return victims


def _is_within(hours: str, clock: UnrepeatableReads) -> bool:
    """Whether it is within these hours, in the local time of the process; the last second counts.

    # quirk: spec 03 13: of 22:00-06:00 the hours after midnight do not count.
    """
    matched = _HOURS.fullmatch(hours.strip())
    if matched is None:
        return False
    today = datetime.fromtimestamp(clock.time).replace(second=0, microsecond=0, fold=0)
    hour, minute, last_hour, last_minute = map(int, matched.groups())
    begin = today.replace(hour=hour, minute=minute)
    end = today.replace(hour=last_hour, minute=last_minute)
    if end <= begin:
        end += timedelta(days=1)
    clock.has_come(_midnight_after(today))  # from then on they are the hours of another day
    return clock.has_come(begin.timestamp()) and not clock.has_come(end.timestamp() + 1)


def _midnight_after(today: datetime) -> float:
    """The start of the next day; the first one if the clock is set back over midnight."""
    return (today.replace(hour=0, minute=0) + timedelta(days=1)).timestamp()


def _zone_of(node: Node | None) -> str | None:
    """The revocable zone of a node, empty for an ordinary one; None if the node is unknown."""
    return None if node is None or node.object is None else node.labels.get(names.REVOCABLE_ZONE, "")


def _is_preemptable(job: Job) -> bool:
    """Whether a PodGroup is marked as preemptable; unlike a pod, it is not by default."""
    if job.group is None:
        return False
    meta, key = job.group.metadata, names.PREEMPTABLE
    return boolean(meta.annotations.get(key, meta.labels.get(key, ""))) is True


def _may_take_from_others(task: Task) -> bool:
    """# quirk: spec 03 13: only a pod that is marked as not preemptable may preempt here."""
    return not task.preemptable and not task.zone


def _within_budgets(tasks: Iterable[Task]) -> list[Task]:
    """The first tasks of each job, as many as it may lose."""
    by_job: dict[Job, list[Task]] = {}
    for task in tasks:
        if task.job is not None:
            by_job.setdefault(task.job, []).append(task)
    return [task for job, members in by_job.items() for task in members[: _budget(job)]]


def _budget(job: Job) -> int:
    """The number of tasks that a job may lose at once.

    # quirk: spec 03 13: one by default, but also if fewer than the minimum are running.
    """
    least = job.annotations.get(names.JDB_MIN_AVAILABLE)
    most = job.annotations.get(names.JDB_MAX_UNAVAILABLE) if least is None else None
    total, running = len(job.tasks), job.counts[Status.RUNNING]
    if most:
        unavailable = total - job.counts[Status.SUCCEEDED] - job.counts[Status.FAILED] - running
        return max(0, _part(most, total) - unavailable)
    if least and running >= _part(least, total):
        return running - _part(least, total)
    return 1


def _part(text: str, total: int) -> int:
    """A number, or a percentage of the total, rounded up; anything else is zero."""
    matched = _NUMBER.fullmatch(text)
    if matched is None:
        return 0
    number = int(matched[1])
    if matched[2]:
        return -(-number * total // 100)
    return number if -(2**31) <= number < 2**31 else 0
