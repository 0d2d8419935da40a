"""Names of resources: those of Kubernetes itself, extended ones, and those that come in whole units."""

from stromboli.api import names

_STANDARD = frozenset({names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE})
_NATIVE = "kubernetes.io/"


def is_native(name: str) -> bool:
    """Whether containers may ask for it without a domain before its name."""
    return name in _STANDARD or name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX))


def is_extended(name: str) -> bool:
    """Whether this is an extended resource such as `nvidia.com/gpu`."""
    return "/" in name and _NATIVE not in name and not name.startswith(names.REQUESTS_PREFIX)


def allows_overcommit(name: str) -> bool:
    """Whether a container may request less than its limit: not of devices and of huge pages."""
    return not is_extended(name) and not name.startswith(names.HUGE_PAGES_PREFIX)


def is_integer_resource(name: str) -> bool:
    """Whether a resource comes in whole units: extended resources, pods and other objects."""
    if is_native(name):
        return False
    return name == names.PODS or name.startswith(names.COUNT_PREFIX) or is_extended(name)
