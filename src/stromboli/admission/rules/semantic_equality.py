"""Whether two objects mean the same: what is empty equals what is absent, and quantities count by value."""

from collections.abc import Mapping
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact

_AMOUNTS = frozenset({"requests", "limits", "capacity", "overhead", "sizeLimit", "divisor"})
_TELLING_ZEROS = frozenset(
    {
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "defaultMode",
        "enableServiceLinks",
        "fsGroup",
        "hostUsers",
        "minSuccess",
        "mode",
        "optional",
        "privileged",
        "readOnlyRootFilesystem",
        "runAsGroup",
        "runAsNonRoot",
        "runAsUser",
        "setHostnameAsFQDN",
        "shareProcessNamespace",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
        "ttlSecondsAfterFinished",
    }
)
"""Fields in which 0 or false is not the same as nothing."""


def same(one: Any, other: Any, field: str = "", amounts: bool = False) -> bool:
    """Whether the two mean the same."""
    if _absent(one, field) and _absent(other, field):
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping | None):
        return _same_entries(one, other or {}, amounts or field in _AMOUNTS)
    if isinstance(other, Mapping) and one is None:
        return _same_entries({}, other, amounts or field in _AMOUNTS)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    if (amounts or field in _AMOUNTS) and not (_absent(one, "") or _absent(other, "")):
        return _same_amount(one, other)
    return type(one) is type(other) and bool(one == other)


def _same_entries(one: Mapping[str, Any], other: Mapping[str, Any], amounts: bool) -> bool:
    return all(same(one.get(key), other.get(key), key, amounts) for key in one.keys() | other.keys())


def _same_amount(one: Any, other: Any) -> bool:
    try:
        return exact(one) == exact(other)
    except QuantityError:
        return bool(one == other)


def _absent(value: Any, field: str) -> bool:
    """Whether a value says no more than its absence; a map of empty things is empty."""
    if value is None or value in ("", [], {}):
        return True
    return field not in _TELLING_ZEROS and value in (0, False) and isinstance(value, bool | int)
