"""What labels and annotations of a pod mean to its task; read once for replicas that come one after the other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stromboli.api import go_scalars, names
from stromboli.model.job import VOLCANO_GROUP, JobId
from stromboli.model.requirements.pod_demands import metadata_demands
from stromboli.model.time_limits import annotated_limit

if TYPE_CHECKING:
    from stromboli.api.types.meta import ObjectMeta
    from stromboli.model.interning import Interning
    from stromboli.model.requirements.placement_requirement import Demand
    from stromboli.model.shape import Annotations, LabelSet, Shape

_INT32 = re.compile(r"[+-]?[0-9]{1,10}")


class PodMetadata:
    """Labels and annotations, shared with equal pods, and the values that a task has of them."""

    __slots__ = (
        "_demands",
        "annotations",
        "job_id",
        "label_set",
        "preemptable",
        "priority",
        "role",
        "time_limit",
        "zone",
    )

    def __init__(self, label_set: LabelSet, annotations: Annotations) -> None:
        labels = label_set.labels
        preemptable = annotations.get(names.PREEMPTABLE, labels.get(names.PREEMPTABLE))
        self.label_set = label_set
        self.annotations = annotations
        self.role: str = annotations.get(names.TASK_SPEC) or labels.get(names.TASK_SPEC, "")
        self.priority = _priority(annotations.get(names.TASK_PRIORITY, ""))
        """The priority that an annotation gives; none if it gives none."""
        self.preemptable = preemptable is None or go_scalars.boolean(preemptable) is True
        self.time_limit = annotated_limit(annotations)
        self.zone = _revocable_zone(annotations)
        group = annotations.get(names.GROUP_NAME, "")
        self.job_id = JobId(VOLCANO_GROUP, label_set.namespace, group) if group else None
        """The job of its PodGroup; none if it names none."""
        self._demands: tuple[Shape, tuple[Demand, ...]] | None = None

    def is_of(self, meta: ObjectMeta) -> bool:
        """Whether a pod has the same labels and annotations."""
        label_set = self.label_set
        return (
            meta.labels == label_set.labels
            and meta.annotations == self.annotations
            and meta.namespace == label_set.namespace
        )

    def demands(self, shape: Shape) -> tuple[Demand, ...]:
        """What a pod of a shape asks of its placement that takes a plugin to honour."""
        if self._demands is None or self._demands[0] is not shape:
            of_metadata = metadata_demands(shape.spec, self.label_set.labels, self.annotations)
            self._demands = (shape, shape.demands + of_metadata)
        return self._demands[1]


class MetadataReader:
    """Remembers the last pod's metadata: lists come sorted by name, so that replicas follow one another."""

    def __init__(self, interning: Interning) -> None:
        self._interning = interning
        self._last: PodMetadata | None = None

    def read(self, meta: ObjectMeta) -> PodMetadata:
        """The metadata of a pod."""
        last = self._last
        if last is None or not last.is_of(meta):
            label_set = self._interning.label_set(meta.namespace, meta.labels)
            last = self._last = PodMetadata(label_set, self._interning.annotations(meta.annotations))
        return last


def _priority(annotated: str) -> int | None:
    if _INT32.fullmatch(annotated) and -(2**31) <= int(annotated) < 2**31:
        return int(annotated)
    return None


def _revocable_zone(annotations: dict[str, str]) -> str:
    zone = annotations.get(names.REVOCABLE_ZONE)
    if zone is not None:
        return zone if zone == names.ANY_REVOCABLE_ZONE else ""
    return names.ANY_REVOCABLE_ZONE if go_scalars.boolean(annotations.get(names.PREEMPTABLE, "")) else ""
