"""Defaulting and validation of built-in kinds beyond their schemas, where fields depend on each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from stromboli.api.schemas.apps import owner_rules, set_rules
from stromboli.api.schemas.apps.deployment_rules import deployment_problems
from stromboli.api.schemas.devices import allocation_validation, claim_validation, slice_validation
from stromboli.api.schemas.metadata_rules import metadata_problems
from stromboli.api.schemas.pod_group_rules import (
    GROUP_FIELDS,
    WORKLOAD_FIELDS,
    pod_group_problems,
    workload_problems,
)
from stromboli.api.schemas.pods.pod_semantics import pod_update_problems, set_pod_defaults
from stromboli.api.schemas.pods.pod_validation import pod_problems
from stromboli.api.schemas.schema_problems import (
    Problem,
    first_problems,
    invalid,
    required,
    unsupported,
)
from stromboli.api.schemas.services.service_fields import set_service_defaults
from stromboli.api.schemas.services.service_validation import service_problems, service_update_problems
from stromboli.api.schemas.storage import storage_validation, volume_validation

Content = dict[str, Any]
Update = Callable[[Content, Content], Iterator[Problem]]

_SELECTING = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
_TEMPLATES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_SELECTING, "ReplicationController", "Job"), ("spec", "template", "spec")),
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "PodTemplate": ("template", "spec"),
}
_ROLLING: dict[str, tuple[str, Content]] = {
    "Deployment": ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}
"""Defaults of rolling updates."""
_FIXED_SPECS = {"PodGroup": GROUP_FIELDS, "Workload": WORKLOAD_FIELDS}
"""Kinds whose spec may not change, with its fields."""
_PROBLEMS: dict[str, Callable[[Content], Iterator[Problem]]] = {
    "PodGroup": pod_group_problems,
    "Workload": workload_problems,
    "DeviceClass": claim_validation.device_class_problems,
    "ResourceClaim": claim_validation.claim_problems,
    "ResourceClaimTemplate": claim_validation.template_problems,
    "ResourceSlice": slice_validation.slice_problems,
    "PersistentVolume": volume_validation.volume_problems,
    "PersistentVolumeClaim": volume_validation.claim_problems,
    "StorageClass": storage_validation.storage_class_problems,
    "CSIDriver": storage_validation.csi_driver_problems,
    "CSINode": storage_validation.csi_node_problems,
    "CSIStorageCapacity": storage_validation.capacity_problems,
    "VolumeAttachment": storage_validation.attachment_problems,
    "Service": service_problems,
}
"""Kinds with rules of their own."""


def set_defaults(content: Content, kind: str) -> None:
    """Set defaults, in place, after those of the schema."""
    template = _TEMPLATES.get(kind)
    if template is not None:
        if (pod := _nested(content, template)) is not None:
            set_pod_defaults(pod)
        if kind in _ROLLING:
            _set_rolling(content.get("spec") or {}, *_ROLLING[kind])
    set_kind_defaults = _DEFAULTS.get(kind)
    if set_kind_defaults is not None:
        set_kind_defaults(content)


def _set_pod(pod: Content) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict):
        set_pod_defaults(spec)
        spec.setdefault("enableServiceLinks", True)


def _set_job(job: Content) -> None:
    """Of jobs alone; the template of a CronJob gets these when a job is created from it."""
    spec = job.get("spec") or {}
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    for field, value in _JOB.items():
        spec.setdefault(field, value)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")


def _set_replication(controller: Content) -> None:
    """Its pods, and it itself, have the labels of the template, unless it says otherwise."""
    spec = controller.get("spec") or {}
    if labels := owner_rules.template_labels(spec):
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        if not controller["metadata"].get("labels"):
            controller["metadata"]["labels"] = dict(labels)


def _set_limits(limits: Content) -> None:
    for limit in (limits.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            defaults = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            requests = {**(limit.get("min") or {}), **defaults, **(limit.get("defaultRequest") or {})}
            limit |= {
                key: value for key, value in (("default", defaults), ("defaultRequest", requests)) if value
            }


def _set_policy(policy: Content) -> None:
    spec = policy.get("spec") or {}
    if spec and not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _set_subjects(binding: Content) -> None:
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", "rbac.authorization.k8s.io")


_DEFAULTS: dict[str, Callable[[Content], None]] = {
    "Pod": _set_pod,
    "Service": set_service_defaults,
    "Job": _set_job,
    "ReplicationController": _set_replication,
    "LimitRange": _set_limits,
    "NetworkPolicy": _set_policy,
    "RoleBinding": _set_subjects,
    "ClusterRoleBinding": _set_subjects,
    "ResourceClaim": claim_validation.set_claim_defaults,
    "ResourceClaimTemplate": claim_validation.set_template_defaults,
    "CSIDriver": storage_validation.set_driver_defaults,
}
_JOB = {
    "parallelism": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
}


def _set_rolling(spec: Content, field: str, defaults: Content) -> None:
    strategy = spec.get(field)
    if isinstance(strategy, dict) and strategy.get("type") == "RollingUpdate":
        strategy["rollingUpdate"] = {**defaults, **(strategy.get("rollingUpdate") or {})}


def problems(content: Content, kind: str) -> list[Problem]:
    """What is wrong with an object of a built-in kind whose types are right; at most `MAX_PROBLEMS`."""
    metadata = content.get("metadata") or {}
    return first_problems(metadata_problems(metadata, kind), _spec_problems(content, kind))


def _spec_problems(content: Content, kind: str) -> Iterator[Problem]:
    if kind == "Pod":
        yield from pod_problems(content.get("spec") or {})
    elif kind in _TEMPLATES:
        path = _TEMPLATES[kind]
        if (spec := _nested(content, path)) is not None:
            claims = content["spec"].get("volumeClaimTemplates") if kind == "StatefulSet" else None
            yield from pod_problems(_with_claims(spec, claims) if claims else spec, ".".join(path))
            yield from _template_problems(content, kind, spec)
        else:
            yield required(".".join((*path, "containers")))
    elif (problems_of := _PROBLEMS.get(kind)) is not None:
        yield from problems_of(content)


def _with_claims(spec: Content, claims: list[Content]) -> Content:
    """The spec of the pods of a StatefulSet: each claim is a volume, instead of another of its name."""
    names = dict.fromkeys((claim.get("metadata") or {}).get("name", "") for claim in claims)
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    others = [volume for volume in spec.get("volumes") or () if volume.get("name") not in names]
    return {**spec, "volumes": [*volumes, *others]}


def _template_problems(content: Content, kind: str, spec: Content) -> Iterator[Problem]:
    yield from owner_rules.size_problems(content.get("spec") or {}, kind)
    policy = spec.get("restartPolicy", "Always")
    path = ".".join((*_TEMPLATES[kind], "restartPolicy"))
    if kind in ("Job", "CronJob") and policy == "Always":
        yield required(path, f'valid values: "OnFailure", "Never", and not "{policy}"')
    elif kind in (*_SELECTING, "ReplicationController") and policy != "Always":
        yield unsupported(path, policy, ("Always",))
    if kind in _SELECTING:
        yield from owner_rules.selector_problems(content["spec"], kind)
    if kind == "ReplicationController":
        yield from owner_rules.replication_problems(content["spec"])
    if kind == "StatefulSet":
        for index, claim in enumerate(content["spec"].get("volumeClaimTemplates") or ()):
            if not (claim.get("metadata") or {}).get("name"):
                yield required(f"{'.'.join(_TEMPLATES[kind])}.volumes[{index}].name")
        yield from set_rules.stateful_set_problems(content["spec"])
    if kind == "DaemonSet":
        yield from set_rules.daemon_set_problems(content["spec"])
    if kind == "Deployment":
        yield from deployment_problems(content["spec"])


def update_problems(old: Content, new: Content, kind: str) -> list[Problem]:
    """What an update may not change: specs of pods, groups and claims, selectors, and so on."""
    if (problems_of := _UPDATE_PROBLEMS.get(kind)) is not None:
        return first_problems(problems_of(old, new))
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if kind == "Pod":
        return list(pod_update_problems(before, after))
    if kind in _FIXED_SPECS:
        return _changes(before, after, _FIXED_SPECS[kind])
    immutable: tuple[str, ...] = ()
    if kind in _SELECTING:
        immutable = ("selector",)
    elif kind in ("RoleBinding", "ClusterRoleBinding"):
        before, after, immutable = old, new, ("roleRef",)
    elif kind == "PriorityClass":
        before, after, immutable = old, new, ("value", "preemptionPolicy")
    prefix = "" if before is old else "spec."
    return [
        invalid(f"{prefix}{field}", after.get(field), "field is immutable")
        for field in immutable
        if field in before and before[field] != after.get(field)
    ]


def _resource_claim_update(old: Content, new: Content) -> Iterator[Problem]:
    yield from _fixed_spec(old, new)
    yield from allocation_validation.status_problems(old, new)


def _fixed_spec(old: Content, new: Content) -> Iterator[Problem]:
    if old.get("spec") != new.get("spec"):
        yield invalid("spec", new.get("spec"), "field is immutable")


_UPDATE_PROBLEMS: dict[str, Update] = {
    "StatefulSet": set_rules.stateful_set_update_problems,
    "ControllerRevision": set_rules.revision_update_problems,
    "ResourceClaim": _resource_claim_update,
    "ResourceClaimTemplate": _fixed_spec,
    "ResourceSlice": slice_validation.slice_update_problems,
    "PersistentVolume": volume_validation.volume_update_problems,
    "PersistentVolumeClaim": volume_validation.claim_update_problems,
    "StorageClass": storage_validation.storage_class_update_problems,
    "CSIDriver": storage_validation.csi_driver_update_problems,
    "CSINode": storage_validation.csi_node_update_problems,
    "CSIStorageCapacity": storage_validation.capacity_update_problems,
    "VolumeAttachment": storage_validation.attachment_update_problems,
    "Service": service_update_problems,
}


def _changes(before: Content, after: Content, fields: tuple[str, ...]) -> list[Problem]:
    """Of a spec that is immutable as a whole."""
    return [
        invalid(f"spec.{field}", None, "field is immutable")
        for field in fields
        if before.get(field) != after.get(field)
    ]


def _nested(content: Content, path: tuple[str, ...]) -> Content | None:
    node: Any = content
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None
