"""Volumes, claims and storage classes."""

from msgspec import field

from stromboli.api.types.meta import LabelSelector, Object, Quantity, Record, ResourceList, Value
from stromboli.api.types.pod import Disk, NodeSelector, Resources


class ClaimReference(Value, frozen=True):
    """The claim that a volume is bound to or reserved for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSISource(Value, frozen=True):
    """A volume served by a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Value, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Record):
    capacity: ResourceList = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    claim_ref: ClaimReference | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: Disk | None = None
    azure_disk: Disk | None = None
    cinder: Disk | None = None
    gce_persistent_disk: Disk | None = None
    portworx_volume: Disk | None = None
    node_affinity: VolumeNodeAffinity | None = None


class VolumePhase(Record):
    phase: str = ""


class PersistentVolume(Object):
    """A piece of storage."""

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: VolumePhase = field(default_factory=VolumePhase)


class PersistentVolumeClaimSpec(Record):
    access_modes: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaim(Object):
    """A claim for storage, bound to a volume or not yet."""

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: VolumePhase = field(default_factory=VolumePhase)


class TopologyExpression(Value, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Value, frozen=True):
    """Label values, all of which a node must have; a term without any matches nothing."""

    match_label_expressions: tuple[TopologyExpression, ...] = ()


class StorageClass(Object):
    """How new volumes are made, and where."""

    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[TopologyTerm, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)


class CSIDriverSpec(Record):
    storage_capacity: bool = False


class CSIDriver(Object):
    """A CSI driver of the cluster: whether it tells how much it can still provision."""

    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(Object):
    """How much of a storage class can be provisioned for nodes that match a selector."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class AttachmentSource(Value, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Record):
    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object):
    """A volume that a driver attaches to a node."""

    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
