"""What Kubernetes would refuse in a pod, or in a template of pods, beyond fields and their types.

The same rules serve the embedded API server, which gets pods, and admission, which gets jobs with templates: whoever
submits a job hears at once what its first pod would be refused for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from stromboli.api.name_rules import dns_label_errors, dns_subdomain_errors
from stromboli.api.schemas.builtin_schemas import notation
from stromboli.api.schemas.metadata_rules import annotation_problems, label_problems
from stromboli.api.schemas.normalization import normalize
from stromboli.api.schemas.pods.container_validation import (
    PodContext,
    amount_problems,
    container_problems,
    name_problems,
)
from stromboli.api.schemas.pods.placement_validation import placement_problems
from stromboli.api.schemas.pods.pod_claims_validation import pod_claim_problems, whole_pod_problems
from stromboli.api.schemas.pods.pod_semantics import set_pod_defaults
from stromboli.api.schemas.schema_problems import (
    MAX_PROBLEMS,
    TYPE,
    Problem,
    first_problems,
    forbidden,
    invalid,
    required,
)

Content = dict[str, Any]


def template_problems(template: Any, path: str) -> list[Problem]:
    """What is wrong with a pod template, which may have any form; at most `MAX_PROBLEMS`. It is not changed."""
    content = msgspec.to_builtins(template) if template is not None else {}  # a copy
    problems = normalize(content, notation().type("PodTemplateSpec"), path).problems
    if len(problems) == MAX_PROBLEMS or any(problem.reason == TYPE for problem in problems):
        return problems  # a value of the wrong type is, or may be, among those left out
    metadata, spec = content.get("metadata") or {}, content.get("spec")
    if spec is None:
        remedy = "a pod needs at least one container"
        return [*problems, required(f"{path}.spec.containers")._replace(remedy=remedy)]
    set_pod_defaults(spec)
    return first_problems(
        problems,
        label_problems(metadata.get("labels") or {}, f"{path}.metadata.labels"),
        annotation_problems(metadata.get("annotations") or {}, f"{path}.metadata.annotations"),
        pod_problems(spec, f"{path}.spec"),
    )


def pod_problems(spec: Content, path: str = "spec") -> Iterator[Problem]:
    """What is wrong with the spec of a pod, or of a template, whose types are right and whose defaults are set."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        yield from _volume(volume, volumes, f"{path}.volumes[{index}]")
    device_claims = spec.get("resourceClaims") or []
    yield from pod_claim_problems(device_claims, f"{path}.resourceClaims")
    claims = {claim["name"] for claim in device_claims if claim.get("name")}
    context = PodContext(set(), volumes, claims, spec.get("hostNetwork") is True)
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield from container_problems(container, context, f"{path}.{field}[{index}]")
    used = (spec.get("resources") or {}).get("claims") or []
    yield from whole_pod_problems(used, claims, f"{path}.resources.claims")
    yield from placement_problems(spec, path)
    if (group := spec.get("schedulingGroup")) is not None:
        yield from _scheduling_group(group.get("podGroupName"), f"{path}.schedulingGroup.podGroupName")
    for field in ("nodeName", "serviceAccountName"):
        if value := spec.get(field):
            for error in dns_subdomain_errors(value):
                yield invalid(f"{path}.{field}", value, error)
    for field in ("hostname", "subdomain"):
        if value := spec.get(field):
            for error in dns_label_errors(value):
                yield invalid(f"{path}.{field}", value, error)
    if overhead := spec.get("overhead"):
        yield from amount_problems(overhead, f"{path}.overhead")


def _scheduling_group(name: str | None, path: str) -> Iterator[Problem]:
    if name is None:
        yield invalid(path, None, "must specify one of: `podGroupName`")
        return
    for error in dns_subdomain_errors(name):
        yield invalid(path, name, error)


def _volume(volume: Content, names: set[str], path: str) -> Iterator[Problem]:
    yield from name_problems(volume.get("name") or "", names, f"{path}.name")
    _, *others = [key for key in volume if key != "name"] or [""]
    for source in others:
        yield forbidden(f"{path}.{source}", "may not specify more than 1 volume type")
