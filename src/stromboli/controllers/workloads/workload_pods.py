"""The pods of Kubernetes' workloads: a template and an ordinal make a manifest, always the same for the same owner.

Names that Kubernetes ends in random characters end in characters that follow from owner and ordinal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from stromboli.api.errors import BadObject
from stromboli.api.selectors import matches_node_term, tolerates
from stromboli.api.types.node import Node, Taint
from stromboli.api.types.pod import PodSpec, Toleration
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
NAME_BASE = 58
"""Characters of a generated name before its end: Kubernetes cuts off what is longer."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Letters and digits that form no words, as in names that Kubernetes generates."""
_REPELS = ("NoSchedule", "NoExecute")
_DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def name_suffix(*seed: str, length: int = 5) -> str:
    """The end of a generated name, which follows from the seed."""
    digest = hashlib.sha256("\0".join(seed).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:length])


def replica_set_of(deployment: Workload, collisions: int | None = None) -> Manifest:
    """The ReplicaSet of a Deployment's present template; another one after each collision of its name."""
    template = _copy(deployment.spec.template)
    seed = msgspec.json.encode(template, order="sorted").decode()
    revision = name_suffix(seed, *([] if collisions is None else [str(collisions)]), length=10)
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


def stateful_pod(owner: Workload, ordinal: int) -> Manifest:
    """A pod of a StatefulSet, with its own name as hostname and with its claims."""
    name = f"{owner.name}-{owner.spec.ordinals.start + ordinal}"
    revision = name_suffix(msgspec.json.encode(owner.spec.template, order="sorted").decode(), length=10)
    labels = {
        POD_NAME: name,
        POD_INDEX: str(owner.spec.ordinals.start + ordinal),
        REVISION: f"{owner.name}-{revision}",
    }
    pod = _pod(owner, name, labels)
    spec = pod["spec"]
    spec["hostname"], spec["subdomain"] = name, owner.spec.service_name
    claims = [
        {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}}
        for volume in map(_claim_name, owner.spec.volume_claim_templates)
    ]
    own = {claim["name"] for claim in claims}
    given = [volume for volume in spec.get("volumes") or () if _name_of(volume) not in own]
    if claims:
        spec["volumes"] = [*given, *claims]
    return pod


def stateful_claims(owner: Workload, ordinal: int) -> list[Manifest]:
    """The claims of a StatefulSet's pod."""
    pod = f"{owner.name}-{owner.spec.ordinals.start + ordinal}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{_claim_name(claim)}-{pod}", "namespace": owner.namespace},
            "spec": _copy(template_part(claim, "spec", "spec.volumeClaimTemplates")),
        }
        for claim in owner.spec.volume_claim_templates
    ]


def job_labels(name: str, uid: str) -> dict[str, str]:
    """The labels by which a Job knows its pods."""
    return {CONTROLLER_UID: uid, JOB_NAME: name, "controller-uid": uid, "job-name": name}


def job_pod(owner: Workload, ordinal: int) -> Manifest:
    """A pod of a Job; one that is indexed has its index in name, label and annotation."""
    labels = job_labels(owner.name, owner.metadata.uid)
    if owner.spec.completion_mode != INDEXED:
        return _generated_pod(owner, str(ordinal), labels)
    suffix = name_suffix(owner.metadata.uid, owner.name, str(ordinal))
    index = {COMPLETION_INDEX: str(ordinal)}
    pod = _pod(owner, f"{owner.name}-{ordinal}-{suffix}", {**labels, **index}, index)
    pod["spec"].setdefault("hostname", f"{owner.name}-{ordinal}")
    return pod


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


def daemon_pod(owner: Workload, node: str) -> Manifest:
    """The pod of a DaemonSet that is meant for a node."""
    pod = _generated_pod(owner, node)
    spec = pod["spec"]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = dict(spec.get("affinity") or {})
    affinity["nodeAffinity"] = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    spec["affinity"] = affinity
    more = [
        {"key": key, "operator": "Exists", "effect": effect}
        for key, effect in _daemon_tolerations(bool(spec.get("hostNetwork")))
    ]
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *more]
    return pod


def daemon_nodes(owner: Workload, nodes: Iterable[Node]) -> list[str]:
    """The nodes on which a DaemonSet wants a pod: those that its template selects, and whose taints it tolerates."""
    manifest = template_part(owner.spec.template, "spec", "spec.template")
    try:
        spec = msgspec.convert(manifest, PodSpec)
    except msgspec.ValidationError as error:
        raise BadObject("spec.template.spec", str(error), owner.subject) from None
    more = _daemon_tolerations(bool(manifest.get("hostNetwork")))
    tolerations = [
        *spec.tolerations,
        *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in more),
    ]
    return [node.name for node in nodes if _selects(spec, node) and _tolerates_node(tolerations, node)]


def _selects(spec: PodSpec, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    return required is None or any(
        matches_node_term(term, labels, node.name) for term in required.node_selector_terms
    )


def _tolerates_node(tolerations: Iterable[Toleration], node: Node) -> bool:
    taints: list[Taint] = [taint for taint in node.spec.taints if taint.effect in _REPELS]
    return all(tolerates(tolerations, taint) for taint in taints)


def _daemon_tolerations(host_network: bool) -> tuple[tuple[str, str], ...]:
    more = (("node.kubernetes.io/network-unavailable", "NoSchedule"),) if host_network else ()
    return (*_DAEMON_TOLERATIONS, *more)


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
    owner: Workload, name: str, labels: Manifest | None = None, annotations: Manifest | None = None
) -> Manifest:
    """A pod of an owner's template."""
    template = _copy(owner.spec.template)
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
