"""From files to a standing model: objects go in one at a time, as they are decoded, and none is kept."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from msgspec import Struct

from stromboli.api import names
from stromboli.api.errors import BadInput, InputProblem
from stromboli.api.manifests.manifest_reader import IMPLIED, Item, Manifests
from stromboli.api.manifests.object_defaults import implied_queues
from stromboli.api.types.meta import Object
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import Queue
from stromboli.model.intake.object_intake import Intake
from stromboli.model.status import Status
from stromboli.simulator.dangling_references import dangling_references
from stromboli.simulator.expansion.workload_expansion import WorkloadExpansion

Watch = Callable[[Iterable[Item], int], Iterable[Item]]
"""Wraps the objects on their way in, given how many there are: a progress bar."""
_BLOCK = 500
"""Objects that go in at a time."""
_PHASES = {
    Status.PENDING: names.POD_PENDING,
    Status.RUNNING: names.POD_RUNNING,
    Status.SUCCEEDED: names.POD_SUCCEEDED,
    Status.FAILED: names.POD_FAILED,
}


class Loaded(Struct):
    """A cluster that stands, and what was left out on the way."""

    intake: Intake
    seconds: float
    objects: int
    """How many were read; queues that exist anyway, and what is made of workloads, are not counted."""
    problems: list[InputProblem]
    unread: dict[str, int]
    """Objects of kinds that a scheduler does not read."""
    foreign: dict[str, int]
    """Pending pods that ask for another scheduler, by its name."""
    warnings: list[str] = []
    """What is odd, though it can be used."""
    policies: list[str] = []
    """Files that hold a policy instead of objects."""
    expansion: WorkloadExpansion | None = None
    """What is made of workloads; None for a case, which holds the pods themselves."""

    def advance(self) -> None:
        """Make the pods that may be made by now: those of tasks that depend on others, and the like."""
        if self.expansion is not None:
            for item in self.expansion.due(self._phase_of()):
                self.intake.put(item.object)

    @property
    def notes(self) -> list[str]:
        """What controllers do not make, or not yet."""
        return self.expansion.notes(self._phase_of()) if self.expansion is not None else []

    @property
    def made(self) -> dict[str, int]:
        """How many pods were made for each workload."""
        return dict(self.expansion.made) if self.expansion is not None else {}

    def _phase_of(self) -> Callable[[str], str | None]:
        phases = {task.key: _PHASES.get(task.status, "") for task in self.intake.cluster.tasks.values()}
        return phases.get

    @property
    def ungrouped(self) -> list[str]:
        """Pending pods without a PodGroup: no cycle sees them."""
        tasks = self.intake.cluster.tasks.values()
        return [
            task.key for task in tasks if task.job is None and task.ours and task.status is Status.PENDING
        ]


def load(
    open_manifests: Callable[[], Manifests],
    keep_going: bool = False,
    watch: Watch = lambda items, _: items,
    by_hand: bool = True,
    now: float = 0.0,
) -> Loaded:
    """Read objects into a cluster. What cannot be used raises `BadInput`, or is left out if we keep going.

    Workloads are expanded as at `now`. In a case, which is not written by hand, they are not, and nobody is told what
    nodes lack that a kubelet would add.
    """
    begin = time.perf_counter()
    intake, problems = Intake(), []
    foreign: Counter[str] = Counter()
    count = 0
    with _set_apart():
        manifests = open_manifests()
        expansion = WorkloadExpansion(manifests, now) if by_hand else None
        given = watch(manifests.items(once=True), len(manifests))
        arriving = iter(given if expansion is None else expansion.expand(given))
        while block := list(islice(arriving, _BLOCK)):
            for item, error in zip(block, intake.put_all([item.object for item in block]), strict=True):
                if error is not None:
                    problem = InputProblem.of(item.where, error)
                    if not keep_going:
                        raise BadInput([problem])
                    problems.append(problem)
                    continue
                count += item.source is not IMPLIED
                if isinstance(item.object, Pod) and _is_foreign(item.object):
                    foreign[item.object.spec.scheduler_name] += 1
        intake.cluster.settle()
    problems[:0] = manifests.problems
    seconds = time.perf_counter() - begin
    odd = dangling_references(intake.cluster, by_hand)
    return Loaded(
        intake,
        seconds,
        count - (expansion.objects if expansion is not None else 0) + manifests.only_expanded,
        problems,
        dict(manifests.skipped),
        dict(foreign),
        odd,
        manifests.policies,
        expansion,
    )


def load_objects(objects: Sequence[Object]) -> Loaded:
    """Objects as an API server has them into a cluster, as a scheduler takes them in; what is bad is left out."""
    begin = time.perf_counter()
    intake = Intake()
    with _set_apart():
        for queue in implied_queues(obj.name for obj in objects if isinstance(obj, Queue)):
            intake.put(queue)
        errors = intake.put_all(objects)
        intake.cluster.settle()
    problems = [InputProblem.of("", error) for error in errors if error is not None]
    foreign = Counter(obj.spec.scheduler_name for obj in objects if isinstance(obj, Pod) and _is_foreign(obj))
    seconds, count = time.perf_counter() - begin, len(objects) - len(problems)
    return Loaded(
        intake, seconds, count, problems, {}, dict(foreign), dangling_references(intake.cluster, False)
    )


def _is_foreign(pod: Pod) -> bool:
    """Whether another scheduler is to place it."""
    spec = pod.spec
    ours = spec.scheduler_name == names.SCHEDULER_NAME
    return not ours and not spec.node_name and pod.status.phase == names.POD_PENDING


@contextmanager
def _set_apart() -> Iterator[None]:
    """What is loaded stays for long: the garbage collector need not look through it, least of all amid a cycle.

    (Without this the first cycle over 60,000 pods takes twice as long.) What was set apart before is let go.
    """
    was_on = gc.isenabled()
    gc.unfreeze()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
