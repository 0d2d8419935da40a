"""Shapes, label sets and annotations are shared by all tasks that are alike, and gone when the last of them is."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import msgspec

from stromboli.api import names
from stromboli.api.resources.pod_requests import pod_request, view_request
from stromboli.api.types.pod import Pod
from stromboli.model.shape import Annotations, LabelSet, Shape

if TYPE_CHECKING:
    from stromboli.model.dimensions import Dimensions

_encoder = msgspec.msgpack.Encoder(order="sorted")


class Interning:
    """One table per kind of shared value; ids are never given out twice."""

    def __init__(self, dims: Dimensions) -> None:
        self._dims = dims
        self._shapes: WeakValueDictionary[bytes, Shape] = WeakValueDictionary()
        self._kin: WeakValueDictionary[bytes, LabelSet] = WeakValueDictionary()
        self._notes: WeakValueDictionary[bytes, Annotations] = WeakValueDictionary()
        self._next = 0

    def shape(self, pod: Pod) -> Shape:
        """The shape of a pod: all that node functions may read of it."""
        spec, status = pod.spec, pod.status
        key = _encoder.encode(
            (
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.volumes,
                spec.resource_claims,
                status.container_statuses,
                status.init_container_statuses,
                status.resources,
                status.allocated_resources,
                status.resize,
                [c for c in status.conditions if c.type == names.CONDITION_RESIZE_PENDING],
            )
        )
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = self._make_shape(pod)
        return shape

    def _make_shape(self, pod: Pod) -> Shape:
        request = self._dims.rows(pod_request(pod))
        seen = view_request(pod)
        view = (
            1,
            seen.nonzero_cpu,
            seen.nonzero_memory,
            seen.requested.get(names.CPU, 0),
            seen.requested.get(names.MEMORY, 0),
            seen.requested.get(names.NVIDIA_GPU, 0),
        )
        incoming = (
            1,
            seen.incoming_nonzero_cpu,
            seen.incoming_nonzero_memory,
            seen.incoming.get(names.CPU, 0),
            seen.incoming.get(names.MEMORY, 0),
            seen.incoming.get(names.NVIDIA_GPU, 0),
        )
        spec = msgspec.structs.replace(
            pod.spec, node_name="", priority=None, priority_class_name="", scheduling_group=None
        )
        return Shape(self._id(), spec, dict(request), view, incoming)

    def label_set(self, namespace: str, labels: dict[str, str]) -> LabelSet:
        key = _encoder.encode((namespace, labels))
        label_set = self._kin.get(key)
        if label_set is None:
            label_set = self._kin[key] = LabelSet(self._id(), namespace, labels)
        return label_set

    def notes(self, annotations: dict[str, str]) -> Annotations:
        key = _encoder.encode(annotations)
        notes = self._notes.get(key)
        if notes is None:
            notes = self._notes[key] = Annotations(annotations)
        return notes

    def _id(self) -> int:
        self._next += 1
        return self._next
