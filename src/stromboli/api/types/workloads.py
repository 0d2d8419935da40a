"""Services and workload controllers, as far as they select pods."""

from msgspec import field

from stromboli.api.types.meta import LabelSelector, Object, Record


class LabelMapSpec(Record):
    """Selects by plain labels."""

    selector: dict[str, str] = field(default_factory=dict)


class SelectorSpec(Record):
    """Selects by a label selector."""

    selector: LabelSelector | None = None


class Service(Object):
    spec: LabelMapSpec = field(default_factory=LabelMapSpec)


class ReplicationController(Object):
    spec: LabelMapSpec = field(default_factory=LabelMapSpec)


class ReplicaSet(Object):
    spec: SelectorSpec = field(default_factory=SelectorSpec)


class StatefulSet(Object):
    spec: SelectorSpec = field(default_factory=SelectorSpec)
