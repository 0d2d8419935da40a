"""Quantities in resource lists: valid, not negative, and integers where fractions make no sense."""

from fractions import Fraction

from stromboli.admission.rules.field import Field
from stromboli.api import names
from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_lists import allows_overcommit

_STANDARD = frozenset({names.CPU, names.MEMORY, names.EPHEMERAL_STORAGE})
_NATIVE = "kubernetes.io/"


def amount(field: Field) -> Fraction | None:
    """The value, or None if there is a problem with it, which is reported."""
    try:
        value = exact(field.value)
    except QuantityError as error:
        field.invalid(str(error))
        return None
    if value < 0:
        field.invalid("must be greater than or equal to 0")
        return None
    return value


def check_amounts(amounts: Field) -> dict[str, Fraction]:
    """The valid amounts of a resource list; the others are reported."""
    valid = {}
    for name, field in amounts.entries():
        value = amount(field)
        if value is None:
            continue
        if is_integer_resource(name) and value.denominator != 1:
            field.invalid("must be an integer")
            continue
        valid[name] = value
    return valid


def is_integer_resource(name: str) -> bool:
    """Whether a resource comes in whole units: extended resources, pods and other objects."""
    if name in _STANDARD or name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX)):
        return False
    return name == names.PODS or name.startswith(names.COUNT_PREFIX) or is_extended(name)


def is_extended(name: str) -> bool:
    """Whether this is an extended resource such as `nvidia.com/gpu`."""
    return "/" in name and _NATIVE not in name and not name.startswith(names.REQUESTS_PREFIX)


def check_resources(resources: Field) -> None:
    """Requests and limits of a container."""
    limits = check_amounts(resources["limits"])
    requests = check_amounts(resources["requests"])
    for column in ("limits", "requests"):
        for name, field in resources[column].entries():
            _check_name(name, field)
    for name, request in requests.items():
        field, limit = resources["requests"][name], limits.get(name)
        no_overcommit = not allows_overcommit(name)
        stated = resources["limits"][name].value
        if limit is None and no_overcommit:
            resources["limits"].required("Limit must be set for non overcommitable resources")
        elif limit is not None and no_overcommit and request != limit:
            field.invalid(f"must be equal to {name} limit of {stated}")
        elif limit is not None and request > limit:
            field.invalid(f"must be less than or equal to {name} limit of {stated}")


def _check_name(name: str, field: Field) -> None:
    if name in _STANDARD or name.startswith((names.HUGE_PAGES_PREFIX, names.ATTACHABLE_VOLUMES_PREFIX)):
        return
    if errors := qualified_name_errors(name):
        field.invalid("; ".join(errors))
    elif "/" not in name:
        field.invalid(
            "must be a standard resource for containers", "cpu, memory, or a device such as nvidia.com/gpu"
        )
