"""Fields that classes, claims and slices have in common: names, lists, CEL selectors, settings and taints."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from stromboli.api.cel.device_selectors import MAX_SELECTOR, compiled_selector
from stromboli.api.cel.expression import CelError
from stromboli.api.name_rules import (
    dns_label_errors,
    dns_subdomain_errors,
    label_value_errors,
    qualified_name_errors,
)
from stromboli.api.schemas.schema_problems import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)

Content = dict[str, Any]
Check = Callable[[Any, str], Iterator[Problem]]

_MAX_DRIVER = 63
_MAX_POOL = 253
_MAX_IDENTIFIER = 32
_MAX_SELECTORS = 32
MAX_SELECTOR_BYTES = 12 * 1024
"""Bytes of the different CEL expressions of an object: each is compiled while others wait for the server.

Each counts for `_BYTES_OF_SELECTOR` more.
"""
_BYTES_OF_SELECTOR = 100
_MAX_DOCUMENT = 10 * 1024
_MAX_BINDING_CONDITIONS = 4
_IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"
_NO_IDENTIFIER = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric"
    f" characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '{_IDENTIFIER}')"
)


def error_problems(errors_of: Callable[[str], tuple[str, ...]]) -> Check:
    """A check of a text by a rule that tells errors."""

    def check(text: str, path: str) -> Iterator[Problem]:
        for error in errors_of(text):
            yield invalid(path, text, error)

    return check


label_problems = error_problems(dns_label_errors)
subdomain_problems = error_problems(dns_subdomain_errors)
value_problems = error_problems(label_value_errors)
_key_errors = error_problems(qualified_name_errors)


def key_problems(text: str, path: str) -> Iterator[Problem]:
    """Of the key of a label, a taint or a condition."""
    yield from _key_errors(text, path)


def driver_problems(driver: str, path: str) -> Iterator[Problem]:
    if not driver:
        yield required(path)
        return
    if len(driver) > _MAX_DRIVER:
        yield too_long(path, _MAX_DRIVER)
    for error in dns_subdomain_errors(driver.lower()):
        yield invalid(path, driver, error)


def pool_problems(pool: str, path: str) -> Iterator[Problem]:
    if not pool:
        yield required(path)
        return
    if len(pool) > _MAX_POOL:
        yield too_long(path, _MAX_POOL)
    for part in pool.split("/"):
        yield from subdomain_problems(part, path)


def class_problems(name: str, path: str) -> Iterator[Problem]:
    if not name:
        yield required(path)
    else:
        yield from subdomain_problems(name, path)


def attribute_problems(name: str, path: str) -> Iterator[Problem]:
    """Of the name of an attribute or a capacity, with or without a domain."""
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _identifier_problems(name, path)
        return
    if "/" in identifier:
        return  # not checked by Kubernetes either
    if domain:
        yield from driver_problems(domain, path)
    else:
        yield invalid(path, "", "the domain must not be empty")
    if identifier:
        yield from _identifier_problems(identifier, path)
    else:
        yield invalid(path, "", "the name must not be empty")


def full_attribute_problems(name: str, path: str) -> Iterator[Problem]:
    yield from attribute_problems(name, path)
    if "/" not in name:
        yield invalid(path, name, "a fully qualified name must be a domain and a name separated by a slash")


def _identifier_problems(text: str, path: str) -> Iterator[Problem]:
    if len(text) > _MAX_IDENTIFIER:
        yield too_long(path, _MAX_IDENTIFIER)
    if not re.fullmatch(_IDENTIFIER, text):
        yield invalid(path, text, _NO_IDENTIFIER)


# -- lists and maps


def list_problems(
    items: list[Any], limit: int, check: Check, path: str, key: Callable[[Any], Hashable] | None = None
) -> Iterator[Problem]:
    """Of a list with at most so many items, which differ by their keys if there is one."""
    if len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    seen: set[Hashable] = set()
    for index, item in enumerate(items):
        yield from check(item, f"{path}[{index}]")
        if key is not None:
            if key(item) in seen:
                yield duplicate(f"{path}[{index}]", key(item))
            seen.add(key(item))


def map_problems(
    items: Content, limit: int | None, check_key: Check, check: Check, path: str
) -> Iterator[Problem]:
    if limit is not None and len(items) > limit:
        yield too_many(path, len(items), limit)
        return
    for key, item in items.items():
        yield from check_key(key, path)
        yield from check(item, f"{path}[{key[:96]}]")


# -- selectors


@lru_cache(1024)
def _selector_error(text: str) -> str:
    """Why a text is no selector; empty if it is one."""
    try:
        compiled_selector(text)
    except CelError as error:
        return str(error)
    return ""


class SelectorChecks:
    """The checks of all CEL selectors of an object."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._bytes = 0

    def __call__(self, selectors: list[Content] | None, path: str) -> Iterator[Problem]:
        yield from list_problems(selectors or [], _MAX_SELECTORS, self._selector, path)

    def _selector(self, selector: Content, path: str) -> Iterator[Problem]:
        if (condition := selector.get("cel")) is None:
            yield required(f"{path}.cel")
            return
        text, path = condition["expression"], f"{path}.cel.expression"
        size = len(text.encode(errors="replace"))
        if size > MAX_SELECTOR:
            yield too_long(path, MAX_SELECTOR)
            return
        if text not in self._texts:
            self._texts.add(text)
            self._bytes += size + _BYTES_OF_SELECTOR
        if self._bytes > MAX_SELECTOR_BYTES:
            detail = (
                f"the different selectors of an object may have at most {MAX_SELECTOR_BYTES} bytes together,"
                f" each counted with {_BYTES_OF_SELECTOR} more"
            )
            yield forbidden(path, detail)
            return
        if error := _selector_error(text):
            yield invalid(path, text, f"compilation failed: {error}")


# -- settings, taints and conditions


def configuration_problems(configuration: Content, path: str) -> Iterator[Problem]:
    if (opaque := configuration.get("opaque")) is None:
        yield required(f"{path}.opaque")
        return
    yield from driver_problems(opaque["driver"], f"{path}.opaque.driver")
    yield from document_problems(opaque.get("parameters"), f"{path}.opaque.parameters")


def document_problems(value: Any, path: str) -> Iterator[Problem]:
    """Of a document that only a driver understands."""
    if value is None:
        yield required(path)
    elif not isinstance(value, dict):
        yield Problem(
            path, "FieldValueInvalid", "Invalid value: <value omitted>: must be a valid JSON object"
        )
    elif len(msgspec.json.encode(value)) > _MAX_DOCUMENT:
        yield too_long(path, _MAX_DOCUMENT)


def toleration_problems(toleration: Content, path: str) -> Iterator[Problem]:
    if key := toleration.get("key"):
        yield from key_problems(key, f"{path}.key")
    value = toleration.get("value") or ""
    if toleration.get("operator") == "Exists" and value:
        yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    else:
        yield from value_problems(value, f"{path}.value")


def taint_problems(taint: Content, path: str) -> Iterator[Problem]:
    yield from key_problems(taint["key"], f"{path}.key")
    yield from value_problems(taint.get("value") or "", f"{path}.value")


def binding_problems(device: Content, path: str) -> Iterator[Problem]:
    """Of conditions that must come true, or must not, before a pod with the device is bound."""
    fields = ("bindingConditions", "bindingFailureConditions")
    wanted, failures = (device.get(field) or [] for field in fields)
    for field, conditions in zip(fields, (wanted, failures), strict=True):
        yield from list_problems(
            conditions, _MAX_BINDING_CONDITIONS, key_problems, f"{path}.{field}", key=lambda text: text
        )
    for index, condition in enumerate(failures):
        if condition in wanted:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid(f"{path}.bindingFailureConditions[{index}]", condition, detail)
    if failures and not wanted:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(f"{path}.bindingConditions", None, detail)
    if wanted and not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(f"{path}.bindingFailureConditions", None, detail)
