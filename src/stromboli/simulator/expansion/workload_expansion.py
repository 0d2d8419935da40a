"""Expands the workloads of files into objects that a scheduler reads, at once and between the cycles of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from stromboli.api.manifests.manifest_reader import Item, Manifests
from stromboli.api.manifests.object_defaults import FIRST_CREATION
from stromboli.api.types.pod import Pod
from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.owner_references import controller_of
from stromboli.controllers.podgroup.implied_groups import annotations_of
from stromboli.simulator.expansion.bare_pods import BarePods, needs_group
from stromboli.simulator.expansion.observed_objects import ObservedObjects

if TYPE_CHECKING:
    from stromboli.simulator.expansion.kube_workloads import PlannedWorkload
    from stromboli.simulator.expansion.planned_job import PlannedJob
    from stromboli.simulator.expansion.workload_reading import WorkloadReader

PhaseOf = Callable[[str], str | None]
"""The phase of the pod `namespace/name`; None if it does not exist."""


class WorkloadExpansion:
    """What controllers would make of the objects of files, as far as the files do not have it."""

    def __init__(self, manifests: Manifests, now: float) -> None:
        self.made: Counter[str] = Counter()
        """How many pods were made for each object of the user."""
        self.objects = 0
        """How many objects were made in all."""
        self._manifests = manifests
        self._now = now
        self._observed = ObservedObjects()
        self._groups = BarePods(self._observed)
        self._reader: WorkloadReader | None = None
        self._owners: dict[str, PlannedWorkload] = {}
        """Workloads by the uid that their pods name."""
        first = FIRST_CREATION + timedelta(seconds=len(manifests))
        self._created = max(datetime.fromtimestamp(now, UTC), first)

    def expand(self, given: Iterable[Item]) -> Iterator[Item]:
        """The objects of the files, then what is made at once: groups, claims and pods."""
        bare = []
        for item in given:
            if isinstance(item.object, Pod) and needs_group(item.object):
                bare.append(item)
            else:
                yield item
            if self._manifests.workloads or not isinstance(item.object, Pod):
                self._observed.see(item.object)
        if self._manifests.workloads:  # most clusters are files of pods and groups, which need none of this
            from stromboli.simulator.expansion.workload_reading import WorkloadReader

            self._reader = WorkloadReader(self._manifests, self._observed, self._now)
            self._owners = self._reader.owners
            for planned in self._reader.planned:
                yield from self._beside_pods(planned)
            yield from self.due(self._observed.pods.get)
        for item in bare:
            yield from self._with_group(item)

    def due(self, phase_of: PhaseOf) -> Iterator[Item]:
        """The pods that may be made by now."""
        if self._reader is None:
            return
        from stromboli.simulator.expansion.workload_reading import BROKEN

        for planned in self._reader.planned:
            try:
                for manifest in planned.due_pods(phase_of):
                    yield from self._complete(manifest, planned.where, planned.subject)
            except BROKEN as error:
                self._reader.report(planned.where, planned.subject, error)

    @property
    def unfinished(self) -> bool:
        """Whether pods may still be made: of tasks that depend on others, and of sets that grow one by one."""
        return self._reader is not None and any(planned.unfinished for planned in self._reader.planned)

    def notes(self, phase_of: PhaseOf) -> list[str]:
        """What is not made, or not yet, and why: each in a sentence."""
        if self._reader is None:
            return []
        waiting = (note for planned in self._reader.planned for note in planned.waiting(phase_of))
        return [*self._reader.notes, *waiting]

    def _beside_pods(self, planned: PlannedJob | PlannedWorkload) -> Iterator[Item]:
        """The objects that a workload has beside its pods."""
        for manifest in planned.manifests:
            if planned.created is not None:
                manifest["metadata"]["creationTimestamp"] = planned.created.isoformat()
            yield from self._complete(manifest, planned.where, planned.subject)

    def _complete(self, manifest: Manifest, where: str, subject: str) -> Iterator[Item]:
        """An object that was made, younger than all others, with its PodGroup if it needs one."""
        manifest["metadata"].setdefault("creationTimestamp", self._created.isoformat())
        self._created += timedelta(microseconds=1)
        obj = self._manifests.complete(manifest, where, subject)
        if obj is None or self._observed.has_claim(obj):
            return
        self.objects += 1
        self._observed.see(obj)
        if isinstance(obj, Pod):
            self.made[subject] += 1
            yield from self._with_group(Item(where, obj))
        else:
            yield Item(where, obj)

    def _with_group(self, item: Item) -> Iterator[Item]:
        pod = item.object
        if isinstance(pod, Pod) and needs_group(pod):
            reference = controller_of(pod)
            owner = self._owners.get(reference.uid) if reference is not None else None
            name = owner.name if owner is not None else ""
            annotations = annotations_of(owner.workload) if owner is not None else {}
            manifest = self._groups.join_group(pod, name, annotations)
            group = self._manifests.complete(manifest, item.where, f"Pod {pod.key}") if manifest else None
            if group is not None:
                self.objects += 1
                group.metadata.creation_timestamp = pod.metadata.creation_timestamp
                yield Item(item.where, group)
        yield item
