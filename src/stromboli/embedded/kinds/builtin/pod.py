"""Pods. What their tables print is in `tables/pod_rows.py`, which commands show as well."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.resources.qos import qos_class
from stromboli.api.resources.quota_charges import Charges, pod_charges
from stromboli.api.schemas.pods.pod_semantics import pod_update_problems, set_pod_defaults
from stromboli.api.schemas.pods.pod_validation import pod_problems
from stromboli.api.schemas.schema_problems import Problem
from stromboli.api.types.pod import pod_resources
from stromboli.embedded.kinds.builtin.priority_class import admitted_class
from stromboli.embedded.kinds.kind import (
    IN_ALL,
    STATUS,
    Content,
    Kind,
    SelectableField,
    Subresource,
    builtin,
    fields,
)
from stromboli.embedded.kinds.status_errors import forbidden
from stromboli.embedded.kinds.strategy import StoredObjects, Strategy
from stromboli.embedded.tables.pod_rows import FINISHED, PODS


class PodStrategy(Strategy):
    has_generation = charged_by_content = True
    printer = PODS

    def set_defaults(self, content: Content) -> None:
        spec = content.get("spec")
        if isinstance(spec, dict):
            set_pod_defaults(spec)
            spec.setdefault("enableServiceLinks", True)

    def problems(self, content: Content) -> Iterable[Problem]:
        return pod_problems(content.get("spec") or {})

    def update_problems(self, old: Content, new: Content) -> Iterable[Problem]:
        return pod_update_problems(old.get("spec") or {}, new.get("spec") or {})

    def initialise(self, content: Content) -> None:
        content["status"] = {"phase": "Pending", "qosClass": qos_class(pod_resources(content))}

    def admit(self, store: StoredObjects, kind: Kind, namespace: str, content: Content) -> None:
        """The ServiceAccount and Priority admission plugins."""
        spec = content.get("spec")
        if isinstance(spec, dict):
            _set_service_account(store, kind, namespace, content["metadata"], spec)
            _set_priority(store, kind, content["metadata"], spec)

    def charges(self, content: Content) -> Charges:
        ended = (content.get("status") or {}).get("phase") in FINISHED
        return {} if ended else pod_charges(pod_resources(content))


def _set_service_account(
    store: StoredObjects, kind: Kind, namespace: str, meta: Content, spec: Content
) -> None:
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    if name != "default" and store.get("serviceaccounts", namespace, str(name)) is None:
        account = f"{namespace}/{name}"
        why = f'error looking up service account {account}: serviceaccount "{name}" not found'
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["serviceAccountName"] = spec["serviceAccount"] = name


def _set_priority(store: StoredObjects, kind: Kind, meta: Content, spec: Content) -> None:
    priority_class = admitted_class(store, kind, meta, spec)
    value = priority_class.get("value", 0)
    if spec.get("priority") not in (None, value):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission"
            f" controller computed {value} from the given PriorityClass name"
        )
        raise forbidden(kind, str(meta.get("name", "")), why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", priority_class.get("preemptionPolicy", "PreemptLowerPriority"))


KIND = builtin(
    "",
    "pods",
    "Pod",
    "po",
    Subresource("attach", ("create", "get"), "PodAttachOptions"),
    Subresource("binding", ("create",), "Binding"),
    Subresource("eviction", ("create",), "Eviction", "policy", "v1"),
    Subresource("exec", ("create", "get"), "PodExecOptions"),
    Subresource("log", ("get",)),
    Subresource("portforward", ("create", "get"), "PodPortForwardOptions"),
    STATUS,
    selectable_fields=fields(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork=false",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )
    | {"spec.host": SelectableField("spec.nodeName")},
    strategy=PodStrategy(),
    **IN_ALL,
)
