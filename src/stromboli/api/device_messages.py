"""Words about ResourceClaims and devices, those of Kubernetes and Volcano as they are there (spec 04 2.12)."""

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that a scheduler made for extended resources of a pod."""
DEVICE_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With the name of a device class: the extended resource that every class has."""

# --- why a pod has no node at all ---
NOT_CREATED = 'pod "{namespace}/{pod}": ResourceClaim not created yet'
UNSUPPORTED = 'pod "{namespace}/{pod}", spec.resourceClaim "{name}": none of the supported fields are set'
NOT_FOUND = 'could not find ResourceClaim "{namespace}/{name}"'
BEING_DELETED = 'resourceclaim "{name}" is being deleted'
OF_ANOTHER_POD = (
    "ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod} (Pod is not owner)"
)
OF_ANOTHER_GROUP = (
    "ResourceClaim {namespace}/{name} was not created for Pod {namespace}/{pod} "
    "(neither Pod nor PodGroup {group} is the owner)"
)
NOT_OF_POD = 'container {container}: resources.claims: "{name}" is none of spec.resourceClaims'
IN_USE = "resourceclaim in use"
CLASS_MISSING = "request {request}: device class {name} does not exist"
CLASS_UNNAMED = "request {request}: unsupported request type"
UNKNOWN_REQUEST = "resource claim {namespace}/{name}, request {request}: unknown request type"
STALE_EXTENDED_CLAIM = "cannot schedule extended resource claim"

# --- why a node is refused ---
CANNOT_ALLOCATE = "cannot allocate all claims"
NOT_AVAILABLE = "resourceclaim not available on the node"
NO_TIME = "timed out trying to allocate devices: other nodes took too many steps, this one is next"
