"""The kinds that the server has from the start."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import SCALE, STATUS, VERBS, Kind, ScalePaths, Subresource


def _cluster_scoped(group: str, version: str, plural: str, kind: str, **more: Any) -> Kind:
    return Kind(group, version, plural, kind, namespaced=False, **more)


_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENT_FIELDS = (
    *(
        f"involvedObject.{name}"
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_POD_SUBRESOURCES = (
    Subresource("binding", ("create",), "Binding"),
    Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
    Subresource("log", ("get",)),
    STATUS,
)
_TOKEN = Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1")
_FINALIZE = Subresource("finalize", ("update",))
_ALL = ("all",)
_SCALED = (SCALE, STATUS)
_RBAC, _STORAGE, _ADMISSION = (
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
)

BUILT_IN: tuple[Kind, ...] = (
    Kind(
        "",
        "v1",
        "pods",
        "Pod",
        short_names=("po",),
        categories=_ALL,
        subresources=_POD_SUBRESOURCES,
        selectable_fields=_POD_FIELDS,
    ),
    _cluster_scoped(
        "",
        "v1",
        "nodes",
        "Node",
        short_names=("no",),
        subresources=(STATUS,),
        selectable_fields=("spec.unschedulable",),
    ),
    _cluster_scoped(
        "",
        "v1",
        "namespaces",
        "Namespace",
        short_names=("ns",),
        subresources=(_FINALIZE, STATUS),
        selectable_fields=("status.phase",),
        verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    ),
    Kind("", "v1", "services", "Service", short_names=("svc",), categories=_ALL, subresources=(STATUS,)),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", short_names=("sa",), subresources=(_TOKEN,)),
    Kind("", "v1", "configmaps", "ConfigMap", short_names=("cm",)),
    Kind("", "v1", "secrets", "Secret", selectable_fields=("type",)),
    Kind("", "v1", "events", "Event", short_names=("ev",), selectable_fields=_EVENT_FIELDS),
    Kind("", "v1", "endpoints", "Endpoints", short_names=("ep",)),
    Kind("", "v1", "limitranges", "LimitRange", short_names=("limits",)),
    Kind("", "v1", "podtemplates", "PodTemplate"),
    Kind("", "v1", "resourcequotas", "ResourceQuota", short_names=("quota",), subresources=(STATUS,)),
    Kind(
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        short_names=("rc",),
        categories=_ALL,
        subresources=_SCALED,
        scale=ScalePaths(),
    ),
    Kind(
        "",
        "v1",
        "persistentvolumeclaims",
        "PersistentVolumeClaim",
        short_names=("pvc",),
        subresources=(STATUS,),
    ),
    _cluster_scoped(
        "", "v1", "persistentvolumes", "PersistentVolume", short_names=("pv",), subresources=(STATUS,)
    ),
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    _cluster_scoped("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", short_names=("pc",)),
    Kind(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short_names=("pdb",),
        subresources=(STATUS,),
    ),
    Kind(
        "batch",
        "v1",
        "jobs",
        "Job",
        categories=_ALL,
        subresources=(STATUS,),
        selectable_fields=("status.successful",),
    ),
    Kind("batch", "v1", "cronjobs", "CronJob", short_names=("cj",), categories=_ALL, subresources=(STATUS,)),
    *(
        Kind(
            "apps",
            "v1",
            plural,
            kind,
            short_names=(short,),
            categories=_ALL,
            subresources=_SCALED if scaled else (STATUS,),
            scale=ScalePaths() if scaled else None,
        )
        for plural, kind, short, scaled in (
            ("deployments", "Deployment", "deploy", True),
            ("replicasets", "ReplicaSet", "rs", True),
            ("statefulsets", "StatefulSet", "sts", True),
            ("daemonsets", "DaemonSet", "ds", False),
        )
    ),
    Kind("apps", "v1", "controllerrevisions", "ControllerRevision"),
    Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short_names=("netpol",)),
    Kind("networking.k8s.io", "v1", "ingresses", "Ingress", short_names=("ing",), subresources=(STATUS,)),
    Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Kind(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short_names=("hpa",),
        categories=_ALL,
        subresources=(STATUS,),
    ),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    _cluster_scoped(_RBAC, "v1", "clusterroles", "ClusterRole"),
    _cluster_scoped(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding"),
    _cluster_scoped(_STORAGE, "v1", "storageclasses", "StorageClass", short_names=("sc",)),
    _cluster_scoped(_STORAGE, "v1", "volumeattachments", "VolumeAttachment", subresources=(STATUS,)),
    _cluster_scoped(_STORAGE, "v1", "csinodes", "CSINode"),
    _cluster_scoped(_STORAGE, "v1", "csidrivers", "CSIDriver"),
    Kind(_STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    _cluster_scoped(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(STATUS,),
    ),
    _cluster_scoped(
        _ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        categories=("api-extensions",),
    ),
    _cluster_scoped(
        _ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        categories=("api-extensions",),
    ),
)

REVIEWS: tuple[Kind, ...] = (
    _cluster_scoped("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", verbs=("create",)),
    _cluster_scoped(
        "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", verbs=("create",)
    ),
    _cluster_scoped(
        "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", verbs=("create",)
    ),
    _cluster_scoped(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        verbs=("create",),
    ),
    _cluster_scoped(
        "authorization.k8s.io",
        "v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        verbs=("create",),
    ),
    Kind(
        "authorization.k8s.io",
        "v1",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        verbs=("create",),
    ),
)
"""Virtual resources: created, answered and never stored."""
