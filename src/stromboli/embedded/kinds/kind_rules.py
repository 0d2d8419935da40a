"""What the server sets and checks for single kinds when objects are created or updated: their strategies."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable

from stromboli.api.resources.qos import qos_class
from stromboli.api.schemas.devices.allocation_validation import drop_status_of_lost_devices
from stromboli.api.schemas.schema_problems import TYPE, Problem, invalid
from stromboli.api.schemas.services.service_fields import complete_families, prepare_service_update
from stromboli.api.schemas.services.service_types import LOAD_BALANCER, NODE_PORT, spec_of, type_of
from stromboli.api.schemas.value_formats import json_equal
from stromboli.api.types.pod import pod_resources
from stromboli.embedded.kinds import batch_job_rules, config_data_rules, object_metadata, webhook_rules
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.kind_registry import definition_problems

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
RESOURCE_CLAIMS = "resourceclaims.resource.k8s.io"

WITH_GENERATION = frozenset(
    {
        "pods",
        "replicationcontrollers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "networkpolicies.networking.k8s.io",
        "ingresses.networking.k8s.io",
        DEFINITIONS,
        "priorityclasses.scheduling.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceslices.resource.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Built-in kinds whose objects have a generation."""
WITH_VERSIONED_UPDATES = frozenset(
    {
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "volumeattachments.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "csidrivers.storage.k8s.io",
        "csistoragecapacities.storage.k8s.io",
        DEFINITIONS,
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)
"""Built-in kinds whose updates must name the resourceVersion that they are based on."""
STATUS_ON_CREATE = frozenset({"nodes"})
"""Kinds whose status may be set on creation."""
STATUS_ALONE = frozenset({"podgroups.scheduling.k8s.io", RESOURCE_CLAIMS})
"""Built-in kinds whose `status` endpoint does not change metadata."""
WORKLOADS = frozenset(
    {
        "replicationcontrollers",
        "deployments.apps",
        "replicasets.apps",
        "statefulsets.apps",
        "daemonsets.apps",
        "jobs.batch",
        "cronjobs.batch",
    }
)
"""Kinds of workloads, whose controllers are not a part of the API server."""
AUTOSCALERS = "horizontalpodautoscalers.autoscaling"
REFUSED = {
    AUTOSCALERS: "nothing here changes the number of pods by what they use: set it with `kubectl scale`"
}
"""Kinds of which no new objects are taken, since somebody would wait for them in vain; stored ones can be deleted."""
_OUTSIDE_SPEC = ("apiVersion", "kind", "metadata", "status")


def prepare_for_create(kind: Kind, content: Content) -> None:
    """Set the initial status and generation of a new object, and what else its kind starts with."""
    if kind.has_status and kind.id not in STATUS_ON_CREATE:
        content.pop("status", None)
        if kind.definition is None:
            content["status"] = {}
    if kind.definition is not None or kind.id in WITH_GENERATION:
        content["metadata"]["generation"] = 1
    if prepare := _PREPARE_FOR_CREATE.get(kind.id):
        prepare(content)


def replaces_status(kind: Kind, subresource: str, problems: Iterable[Problem]) -> bool:
    """Whether there are problems in a status that the server replaces, as of manifests made from Go types.

    A status of the wrong types counts: the object cannot be decoded.
    """
    if subresource or not kind.has_status or kind.id in STATUS_ON_CREATE:
        return False
    reasons = {problem.reason for problem in problems if problem.field.startswith("status.")}
    return bool(reasons) and TYPE not in reasons


def creation_warnings(kind: Kind) -> tuple[str, ...]:
    """What somebody who creates an object of this kind waits for in vain if the API server runs alone."""
    if kind.id not in WORKLOADS:
        return ()
    return (f"no controller here makes the pods of a {kind.kind}; `stromboli up` runs a cluster that does",)


def network_warnings(kind: Kind, content: Content) -> tuple[str, ...]:
    """What somebody who creates this object expects of a network, which is not there."""
    if kind.id == "services":
        return _service_warnings(content)
    return (_NETWORK_WARNINGS[kind.id],) if kind.id in _NETWORK_WARNINGS else ()


_NETWORK_WARNINGS = {
    "ingresses.networking.k8s.io": "no ingress controller runs here, and nothing is routed to Services: `kubectl"
    " port-forward service/NAME PORT` reaches a pod on a real node",
    "networkpolicies.networking.k8s.io": "nothing here enforces a NetworkPolicy: pods on real nodes use the network"
    " of this machine, and those on simulated nodes have none",
}


def _service_warnings(service: Content) -> tuple[str, ...]:
    """Where a user would wait for an answer: there is no network behind addresses and ports."""
    type = type_of(spec_of(service))
    if type not in (NODE_PORT, LOAD_BALANCER):
        return ()
    name = str(service["metadata"].get("name", ""))
    return (
        f"nothing listens at the ports of nodes here, and no load balancer is made: `kubectl port-forward"
        f" service/{name} PORT` reaches a pod on a real node",
    )


def generate_fields(kind: Kind, content: Content) -> None:
    """Set fields of a new object that follow from its name and uid, which nobody manages."""
    if kind.id == batch_job_rules.KIND:
        batch_job_rules.generate_selector(content)
    elif kind.id == "services":
        complete_families(content)


def _prepare_pod(content: Content) -> None:
    content["status"] = {"phase": "Pending", "qosClass": qos_class(pod_resources(content))}


def _prepare_node(content: Content) -> None:
    """Allocatable defaults to the capacity."""
    status = content.get("status")
    if isinstance(status, dict) and status.get("capacity"):
        status["allocatable"] = {**status["capacity"], **(status.get("allocatable") or {})}


def _prepare_namespace(content: Content) -> None:
    content["status"] = {"phase": "Active"}
    content["spec"] = {"finalizers": ["kubernetes"]}
    labels = content["metadata"].setdefault("labels", {}) or {}
    content["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": content["metadata"]["name"]}


def _prepare_service(content: Content) -> None:
    content["status"] = {"loadBalancer": {}}


def _prepare_volume(content: Content) -> None:
    content["status"] = {"phase": "Pending"}


def _prepare_secret(content: Content) -> None:
    """`stringData` is write-only: it is encoded into `data`."""
    plain = content.pop("stringData", None)
    if isinstance(plain, dict) and plain:
        encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in plain.items()}
        content["data"] = {**(content.get("data") or {}), **encoded}
    content.setdefault("type", "Opaque")


def _prepare_definition(content: Content) -> None:
    """Names are accepted at once: no controller has to check them."""
    spec = content.get("spec") or {}
    names = spec.get("names") or {}
    if isinstance(names.get("kind"), str):
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    now = object_metadata.now()
    content["status"] = {
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
            for name, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ],
        "acceptedNames": names,
        "storedVersions": [
            version.get("name") for version in spec.get("versions") or () if version.get("storage")
        ],
    }
    finalizers = content["metadata"].setdefault("finalizers", [])
    if CRD_FINALIZER not in finalizers:
        finalizers.append(CRD_FINALIZER)


def _stored_versions(definition: Content, old: Content) -> list[str]:
    """A storage version stays listed until a client removes it; objects are never left in a version that is dropped."""
    versions = [version.get("name") for version in (definition.get("spec") or {}).get("versions") or ()]
    listed = [name for name in old["status"].get("storedVersions") or () if name in versions]
    current = definition["status"]["storedVersions"]
    return [*listed, *(name for name in current if name not in listed)]


CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_PREPARE_FOR_CREATE: dict[str, Callable[[Content], None]] = {
    "pods": _prepare_pod,
    "namespaces": _prepare_namespace,
    "nodes": _prepare_node,
    "secrets": _prepare_secret,
    "services": _prepare_service,
    "persistentvolumeclaims": _prepare_volume,
    "persistentvolumes": _prepare_volume,
    DEFINITIONS: _prepare_definition,
}


# -- updates


def prepare_for_update(kind: Kind, content: Content, old: Content, subresource: str) -> None:
    """Restore what the endpoint may not change: everything but the status for `status`, the status otherwise."""
    if subresource == "status":
        meta, status = content["metadata"], content.get("status")
        writable = {
            name: meta[name]
            for name in ("labels", "annotations", "finalizers", "managedFields")
            if name in meta
        }
        content.clear()
        content.update(old)
        if kind.definition is not None or kind.id in STATUS_ALONE:
            writable = {name: value for name, value in writable.items() if name == "managedFields"}
        content["metadata"] = {**old["metadata"], **writable}
        content.pop("status", None)
        if status is not None:
            content["status"] = status
        if kind.id == RESOURCE_CLAIMS:
            drop_status_of_lost_devices(old, content)
    elif kind.has_status and kind.id != DEFINITIONS:
        content.pop("status", None)
        if "status" in old:
            content["status"] = old["status"]
    elif kind.id == DEFINITIONS:
        _prepare_definition(content)
        if "status" in old:
            content["status"]["conditions"] = old["status"].get("conditions", [])
            content["status"]["storedVersions"] = _stored_versions(content, old)
    if kind.id == "secrets":
        _prepare_secret(content)
    if kind.id == "services" and subresource == "":
        prepare_service_update(content, old)
    if kind.id == "namespaces" and subresource == "":
        content["spec"] = old.get("spec", {})


def needs_version(kind: Kind) -> bool:
    """Whether updates must name the resourceVersion that they are based on."""
    return kind.definition is not None or kind.id in WITH_VERSIONED_UPDATES


def update_generation(kind: Kind, content: Content, old: Content, subresource: str) -> None:
    """The generation rises when the desired state changes."""
    if "generation" not in old["metadata"] or subresource == "status":
        return
    if kind.definition is not None:
        skipped = _OUTSIDE_SPEC if kind.has_status else _OUTSIDE_SPEC[:3]
        desired = {name: value for name, value in content.items() if name not in skipped}
        before = {name: value for name, value in old.items() if name not in skipped}
    elif kind.id == "deployments.apps":  # rollouts keep their history in annotations
        desired, before = _desired_rollout(content), _desired_rollout(old)
    else:
        desired, before = content.get("spec") or {}, old.get("spec") or {}
    if not json_equal(desired, before):
        content["metadata"]["generation"] = int(old["metadata"]["generation"]) + 1


def _desired_rollout(deployment: Content) -> Content:
    annotations = deployment["metadata"].get("annotations") or {}
    return {"spec": deployment.get("spec"), "annotations": annotations}


# -- validation


def problems(kind: Kind, content: Content, old: Content | None) -> Iterable[Problem]:
    if kind.id == DEFINITIONS:
        return definition_problems(content) + _scope_problems(content, old)
    if kind.id in batch_job_rules.KINDS:
        return batch_job_rules.problems(kind.id, content, old)
    if kind.id == config_data_rules.CONFIG_MAPS:
        return config_data_rules.config_map_problems(content, old or {})
    if kind.id == config_data_rules.SECRETS:
        return config_data_rules.secret_problems(content, old or {})
    if kind.id in webhook_rules.KINDS:
        return webhook_rules.problems(content)
    return []


def _scope_problems(content: Content, old: Content | None) -> list[Problem]:
    scope, before = ((version or {}).get("spec", {}).get("scope") for version in (content, old))
    if old is None or scope == before:
        return []
    return [invalid("spec.scope", scope, "field is immutable")]
