"""The kinds that the server has from the start."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import SCALE, STATUS, VERBS, Kind, Part, ScalePaths


def _cluster(group: str, version: str, plural: str, kind: str, **more: Any) -> Kind:
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
_POD_PARTS = (
    Part("binding", ("create",), "Binding"),
    Part("eviction", ("create",), "Eviction", "policy", "v1"),
    Part("log", ("get",)),
    STATUS,
)
_TOKEN = Part("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1")
_FINALIZE = Part("finalize", ("update",))
_ALL = ("all",)
_SCALED = (SCALE, STATUS)
_RBAC, _STORAGE, _ADMISSION = (
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
)

BUILT_IN: tuple[Kind, ...] = (
    Kind("", "v1", "pods", "Pod", short=("po",), categories=_ALL, parts=_POD_PARTS, fields=_POD_FIELDS),
    _cluster("", "v1", "nodes", "Node", short=("no",), parts=(STATUS,), fields=("spec.unschedulable",)),
    _cluster(
        "",
        "v1",
        "namespaces",
        "Namespace",
        short=("ns",),
        parts=(_FINALIZE, STATUS),
        fields=("status.phase",),
        verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    ),
    Kind("", "v1", "services", "Service", short=("svc",), categories=_ALL, parts=(STATUS,)),
    Kind("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",), parts=(_TOKEN,)),
    Kind("", "v1", "configmaps", "ConfigMap", short=("cm",)),
    Kind("", "v1", "secrets", "Secret", fields=("type",)),
    Kind("", "v1", "events", "Event", short=("ev",), fields=_EVENT_FIELDS),
    Kind("", "v1", "endpoints", "Endpoints", short=("ep",)),
    Kind("", "v1", "limitranges", "LimitRange", short=("limits",)),
    Kind("", "v1", "podtemplates", "PodTemplate"),
    Kind("", "v1", "resourcequotas", "ResourceQuota", short=("quota",), parts=(STATUS,)),
    Kind(
        "",
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        short=("rc",),
        categories=_ALL,
        parts=_SCALED,
        scale=ScalePaths(),
    ),
    Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",), parts=(STATUS,)),
    _cluster("", "v1", "persistentvolumes", "PersistentVolume", short=("pv",), parts=(STATUS,)),
    Kind("coordination.k8s.io", "v1", "leases", "Lease"),
    _cluster("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", short=("pc",)),
    Kind("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short=("pdb",), parts=(STATUS,)),
    Kind(
        "batch",
        "v1",
        "jobs",
        "Job",
        categories=_ALL,
        parts=(STATUS,),
        fields=("status.successful",),
    ),
    Kind("batch", "v1", "cronjobs", "CronJob", short=("cj",), categories=_ALL, parts=(STATUS,)),
    *(
        Kind(
            "apps",
            "v1",
            plural,
            kind,
            short=(short,),
            categories=_ALL,
            parts=_SCALED if scaled else (STATUS,),
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
    Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", short=("netpol",)),
    Kind("networking.k8s.io", "v1", "ingresses", "Ingress", short=("ing",), parts=(STATUS,)),
    Kind("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Kind(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short=("hpa",),
        categories=_ALL,
        parts=(STATUS,),
    ),
    Kind(_RBAC, "v1", "roles", "Role"),
    Kind(_RBAC, "v1", "rolebindings", "RoleBinding"),
    _cluster(_RBAC, "v1", "clusterroles", "ClusterRole"),
    _cluster(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding"),
    _cluster(_STORAGE, "v1", "storageclasses", "StorageClass", short=("sc",)),
    _cluster(_STORAGE, "v1", "volumeattachments", "VolumeAttachment", parts=(STATUS,)),
    _cluster(_STORAGE, "v1", "csinodes", "CSINode"),
    _cluster(_STORAGE, "v1", "csidrivers", "CSIDriver"),
    Kind(_STORAGE, "v1", "csistoragecapacities", "CSIStorageCapacity"),
    _cluster(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        short=("crd", "crds"),
        categories=("api-extensions",),
        parts=(STATUS,),
    ),
    _cluster(
        _ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        categories=("api-extensions",),
    ),
    _cluster(
        _ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        categories=("api-extensions",),
    ),
)

REVIEWS: tuple[Kind, ...] = (
    _cluster("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", verbs=("create",)),
    _cluster("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", verbs=("create",)),
    _cluster("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", verbs=("create",)),
    _cluster(
        "authorization.k8s.io",
        "v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        verbs=("create",),
    ),
    _cluster(
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
"""Questions that are answered and never stored."""
