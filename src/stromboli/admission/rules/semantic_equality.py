"""Equality as Kubernetes' `equality.Semantic` has it: empty equals absent, and quantities compare by value."""

from collections.abc import Mapping
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact

_AMOUNTS = frozenset({"requests", "limits", "capacity", "overhead", "sizeLimit", "divisor"})
_SIGNIFICANT_ZEROS = frozenset(
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


def same(left: Any, right: Any, field: str = "", amounts: bool = False) -> bool:
    """Whether the two are semantically equal."""
    if _absent(left, field) and _absent(right, field):
        return True
    if isinstance(left, Mapping) and isinstance(right, Mapping | None):
        return _same_entries(left, right or {}, amounts or field in _AMOUNTS)
    if isinstance(right, Mapping) and left is None:
        return _same_entries({}, right, amounts or field in _AMOUNTS)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if (amounts or field in _AMOUNTS) and not (_absent(left, "") or _absent(right, "")):
        return _same_amount(left, right)
    return type(left) is type(right) and bool(left == right)


def _same_entries(left: Mapping[str, Any], right: Mapping[str, Any], amounts: bool) -> bool:
    return all(same(left.get(key), right.get(key), key, amounts) for key in left.keys() | right.keys())


def _same_amount(left: Any, right: Any) -> bool:
    try:
        return exact(left) == exact(right)
    except QuantityError:
        return bool(left == right)


def _absent(value: Any, field: str) -> bool:
    """Whether a value means the same as its absence."""
    if value is None or value in ("", [], {}):
        return True
    return field not in _SIGNIFICANT_ZEROS and value in (0, False) and isinstance(value, bool | int)
