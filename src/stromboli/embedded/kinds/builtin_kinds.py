"""The kinds that the server has from the start."""

from __future__ import annotations

from typing import Any

from stromboli.embedded.kinds.kind import SCALE, STATUS, VERBS, Kind, ScalePaths, SelectableField, Subresource


def _kind(
    group: str, plural: str, kind: str, short: str = "", *subresources: Subresource, **more: Any
) -> Kind:
    """`short` has the short names, separated by blanks."""
    scale = ScalePaths() if SCALE in subresources else None
    names = tuple(short.split())
    more = {"version": "v1", "short_names": names, "subresources": subresources, "scale": scale, **more}
    return Kind(group=group, plural=plural, kind=kind, **more)


def _fields(*fields: str) -> dict[str, SelectableField]:
    """For field selectors; `path=value` where an object that lacks the field has that value."""
    parts = (field.partition("=") for field in fields)
    return {path: SelectableField(path, absent) for path, _, absent in parts}


_CLUSTER: dict[str, Any] = {"namespaced": False}
_IN_ALL: dict[str, Any] = {"categories": ("all",)}
_ALPHA: dict[str, Any] = {"version": "v1alpha2"}
_EXTENSION: dict[str, Any] = {"categories": ("api-extensions",), **_CLUSTER}

_POD_FIELDS = _fields(
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork=false",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
) | {"spec.host": SelectableField("spec.nodeName")}
_EVENT_FIELDS = _fields(
    *(
        f"involvedObject.{name}"
        for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    "reason",
    "reportingComponent",
    "type",
) | {"source": SelectableField("source.component", substitute="reportingComponent")}
_SERVICE_FIELDS = _fields("spec.clusterIP", "spec.type")
_JOB_FIELDS = {"status.successful": SelectableField("status.succeeded", "0")}
_POD_SUBRESOURCES = (
    Subresource("attach", ("create", "get"), "PodAttachOptions"),
    Subresource("binding", ("create",), "Binding"),
    Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
    Subresource("exec", ("create", "get"), "PodExecOptions"),
    Subresource("log", ("get",)),
    Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
    STATUS,
)
_TOKEN = Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io", "v1")
_RBAC, _STORAGE, _DEVICES, _NETWORKING, _ADMISSION = (
    f"{name}.k8s.io"
    for name in ("rbac.authorization", "storage", "resource", "networking", "admissionregistration")
)

NAMESPACES = _kind(
    "",
    "namespaces",
    "Namespace",
    "ns",
    Subresource("finalize", ("update",)),
    STATUS,
    selectable_fields=_fields("status.phase"),
    verbs=tuple(verb for verb in VERBS if verb != "deletecollection"),
    **_CLUSTER,
)
BUILT_IN: tuple[Kind, ...] = (
    _kind("", "pods", "Pod", "po", *_POD_SUBRESOURCES, selectable_fields=_POD_FIELDS, **_IN_ALL),
    _kind(
        "", "nodes", "Node", "no", STATUS, selectable_fields=_fields("spec.unschedulable=false"), **_CLUSTER
    ),
    NAMESPACES,
    _kind("", "services", "Service", "svc", STATUS, selectable_fields=_SERVICE_FIELDS, **_IN_ALL),
    _kind("", "serviceaccounts", "ServiceAccount", "sa", _TOKEN),
    _kind("", "configmaps", "ConfigMap", "cm"),
    _kind("", "secrets", "Secret", selectable_fields=_fields("type")),
    _kind("", "events", "Event", "ev", selectable_fields=_EVENT_FIELDS),
    _kind("", "endpoints", "Endpoints", "ep"),
    _kind("", "limitranges", "LimitRange", "limits"),
    _kind("", "podtemplates", "PodTemplate"),
    _kind("", "resourcequotas", "ResourceQuota", "quota", STATUS),
    _kind(
        "",
        "replicationcontrollers",
        "ReplicationController",
        "rc",
        SCALE,
        STATUS,
        selectable_fields=_fields("status.replicas=0"),
        **_IN_ALL,
    ),
    _kind("", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", STATUS),
    _kind("", "persistentvolumes", "PersistentVolume", "pv", STATUS, **_CLUSTER),
    _kind("coordination.k8s.io", "leases", "Lease"),
    _kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", **_CLUSTER),
    _kind("scheduling.k8s.io", "podgroups", "PodGroup", "", STATUS, **_ALPHA),
    _kind("scheduling.k8s.io", "workloads", "Workload", **_ALPHA),
    _kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", STATUS),
    _kind("batch", "jobs", "Job", "", STATUS, selectable_fields=_JOB_FIELDS, **_IN_ALL),
    _kind("batch", "cronjobs", "CronJob", "cj", STATUS, **_IN_ALL),
    _kind("apps", "deployments", "Deployment", "deploy", SCALE, STATUS, **_IN_ALL),
    _kind("apps", "replicasets", "ReplicaSet", "rs", SCALE, STATUS, **_IN_ALL),
    _kind("apps", "statefulsets", "StatefulSet", "sts", SCALE, STATUS, **_IN_ALL),
    _kind("apps", "daemonsets", "DaemonSet", "ds", STATUS, **_IN_ALL),
    _kind("apps", "controllerrevisions", "ControllerRevision"),
    _kind(_NETWORKING, "networkpolicies", "NetworkPolicy", "netpol"),
    _kind(_NETWORKING, "ingresses", "Ingress", "ing", STATUS),
    _kind("discovery.k8s.io", "endpointslices", "EndpointSlice"),
    _kind(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "hpa",
        STATUS,
        version="v2",
        **_IN_ALL,
    ),
    _kind(_RBAC, "roles", "Role"),
    _kind(_RBAC, "rolebindings", "RoleBinding"),
    _kind(_RBAC, "clusterroles", "ClusterRole", **_CLUSTER),
    _kind(_RBAC, "clusterrolebindings", "ClusterRoleBinding", **_CLUSTER),
    _kind(_STORAGE, "storageclasses", "StorageClass", "sc", **_CLUSTER),
    _kind(_STORAGE, "volumeattachments", "VolumeAttachment", "", STATUS, **_CLUSTER),
    _kind(_STORAGE, "csinodes", "CSINode", **_CLUSTER),
    _kind(_STORAGE, "csidrivers", "CSIDriver", **_CLUSTER),
    _kind(_STORAGE, "csistoragecapacities", "CSIStorageCapacity"),
    _kind(_DEVICES, "deviceclasses", "DeviceClass", **_CLUSTER),
    _kind(_DEVICES, "resourceclaims", "ResourceClaim", "", STATUS),
    _kind(_DEVICES, "resourceclaimtemplates", "ResourceClaimTemplate"),
    _kind(
        _DEVICES,
        "resourceslices",
        "ResourceSlice",
        selectable_fields=_fields("spec.driver", "spec.nodeName"),
        **_CLUSTER,
    ),
    _kind(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "crd crds",
        STATUS,
        **_EXTENSION,
    ),
    _kind(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", **_EXTENSION),
    _kind(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", **_EXTENSION),
)

REVIEWS: tuple[Kind, ...] = tuple(
    _kind(group, f"{kind.lower()}s", kind, namespaced=kind.startswith("Local"), verbs=("create",))
    for group, kind in (
        ("authentication.k8s.io", "TokenReview"),
        ("authentication.k8s.io", "SelfSubjectReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectRulesReview"),
        ("authorization.k8s.io", "LocalSubjectAccessReview"),
    )
)
"""Virtual resources: created, answered and never stored."""

METRICS: tuple[Kind, ...] = tuple(
    _kind(
        "metrics.k8s.io", plural, kind, version="v1beta1", verbs=("get", "list"), namespaced=plural == "pods"
    )
    for plural, kind in (("nodes", "NodeMetrics"), ("pods", "PodMetrics"))
)
"""What nodes and pods use: answered by the nodes and never stored; served where there are nodes."""
