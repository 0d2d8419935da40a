"""Devices by claim (`resource.k8s.io/v1`): classes, slices of pools, claims with their allocations, and templates."""

from typing import Any

from msgspec import field

from stromboli.api.types.meta import (
    Condition,
    Int64,
    Object,
    Quantity,
    Record,
    ResourceList,
    Time,
    Value,
)
from stromboli.api.types.pod import NodeSelector

EXACT_COUNT = "ExactCount"
ALL_DEVICES = "All"
FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"

# -- selectors and configuration


class CELSelector(Value, frozen=True):
    """An expression over `device` that is true for devices that may be chosen."""

    expression: str = ""


class DeviceSelector(Value, frozen=True):
    """How devices are selected; CEL is the only way there is."""

    cel: CELSelector | None = None


class OpaqueConfiguration(Value, frozen=True):
    """Parameters for a driver, passed on as they are."""

    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(Value, frozen=True):
    """Configuration of devices in a class."""

    opaque: OpaqueConfiguration | None = None


class ClaimConfiguration(DeviceConfiguration, frozen=True):
    """Configuration of devices in a claim, for some of its requests or (empty) for all."""

    requests: tuple[str, ...] = ()


class AllocatedConfiguration(ClaimConfiguration, frozen=True):
    """Configuration in an allocation, with where it is from."""

    source: str = ""


class DeviceClassSpec(Record):
    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Object):
    """Devices that claims may ask for by the name of the class."""

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)


# -- slices


class DeviceAttribute(Value, frozen=True):
    """A typed value; exactly one field is set."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")
    int_values: tuple[Int64, ...] | None = field(default=None, name="ints")
    bool_values: tuple[bool, ...] | None = field(default=None, name="bools")
    string_values: tuple[str, ...] | None = field(default=None, name="strings")
    version_values: tuple[str, ...] | None = field(default=None, name="versions")


class CapacityRange(Value, frozen=True):
    """Amounts that may be asked for: from `min` to `max` in steps."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Value, frozen=True):
    """How much of a capacity a request consumes."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Value, frozen=True):
    """An amount that the device has of something."""

    value: Quantity = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Value, frozen=True):
    value: Quantity = 0


class CounterSet(Value, frozen=True):
    """Counters that devices of the pool share, such as the memory slices of a card with partitions."""

    name: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class CounterConsumption(Value, frozen=True):
    """How much a device takes of the counters of a set."""

    counter_set: str = ""
    counters: dict[str, Counter] = field(default_factory=dict)


class DeviceTaint(Value, frozen=True):
    """Keeps claims off the device that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Value, frozen=True):
    """A device of a pool, with what selectors, constraints and the allocator read of it."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Value, frozen=True):
    """The pool that a slice is a part of; slices of older generations count no more."""

    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Record):
    driver: str = ""
    pool: ResourcePool = field(default_factory=ResourcePool)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object):
    """Devices of a pool that a driver has published."""

    spec: ResourceSliceSpec = field(default_factory=ResourceSliceSpec)


# -- claims


class DeviceToleration(Value, frozen=True):
    """A taint of devices that a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class CapacityRequirements(Value, frozen=True):
    """How much a request needs of the capacity of each of its devices."""

    requests: ResourceList = field(default_factory=dict)


class ExactDeviceRequest(Value, frozen=True):
    """Devices of one class: so many, or all that match."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = EXACT_COUNT
    count: Int64 = 0
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None

    @property
    def devices(self) -> int:
        """How many devices `ExactCount` asks for; an API server writes 1 where no count is stated."""
        return self.count or 1


class DeviceSubRequest(ExactDeviceRequest, frozen=True):
    """An alternative in a list of which the first that is available is taken."""

    name: str = ""


class DeviceRequest(Value, frozen=True):
    """A request of a claim: exactly these devices, or the first alternative that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Value, frozen=True):
    """What holds for all devices of some requests, or (empty) of the claim."""

    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaim(Value, frozen=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()


class ResourceClaimSpec(Value, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Value, frozen=True):
    """A device that a claim was given for a request (`<request>` or `<request>/<alternative>`)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str = field(default="", name="shareID")
    consumed_capacity: ResourceList = field(default_factory=dict)


class AllocatedDevices(Value, frozen=True):
    """The devices of an allocation and the configuration for their drivers."""

    results: tuple[AllocatedDevice, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class AllocationResult(Value, frozen=True):
    """What a claim was given, and the nodes that can use it (None: all)."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None
    allocation_timestamp: Time | None = None


class ConsumerReference(Value, frozen=True):
    """Who may use the claim: a pod, or a group of pods."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Value, frozen=True):
    """What the driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str = field(default="", name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Record):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object):
    """A claim for devices, allocated or not yet."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = field(default_factory=ResourceClaimStatus)


class ClaimTemplateMeta(Record):
    """Labels and annotations of the claims that are made from a template."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ResourceClaimTemplateSpec(Record):
    metadata: ClaimTemplateMeta = field(default_factory=ClaimTemplateMeta)
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object):
    """What the claims of pods are made from, a claim for each pod."""

    spec: ResourceClaimTemplateSpec = field(default_factory=ResourceClaimTemplateSpec)
