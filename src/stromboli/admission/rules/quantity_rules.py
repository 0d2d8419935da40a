"""Quantities in resource lists: readable, not negative, and whole where halves make no sense."""

from fractions import Fraction

from stromboli.admission.rules.field import Place
from stromboli.api import names
from stromboli.api.name_rules import against_qualified
from stromboli.api.resources.quantity import QuantityError, exact

_STANDARD = frozenset({names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE})
_NATIVE = "kubernetes.io/"


def amount(place: Place) -> Fraction | None:
    """The value, or None with a report."""
    try:
        value = exact(place.value)
    except QuantityError as error:
        place.invalid(str(error))
        return None
    if value < 0:
        place.invalid("must be greater than or equal to 0")
        return None
    return value


def check_amounts(amounts: Place) -> dict[str, Fraction]:
    """What a resource list says; what cannot be is reported and left out."""
    found = {}
    for name, place in amounts.entries():
        value = amount(place)
        if value is None:
            continue
        if is_counted(name) and value.denominator != 1:
            place.invalid("must be an integer")
            continue
        found[name] = value
    return found


def is_counted(name: str) -> bool:
    """Whether a resource comes in whole pieces: devices, pods and other objects."""
    if name in _STANDARD or name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX)):
        return False
    return name == names.PODS or name.startswith(names.COUNT_PREFIX) or is_extended(name)


def is_extended(name: str) -> bool:
    """Whether a resource is a device, named by its maker: `nvidia.com/gpu`."""
    return "/" in name and _NATIVE not in name and not name.startswith(names.REQUESTS_PREFIX)


def check_resources(resources: Place) -> None:
    """Requests and limits of a container."""
    limits = check_amounts(resources["limits"])
    requests = check_amounts(resources["requests"])
    for field in ("limits", "requests"):
        for name, place in resources[field].entries():
            _check_name(name, place)
    for name, asked in requests.items():
        place, limit = resources["requests"][name], limits.get(name)
        tied = is_extended(name) or name.startswith(names.HUGE_PAGES_PREFIX)
        shown = resources["limits"][name].value
        if limit is None and tied:
            resources["limits"].required("Limit must be set for non overcommitable resources")
        elif limit is not None and tied and asked != limit:
            place.invalid(f"must be equal to {name} limit of {shown}")
        elif limit is not None and asked > limit:
            place.invalid(f"must be less than or equal to {name} limit of {shown}")


def _check_name(name: str, place: Place) -> None:
    if name in _STANDARD or name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX)):
        return
    if reasons := against_qualified(name):
        place.invalid("; ".join(reasons))
    elif "/" not in name:
        place.invalid(
            "must be a standard resource for containers", "cpu, memory, or a device such as nvidia.com/gpu"
        )
