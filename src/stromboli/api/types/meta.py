"""What all objects share: metadata, owners, conditions, label selectors.

A `Record` may be filled in by its reader (defaults); a `Value` is never changed and may be shared.
"""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct, field

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Time = Annotated[datetime, Meta(tz=True)]
Name = Annotated[str, Meta(min_length=1, max_length=253)]
Quantity = str | int | float
ResourceList = dict[str, Quantity]


class Record(Struct, rename="camel", gc=False, omit_defaults=True):
    """Part of an object, filled in by its reader where an API server would have."""


class Value(Struct, rename="camel", gc=False, omit_defaults=True, frozen=True):
    """Part of an object that is never changed, so it may be shared and compared."""


class OwnerReference(Value, frozen=True):
    """An owner of the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Record):
    """Name, namespace, age, labels and annotations of an object."""

    name: Name
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def created(self) -> float:
        """The creation time in seconds since 1970; 0 where it has none."""
        return self.creation_timestamp.timestamp() if self.creation_timestamp is not None else 0.0


class Object(Record):
    """Anything with a kind and metadata; the class is named after the kind."""

    metadata: ObjectMeta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone of a cluster-scoped object."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


class Condition(Value, frozen=True):
    """One condition of a pod, node or PodGroup."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None
    transition_id: str = field(default="", name="transitionID")


class Requirement(Value, frozen=True):
    """`key operator values`, in label and node selectors alike."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    """Which labels match. No selector (None) matches nothing, an empty one everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()
