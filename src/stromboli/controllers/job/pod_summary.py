"""The pods of a job by what a reconcile asks of them, kept up pod by pod.

The pods of a large job change tens of thousands of times in its life, so a change of one must not cost a look at all.
What a reconcile reads of a pod are its `PodFacts`; counts and sets of names follow from them, and a change costs what
the facts of that pod are. A summary that was kept up equals the one of the same pods from scratch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from datetime import datetime
from operator import add
from typing import TypeVar

from stromboli.api import names
from stromboli.api.object_bounds import MAX_PODS
from stromboli.api.pods import FINISHED
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.job.job_pods import Member
from stromboli.controllers.job.pod_facts import Counts, PodFacts, facts_of, known_phase
from stromboli.controllers.job.succeeded_pods import indexes_in, recorded_indexes

Key = TypeVar("Key", bound=Hashable)

ORDINAL_DIGITS = 10
"""Digits of the index in the name of a pod."""
_TERMINATING = "Terminating"


class PodSummary:
    """All pods of a job, for one version of the job and one list of tasks."""

    def __init__(self, job: Job) -> None:
        self.frame = frame_of(job)
        self.pods: dict[str, Pod] = {}
        """By name."""
        self.facts: dict[str, PodFacts] = {}
        self._present: list[int] = [0 for _ in job.spec.tasks]
        """Indexes of wanted pods that exist, as bits, by position of the task; the same below."""
        self._succeeded: list[int] = [0 for _ in job.spec.tasks]
        """Those of pods that show that they succeeded."""
        self._counted: list[int] = [0 for _ in job.spec.tasks]
        """Those of the current version among them that are not being deleted: their success counts."""
        self._before: list[int] = [0 for _ in job.spec.tasks]
        """Those of pods that succeeded by the status of the job, or were deleted since."""
        self._recorded: list[int] = []
        """Those of pods that succeeded by the status alone."""
        self._read: object = None
        """The part of the status that was read."""
        self._ready: list[int] = [0 for _ in job.spec.tasks]
        self.live: set[str] = set()
        """Names of pods that have not ended and are not being deleted."""
        self.ended: set[str] = set()
        """Those that have ended and are not being deleted."""
        self.old: set[str] = set()
        """Those of an earlier version of the job that are not being deleted."""
        self.unwanted: set[str] = set()
        """Those of the job's tasks that should not exist and are not being deleted."""
        self.held: set[str] = set()
        """Those that wait at the gate for other jobs and are not being deleted."""
        self.failed: dict[tuple[str, int], set[str]] = {}
        """Wanted pods of the current version that failed, by task and exit code; so those below, by task."""
        self.pending: dict[str, set[str]] = {}
        """Those that are pending and not being deleted."""
        self.completed: dict[str, set[str]] = {}
        """Those that succeeded."""
        self.restarted: dict[str, dict[str, int]] = {}
        """How often containers were restarted, by task and name, of those that have not ended."""
        self.lost_at: dict[str, datetime] = {}
        """When pods were lost, by the name of the pending pod that replaces them."""
        self._job = job
        self._phases: Counter[str] = Counter()
        self._task_phases: dict[str, Counter[str]] = {}
        self._members = Members(job)
        self._tasks = frozenset(task.name for task in job.spec.tasks)

    @classmethod
    def of(cls, job: Job, pods: Iterable[Pod], deleted: Iterable[str] = ()) -> PodSummary:
        """From scratch."""
        summary = cls(job)
        for pod in pods:
            summary.put(pod)
        summary.read_status(job, deleted)
        return summary

    # -- changes

    def read_status(self, job: Job, deleted: Iterable[str]) -> None:
        """Take over which pods succeeded by the job's status; `deleted`: names of others that did, and were deleted."""
        if self._read is not job.status.controlled_resources:
            self._read, self._recorded = job.status.controlled_resources, recorded_indexes(job)
        self._before = list(self._recorded)
        for name in deleted:
            if name in self._members:
                position, index = self._members[name]
                self._before[position] |= 1 << index

    def put(self, pod: Pod) -> bool:
        """A pod is new or has changed; whether that is news for a reconcile."""
        name = pod.name
        facts, before = facts_of(self._job, pod, self._tasks, self._members), self.facts.get(name)
        self.pods[name] = pod
        if facts == before:
            return False
        if before is not None:
            self._count(name, before, -1)
        self.facts[name] = facts
        self._count(name, facts, 1)
        return True

    def drop(self, name: str) -> bool:
        """A pod is gone; whether it was there."""
        facts = self.facts.pop(name, None)
        if facts is None:
            return False
        del self.pods[name]
        self._count(name, facts, -1)
        return True

    def _count(self, name: str, facts: PodFacts, sign: int) -> None:
        """Count a pod with such facts, or take it off again."""
        enters = sign > 0
        if facts.own:
            self._count_phase(facts, sign)
        if not facts.terminating:
            _note(self.ended if facts.phase in FINISHED else self.live, name, enters)
            if facts.old:
                _note(self.old, name, enters)
            if facts.held:
                _note(self.held, name, enters)
            if facts.own and (not facts.wanted or facts.out_of_sync):
                _note(self.unwanted, name, enters)
        if facts.wanted:
            position, index = self._members[name]
            self._present[position] ^= 1 << index
            self._ready[position] += sign * facts.ready
            if facts.phase == names.POD_SUCCEEDED:
                self._succeeded[position] ^= 1 << index
                if facts.current and not facts.terminating:
                    self._counted[position] ^= 1 << index
            if facts.current:
                self._count_current(name, facts, enters)

    def _count_phase(self, facts: PodFacts, sign: int) -> None:
        if facts.terminating:
            self._phases[_TERMINATING] += sign
            return
        phase = known_phase(facts.phase)
        self._phases[phase] += sign
        self._task_phases.setdefault(facts.task, Counter())[phase] += sign

    def _count_current(self, name: str, facts: PodFacts, enters: bool) -> None:
        """A pod whose changes are lifecycle events."""
        if facts.phase == names.POD_FAILED:
            _note_under(self.failed, (facts.task, facts.exit_code), name, enters)
        elif facts.phase == names.POD_SUCCEEDED:
            _note_under(self.completed, facts.task, name, enters)
        elif facts.phase == names.POD_PENDING and not facts.terminating:
            _note_under(self.pending, facts.task, name, enters)
        if facts.restarts and enters:
            self.restarted.setdefault(facts.task, {})[name] = facts.restarts
        elif facts.restarts:
            del self.restarted[facts.task][name]
        if facts.lost_at is not None and enters:
            self.lost_at[name] = facts.lost_at
        elif facts.lost_at is not None:
            del self.lost_at[name]

    # -- what a reconcile asks

    @property
    def is_complete(self) -> bool:
        """Whether all pods exist that the job should have, or have succeeded before they were deleted."""
        return not any(map(self._missing, range(len(self._present))))

    def wants(self, name: str) -> bool:
        """Whether the job should have a pod of that name."""
        if name not in self._members:
            return False
        position, index = self._members[name]
        return not self.lost(position) >> index & 1

    def lost(self, position: int) -> int:
        """Return the indexes of a task's pods that succeeded and do not exist any more."""
        return self._before[position] & ~self._present[position] & self._all(position)

    @property
    def lost_by_task(self) -> list[int]:
        """The same for all tasks, by position."""
        return [*map(self.lost, range(len(self._present)))]

    @property
    def ready(self) -> list[int]:
        """How many pods are or were ready, by position of the task."""
        return [*map(add, self._ready, map(int.bit_count, self.lost_by_task))]

    def has_completed(self, position: int) -> bool:
        """Whether all pods of a task have succeeded."""
        done = self._succeeded[position] | self.lost(position)
        return 0 < self._all(position) == done

    def succeeded_indexes(self, restarted: Iterable[str] = ()) -> list[int]:
        """Return the indexes that the status is to record, by position of the task, without pods that are restarted.

        A pod that was deleted while it ran is not among them, even if it then ended without an error.
        """
        indexes = [
            (counted | before & (~present | succeeded)) & self._all(position)
            for position, (counted, before, present, succeeded) in enumerate(
                zip(self._counted, self._before, self._present, self._succeeded, strict=True)
            )
        ]
        for name in restarted:
            if name in self._members:
                position, index = self._members[name]
                indexes[position] &= ~(1 << index)
        return indexes

    @property
    def is_recorded(self) -> bool:
        """Whether the status of the job has all pods that succeeded before they were deleted."""
        return self._before == self._recorded

    def _all(self, position: int) -> int:
        return (1 << self._members.replicas[position]) - 1

    def _missing(self, position: int) -> int:
        return self._all(position) & ~self._present[position] & ~self._before[position]

    def missing_members(self, job: Job, position: int) -> Iterator[Member]:
        """The members of a task whose pods do not exist and have not succeeded, in their order."""
        task = job.spec.tasks[position]
        yield from (Member(job, task, index) for index in indexes_in(self._missing(position)))

    def lost_members(self) -> Iterator[Member]:
        """Yield the members whose pods succeeded and do not exist any more."""
        for position, task in enumerate(self._job.spec.tasks):
            yield from (Member(self._job, task, index) for index in indexes_in(self.lost(position)))

    def counts(self, deleting: Iterable[str] = ()) -> Counts:
        """Pods of the job's tasks by phase; those in `deleting` (by name) count as terminating."""
        phases = self._phases.copy()
        tasks = {task: of_task.copy() for task, of_task in self._task_phases.items()}
        for name in deleting:
            facts = self.facts[name]
            if facts.own and not facts.terminating:
                phase = known_phase(facts.phase)
                phases[phase] -= 1
                phases[_TERMINATING] += 1
                tasks[facts.task][phase] -= 1
        for task, lost in zip(self._job.spec.tasks, self.lost_by_task, strict=True):
            if lost:
                phases[names.POD_SUCCEEDED] += lost.bit_count()
                tasks.setdefault(task.name, Counter())[names.POD_SUCCEEDED] += lost.bit_count()
        return Counts(
            pending=phases[names.POD_PENDING],
            running=phases[names.POD_RUNNING],
            succeeded=phases[names.POD_SUCCEEDED],
            failed=phases[names.POD_FAILED],
            terminating=phases[_TERMINATING],
            unknown=phases[names.POD_UNKNOWN],
            tasks={task: shown for task, of_task in sorted(tasks.items()) if (shown := +of_task)},
        )

    def named(self, chosen: Iterable[str]) -> list[Pod]:
        """The pods of these names, in the order of the names."""
        return [self.pods[name] for name in sorted(chosen)]

    def current_of(self, task: str) -> Iterator[Pod]:
        """Wanted pods of a task of the job's current version; this looks at all pods."""
        for name, facts in self.facts.items():
            if facts.task == task and facts.wanted and facts.current:
                yield self.pods[name]


class Members:
    """The names of all pods that a job should have, by position of the task and index; not listed, as they may be many.

    Of tasks with the same name, which admission refuses, the first counts.
    """

    def __init__(self, job: Job) -> None:
        self._tasks: dict[str, tuple[int, int]] = {}
        self.replicas: list[int] = []
        """How many pods of each task, by position."""
        for position, task in enumerate(job.spec.tasks):
            replicas = min(task.replicas, MAX_PODS)  # a job with more is too large to have any
            first, _ = self._tasks.setdefault(f"{job.name}-{task.name}", (position, replicas))
            self.replicas.append(replicas if first == position else 0)

    def __contains__(self, name: object) -> bool:
        return self._find(str(name)) is not None

    def __getitem__(self, name: str) -> tuple[int, int]:
        place = self._find(name)
        if place is None:
            raise KeyError(name)
        return place

    def _find(self, name: str) -> tuple[int, int] | None:
        prefix, _, ordinal = name.rpartition("-")
        position, replicas = self._tasks.get(prefix, (0, 0))
        if not ordinal.isdecimal() or len(ordinal) > ORDINAL_DIGITS:
            return None
        index = int(ordinal)
        return (position, index) if index < replicas and str(index) == ordinal else None


def frame_of(job: Job) -> tuple[object, ...]:
    """What of a job the summary of its pods depends on."""
    tasks = tuple([(task.name, task.replicas) for task in job.spec.tasks])
    return job.metadata.uid, job.name, job.status.version, tasks


def _note(group: set[Key], item: Key, enters: bool) -> None:
    if enters:
        group.add(item)
    else:
        group.discard(item)


def _note_under(groups: dict[Key, set[str]], key: Key, name: str, enters: bool) -> None:
    """In the group of a key, which exists as long as it has members."""
    group = groups.setdefault(key, set())
    _note(group, name, enters)
    if not group:
        del groups[key]
