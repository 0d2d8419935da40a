"""The policies of a Job of `batch/v1` about failures and about success."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.schemas.schema_problems import (
    INVALID,
    Problem,
    duplicate,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)

Content = dict[str, Any]
_RULES, _PATTERNS, _CODES = 20, 20, 255
_INDEXES_LENGTH = 64 * 1024
_STATUSES = ("False", "True", "Unknown")


def failure_policy_problems(spec: Content, path: str) -> Iterator[Problem]:
    rules = spec["podFailurePolicy"].get("rules") or []
    if len(rules) > _RULES:
        yield too_many(f"{path}.rules", len(rules), _RULES)
    pod = spec["template"].get("spec") or {}
    containers = {
        each.get("name") for part in ("containers", "initContainers") for each in pod.get(part) or ()
    }
    for number, rule in enumerate(rules[:_RULES]):
        yield from _failure_rule_problems(spec, rule, containers, f"{path}.rules[{number}]")


def _failure_rule_problems(
    spec: Content, rule: Content, containers: set[Any], path: str
) -> Iterator[Problem]:
    if rule.get("action") == "FailIndex" and "backoffLimitPerIndex" not in spec:
        yield invalid(f"{path}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        yield from _exit_code_problems(codes, containers, f"{path}.onExitCodes")
    yield from _pattern_problems(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield Problem(path, INVALID, f"Invalid value: {detail}")
    if codes is None and not patterns:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        yield Problem(path, INVALID, f"Invalid value: {detail}")


def _exit_code_problems(codes: Content, containers: set[Any], path: str) -> Iterator[Problem]:
    container, values = codes.get("containerName"), codes.get("values") or []
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid(f"{path}.containerName", container, detail)
    if not values:
        yield invalid(f"{path}.values", values, "at least one value is required")
    elif len(values) > _CODES:
        yield too_many(f"{path}.values", len(values), _CODES)
    seen = set[int]()
    for number, value in enumerate(values[:_CODES]):
        if value == 0 and codes.get("operator") == "In":
            yield invalid(f"{path}.values[{number}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}.values[{number}]", value)
        seen.add(value)
    if any(value > following for value, following in pairwise(values)):
        yield invalid(f"{path}.values", values, "must be ordered")


def _pattern_problems(patterns: list[Content], path: str) -> Iterator[Problem]:
    if len(patterns) > _PATTERNS:
        yield too_many(path, len(patterns), _PATTERNS)
    for number, pattern in enumerate(patterns[:_PATTERNS]):
        where, type_, status = f"{path}[{number}]", pattern.get("type", ""), pattern.get("status", "True")
        yield from (invalid(f"{where}.type", type_, error) for error in qualified_name_errors(type_))
        if status not in _STATUSES:
            yield unsupported(f"{where}.status", status, _STATUSES)


def success_policy_problems(spec: Content, path: str) -> Iterator[Problem]:
    """Of an indexed job."""
    policy = spec.get("successPolicy")
    if policy is None or spec.get("completions") is None:
        return
    rules = policy.get("rules") or []
    if len(rules) > _RULES:
        yield too_many(f"{path}.rules", len(rules), _RULES)
    for number, rule in enumerate(rules[:_RULES]):
        yield from _success_rule_problems(rule, spec["completions"], f"{path}.rules[{number}]")


def _success_rule_problems(rule: Content, completions: int, path: str) -> Iterator[Problem]:
    count, indexes, total = rule.get("succeededCount"), rule.get("succeededIndexes"), 0
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        if len(indexes) > _INDEXES_LENGTH:
            yield too_long(f"{path}.succeededIndexes", _INDEXES_LENGTH)
            return
        try:
            total = _count_indexes(indexes, completions)
        except ValueError as error:
            yield invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    bounds = [(completions, "specified completions")]
    if indexes is not None:
        bounds.append((total, "indexes in the specified succeededIndexes field"))
    for bound, what in bounds:
        if count is not None and count > bound:
            detail = f"must be less than or equal to {bound} (the number of {what})"
            yield invalid(f"{path}.succeededCount", count, detail)


def _count_indexes(text: str, completions: int) -> int:
    """How many indexes a text like `1,3-5` lists; `ValueError` says what is wrong with it."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        limits = part.split("-")
        if len(limits) > 2:
            raise ValueError(
                f'the fragment "{part}" violates the requirement that an index interval can have'
                " at most two parts separated by '-'"
            )
        first, *rest = (_index(limit, completions) for limit in limits)
        end = rest[0] if rest else first
        for previous, current in ((last, first), (first - (not rest), end)):
            if previous >= current:
                raise ValueError(f"non-increasing order, previous: {previous}, current: {current}")
        total, last = total + end - first + 1, end
    return total


def _index(text: str, completions: int) -> int:
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f'cannot convert string to integer for index: "{text[:20]}"')
    if len(text) > 10 or int(text) >= completions:
        raise ValueError(f'too large index: "{text[:20]}"')
    return int(text)
