"""Equal shapes, label sets and annotations are one shared value, freed with its last task."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary, ref

import msgspec

from stromboli.api import names
from stromboli.api.resources.pod_requests import pod_request, view_request
from stromboli.api.types.pod import Pod, PodResourceClaim, Volume
from stromboli.model.shape import Annotations, LabelSet, Shape
from stromboli.model.volumes.volume_claims import without_claim_names

if TYPE_CHECKING:
    from stromboli.model.dimensions import Dimensions

_encoder = msgspec.msgpack.Encoder(order="sorted")


class Interning:
    """One table per kind of shared value; ids are never reused."""

    def __init__(self, dims: Dimensions) -> None:
        self._dims = dims
        self._shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()
        self._label_sets: WeakValueDictionary[bytes, LabelSet] = WeakValueDictionary()
        self._annotations: WeakValueDictionary[bytes, Annotations] = WeakValueDictionary()
        self._next = 0
        # Lists come sorted by name, so that replicas follow one another.
        self._last_parts: tuple[Any, ...] = ()
        self._last_shape: Callable[[], Shape | None] = lambda: None

    def shape(self, pod: Pod) -> Shape:
        """The shape of a pod: all of it that filters and scores may read."""
        spec, status, conditions = pod.spec, pod.status, pod.status.conditions
        parts = (
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.os,
            status.container_statuses,
            status.init_container_statuses,
            status.resources,
            status.allocated_resources,
            status.resize,
            [each for each in conditions if each.type == names.CONDITION_RESIZE_PENDING]
            if conditions
            else (),
            spec.volumes,
            spec.resource_claims,
        )
        shape = self._last_shape() if parts == self._last_parts else None
        if shape is None:
            shape = self._shape_of(pod, parts[:-2])
            self._last_parts, self._last_shape = parts, ref(shape)
        return shape

    def _shape_of(self, pod: Pod, parts: tuple[Any, ...]) -> Shape:
        """Parts are those that all replicas have in common; claims they may have by other names."""
        volumes = without_claim_names(pod.spec.volumes)
        key = _encoder.encode((parts, volumes, [claim.name for claim in pod.spec.resource_claims]))
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._make_shape(pod, volumes)
        return shape

    def _make_shape(self, pod: Pod, volumes: tuple[Volume, ...]) -> Shape:
        request = self._dims.rows(pod_request(pod))
        requests = view_request(pod)
        view, incoming = (
            (1, cpu, memory, *(amounts.get(name, 0) for name in (names.CPU, names.MEMORY, names.NVIDIA_GPU)))
            for cpu, memory, amounts in (
                (requests.nonzero_cpu, requests.nonzero_memory, requests.requested),
                (requests.incoming_nonzero_cpu, requests.incoming_nonzero_memory, requests.incoming),
            )
        )
        spec = msgspec.structs.replace(
            pod.spec,
            node_name="",
            priority=None,
            priority_class_name="",
            scheduling_group=None,
            active_deadline_seconds=None,
            volumes=volumes,
            resource_claims=tuple(PodResourceClaim(claim.name) for claim in pod.spec.resource_claims),
        )
        return Shape(self._id(), spec, dict(request), view, incoming)

    def label_set(self, namespace: str, labels: dict[str, str]) -> LabelSet:
        key = _encoder.encode((namespace, labels))
        label_set = self._label_sets.get(key)
        if label_set is None:
            label_set = self._label_sets[key] = LabelSet(self._id(), namespace, labels)
        return label_set

    def annotations(self, annotations: dict[str, str]) -> Annotations:
        key = _encoder.encode(annotations)
        shared = self._annotations.get(key)
        if shared is None:
            shared = self._annotations[key] = Annotations(annotations)
        return shared

    def _id(self) -> int:
        self._next += 1
        return self._next
