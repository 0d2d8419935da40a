"""The pods of Kubernetes' workloads: a template and an ordinal make a manifest, always the same for the same owner.

Names that Kubernetes ends in random characters end in characters that follow from owner and ordinal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec

from stromboli.api.errors import BadObject
from stromboli.controllers.workloads.workload import (
    INDEXED,
    Manifest,
    Workload,
    owner_reference,
    template_part,
)

TEMPLATE_HASH = "pod-template-hash"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"
CONTROLLER_UID, JOB_NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
REVISION_ANNOTATION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
NOTED_LIMIT = "deployment.kubernetes.io/max-replicas"
_OWN_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION_ANNOTATION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    NOTED_LIMIT,
)
"""They are about a Deployment or a ReplicaSet alone."""
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
JOB_TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer of pods of Jobs whose end is not counted yet."""
NAME_BASE = 58
"""Characters of a generated name before its end: Kubernetes cuts off what is longer."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that form no words, as in names that Kubernetes generates."""
DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Taints, by key and effect, that all pods of DaemonSets tolerate."""
NETWORK_TOLERATION = ("node.kubernetes.io/network-unavailable", "NoSchedule")
"""Those in the node's network tolerate this one as well."""


def name_suffix(*seed: str, length: int = 5) -> str:
    """The end of a generated name, which follows from the seed."""
    digest = hashlib.sha256("\0".join(seed).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:length])


def template_hash(template: Manifest, collisions: int | None = None) -> str:
    """What tells the revisions of a workload apart by their templates; another one after each collision of names."""
    encoded = msgspec.json.encode(template, order="sorted").decode()
    return name_suffix(encoded, *([] if collisions is None else [str(collisions)]), length=10)


def replica_set_of(deployment: Workload, collisions: int | None = None) -> Manifest:
    """The ReplicaSet of a Deployment's present template; another one after each collision of its name."""
    template = _copy(deployment.spec.template)
    revision = template_hash(template, collisions)
    metadata = template_part(template, "metadata", "spec.template")
    labels = {**template_part(metadata, "labels", "spec.template.metadata"), TEMPLATE_HASH: revision}
    selector = _copy(deployment.spec.selector or {})
    selected = template_part(selector, "matchLabels", "spec.selector")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{deployment.name[: 253 - len(revision) - 1]}-{revision}",
            "namespace": deployment.namespace,
            "labels": labels,
            "annotations": copied_annotations(deployment),
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {
            "replicas": 1 if deployment.spec.replicas is None else deployment.spec.replicas,
            "selector": {**selector, "matchLabels": {**selected, TEMPLATE_HASH: revision}},
            "template": {**template, "metadata": {**metadata, "labels": labels}},
        },
    }


def copied_annotations(deployment: Workload) -> dict[str, str]:
    """The annotations of a Deployment that its ReplicaSet takes over."""
    annotations = deployment.metadata.annotations
    return {key: value for key, value in annotations.items() if key not in _OWN_ANNOTATIONS}


def replica_pod(owner: Workload, ordinal: int) -> Manifest:
    """A pod of a ReplicaSet or a ReplicationController."""
    return _generated_pod(owner, str(ordinal))


def stateful_pod(
    owner: Workload, ordinal: int, template: Manifest | None = None, revision: str = ""
) -> Manifest:
    """A pod of a StatefulSet, with its own name as hostname and with its claims.

    Its template is that of a revision, which is named, or else the present one.
    """
    number = owner.spec.ordinals.start + ordinal
    name = f"{owner.name}-{number}"
    template = owner.spec.template if template is None else template
    labels = {
        POD_NAME: name,
        POD_INDEX: str(number),
        REVISION: revision or f"{owner.name}-{template_hash(template)}",
    }
    pod = _pod(owner, name, labels, template=template)
    spec = pod["spec"]
    spec["hostname"] = name
    if owner.spec.service_name:
        spec["subdomain"] = owner.spec.service_name
    claims = [
        {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}}
        for volume in map(_claim_name, owner.spec.volume_claim_templates)
    ]
    own = {claim["name"] for claim in claims}
    given = [volume for volume in spec.get("volumes") or () if _name_of(volume) not in own]
    if claims:
        spec["volumes"] = [*given, *claims]
    return pod


def stateful_claims(
    owner: Workload, ordinal: int, match_labels: Mapping[str, str] | None = None
) -> list[Manifest]:
    """The claims of a StatefulSet's pod; they have the labels by which the set selects its pods."""
    pod = f"{owner.name}-{owner.spec.ordinals.start + ordinal}"
    claims = []
    for template in owner.spec.volume_claim_templates:
        metadata = template_part(template, "metadata", "spec.volumeClaimTemplates")
        inside = "spec.volumeClaimTemplates.metadata"
        labels = {**template_part(metadata, "labels", inside), **(match_labels or {})}
        annotations = template_part(metadata, "annotations", inside)
        meta: Manifest = {"name": f"{_claim_name(template)}-{pod}", "namespace": owner.namespace}
        meta |= {"labels": labels} if labels else {}
        meta |= {"annotations": dict(annotations)} if annotations else {}
        spec = _copy(template_part(template, "spec", "spec.volumeClaimTemplates"))
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    return claims


def job_labels(name: str, uid: str) -> dict[str, str]:
    """The labels by which a Job knows its pods."""
    return {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}


def job_pod(owner: Workload, ordinal: int, attempt: int = 0) -> Manifest:
    """A pod of a Job; one that is indexed has its index in name, label, annotation and environment.

    The finalizer stays until the end of the pod is counted.
    """
    labels = {} if owner.spec.manual_selector else job_labels(owner.name, owner.metadata.uid)
    if owner.spec.completion_mode == INDEXED:
        pod = _indexed_pod(owner, ordinal, attempt, labels)
    else:
        pod = _generated_pod(owner, str(ordinal), labels)
    pod["metadata"]["finalizers"] = [JOB_TRACKING]
    return pod


def _indexed_pod(owner: Workload, index: int, attempt: int, labels: dict[str, str]) -> Manifest:
    mark, end = {COMPLETION_INDEX: str(index)}, f"-{index}-"
    base = owner.name[: NAME_BASE - len(end)] + end
    seed = (str(index), str(attempt)) if attempt else (str(index),)
    pod = _pod(owner, base + name_suffix(owner.metadata.uid, owner.name, *seed), {**labels, **mark}, mark)
    pod["metadata"]["generateName"] = base
    pod["spec"]["hostname"] = f"{owner.name}-{index}"
    for part in ("containers", "initContainers"):
        containers = pod["spec"].get(part)
        for container in containers if isinstance(containers, list) else ():
            _add_index_variable(container)
    return pod


def _add_index_variable(container: object) -> None:
    """What is no container is left to validation."""
    variables = container.get("env") or [] if isinstance(container, dict) else None
    if not isinstance(container, dict) or not isinstance(variables, list):
        return
    if all(_name_of(variable) != INDEX_VARIABLE for variable in variables):
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
        container["env"] = [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]


def cron_job_run(cron: Workload, name: str) -> Manifest:
    """The Job that a CronJob starts at one of its times."""
    template = _copy(cron.spec.job_template)
    metadata = template_part(template, "metadata", "spec.jobTemplate")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": cron.namespace,
            "labels": template_part(metadata, "labels", "spec.jobTemplate.metadata"),
            "annotations": template_part(metadata, "annotations", "spec.jobTemplate.metadata"),
            "ownerReferences": [owner_reference(cron)],
        },
        "spec": template_part(template, "spec", "spec.jobTemplate"),
    }


def daemon_pod(owner: Workload, node: str, seed: int = 0, revision: str = "") -> Manifest:
    """The pod of a DaemonSet that is meant for a node; the hash of its revision is given, or that of the template."""
    labels = {REVISION: revision or template_hash(owner.spec.template)}
    pod = _generated_pod(owner, f"{node}/{seed}", labels)
    spec = pod["spec"]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(spec.get("affinity") or {})
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field]}]
    }
    spec["affinity"] = {**affinity, "nodeAffinity": node_affinity}
    added = [*DAEMON_TOLERATIONS, *([NETWORK_TOLERATION] if spec.get("hostNetwork") else [])]
    more = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    given = [each for each in spec.get("tolerations") or () if _without_limit(each) not in more]
    spec["tolerations"] = [*given, *more]
    return pod


def _without_limit(toleration: object) -> object:
    """A toleration as if it held for ever."""
    if not isinstance(toleration, dict):
        return toleration
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _generated_pod(
    owner: Workload, seed: str, labels: Manifest | None = None, annotations: Manifest | None = None
) -> Manifest:
    """A pod whose name is the owner's with an end that follows from the seed."""
    base = f"{owner.name}-"
    suffix = name_suffix(owner.metadata.uid, owner.name, seed)
    pod = _pod(owner, base[:NAME_BASE] + suffix, labels, annotations)
    pod["metadata"]["generateName"] = base
    return pod


def _pod(
    owner: Workload,
    name: str,
    labels: Manifest | None = None,
    annotations: Manifest | None = None,
    template: Manifest | None = None,
) -> Manifest:
    """A pod of an owner's present template, or of another one."""
    template = _copy(owner.spec.template if template is None else template)
    metadata = template_part(template, "metadata", "spec.template")
    spec = template_part(template, "spec", "spec.template")
    if not isinstance(spec.get("containers"), list):
        raise BadObject("spec.template.spec.containers", "must be a list of containers", owner.subject)
    inside = "spec.template.metadata"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": {**template_part(metadata, "labels", inside), **(labels or {})},
            "annotations": {**template_part(metadata, "annotations", inside), **(annotations or {})},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": spec,
    }


def _copy(manifest: Manifest) -> Manifest:
    copied: Manifest = msgspec.to_builtins(manifest)
    return copied


def _claim_name(claim: Manifest) -> str:
    return _name_of(claim.get("metadata"))


def _name_of(value: object) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
