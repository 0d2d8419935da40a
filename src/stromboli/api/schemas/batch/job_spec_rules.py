"""The spec of a Job of `batch/v1`: fields that depend on each other, and what an update may not change."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors
from stromboli.api.schemas.batch.job_policy_rules import failure_policy_problems, success_policy_problems
from stromboli.api.schemas.schema_problems import Problem, invalid, required, too_long, unsupported

Content = dict[str, Any]
_INDEXED = "Indexed"
_PARALLELISM, _FAILED_INDEXES = 100_000, 100_000
_MANY_COMPLETIONS, _FOR_MANY_COMPLETIONS = 100_000, 10_000
_MANAGER_LENGTH = 63
_FIXED = ("podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_OF_SUSPENDED = ("nodeSelector", "tolerations", "schedulingGates")
"""Of the pods of a suspended job these may change, with labels, annotations, node affinity and resources."""


def job_problems(job: Content) -> Iterator[Problem]:
    """What is wrong with a Job."""
    spec, name = job["spec"], job["metadata"].get("name", "")
    yield from job_spec_problems(spec, "spec")
    completions = spec.get("completions")
    if spec.get("completionMode") == _INDEXED and completions:
        hostname = f"{name}-{completions - 1}"
        if dns_label_errors(hostname):
            detail = f"will not able to create pod with invalid DNS label: {hostname}"
            yield invalid("metadata.name", name, detail)


def job_spec_problems(spec: Content, path: str) -> Iterator[Problem]:
    """What is wrong with the spec of a Job, or of the template of a CronJob."""
    yield from _manager_problems(spec.get("managedBy"), f"{path}.managedBy")
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if spec.get("completionMode") == _INDEXED:
        yield from _index_problems(spec, path)
        yield from success_policy_problems(spec, f"{path}.successPolicy")
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if field in spec:
                yield invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")
    if "podFailurePolicy" in spec:
        yield from failure_policy_problems(spec, f"{path}.podFailurePolicy")
        replacement = spec.get("podReplacementPolicy", "Failed")
        if replacement != "Failed":
            yield unsupported(f"{path}.podReplacementPolicy", replacement, ("Failed",))
        restart = (spec["template"].get("spec") or {}).get("restartPolicy")
        if restart == "OnFailure":
            detail = 'only "Never" is supported when podFailurePolicy is specified'
            yield invalid(f"{path}.template.spec.restartPolicy", restart, detail)


def _manager_problems(manager: str | None, path: str) -> Iterator[Problem]:
    if manager is None:
        return
    domain, slash, name = manager.partition("/")
    if not domain or not slash or not name:
        yield invalid(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from (invalid(path, domain, error) for error in dns_subdomain_errors(domain))
    if len(manager) > _MANAGER_LENGTH:
        yield too_long(path, _MANAGER_LENGTH)


def _index_problems(spec: Content, path: str) -> Iterator[Problem]:
    completions, parallelism, failed = (
        spec.get(field) for field in ("completions", "parallelism", "maxFailedIndexes")
    )
    if completions is None:
        yield required(f"{path}.completions", f"when completion mode is {_INDEXED}")
    if parallelism is not None and parallelism > _PARALLELISM:
        detail = f"must be less than or equal to {_PARALLELISM} when completion mode is {_INDEXED}"
        yield invalid(f"{path}.parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _FAILED_INDEXES:
        yield invalid(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_FAILED_INDEXES}")
    if (completions or 0) <= _MANY_COMPLETIONS or "backoffLimitPerIndex" not in spec:
        return
    if failed is None:
        detail = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        yield required(f"{path}.maxFailedIndexes", detail)
    for field, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > _FOR_MANY_COMPLETIONS:
            detail = (
                f"must be less than or equal to {_FOR_MANY_COMPLETIONS} when completions are above"
                f" {_MANY_COMPLETIONS} and used with backoff limit per index"
            )
            yield invalid(f"{path}.{field}", value, detail)


# -- updates


def job_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    """What an update of a Job may not change."""
    before, after = old["spec"], new["spec"]
    for field in ("selector", "completionMode", *_FIXED):
        if before.get(field) != after.get(field):
            yield invalid(f"spec.{field}", after.get(field), "field is immutable")
    completions = after.get("completions")
    if before.get("completions") != completions:
        if after.get("completionMode") != _INDEXED:
            yield invalid("spec.completions", completions, "field is immutable")
        elif completions is not None and completions != after.get("parallelism"):
            yield invalid(
                "spec.completions", completions, "can only be modified in tandem with spec.parallelism"
            )
    yield from _template_update_problems(old, new)


def _template_update_problems(old: Content, new: Content) -> Iterator[Problem]:
    before, after = old["spec"]["template"], new["spec"]["template"]
    if before == after:
        return
    if not _may_change_pods(old):
        yield invalid("spec.template", after, "field is immutable")
        return
    spec = _with_changes_of_suspended(before.get("spec") or {}, after.get("spec") or {})
    if spec != (after.get("spec") or {}):
        yield invalid("spec.template.spec", after.get("spec"), "field is immutable")


def _may_change_pods(job: Content) -> bool:
    """Whether a job is suspended and has no pods."""
    status = job.get("status") or {}
    conditions = status.get("conditions") or ()
    suspended = any(each.get("type") == "Suspended" and each.get("status") == "True" for each in conditions)
    waits = "startTime" not in status or suspended
    return bool(job["spec"].get("suspend")) and waits and not status.get("active")


def _with_changes_of_suspended(before: Content, after: Content) -> Content:
    """The spec of pods as it was, with what may change as it is now."""
    allowed = copy.deepcopy(before)
    for field in _OF_SUSPENDED:
        _take(allowed, after, field)
    affinity = allowed.setdefault("affinity", {})
    _take(affinity, after.get("affinity") or {}, "nodeAffinity")
    if not affinity and not after.get("affinity"):
        _take(allowed, after, "affinity")
    for part in ("containers", "initContainers"):
        containers, now = allowed.get(part) or [], after.get(part) or []
        if len(containers) == len(now):
            for container, other in zip(containers, now, strict=True):
                if container.get("name") == other.get("name"):
                    _take(container, other, "resources")
    return allowed


def _take(target: Content, source: Content, field: str) -> None:
    target.pop(field, None)
    if field in source:
        target[field] = source[field]
