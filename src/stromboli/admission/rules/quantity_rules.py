"""Quantities in resource lists: valid, not negative, and integers where fractions make no sense."""

from fractions import Fraction

from stromboli.admission.rules.field import Field
from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.api.resources.resource_names import is_integer_resource


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
