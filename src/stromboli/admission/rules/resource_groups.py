"""The admission configuration: groups of pods, by namespace or annotation, and what is set on their pods."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.types.meta import Value

RESOURCE_GROUP = "volcano.sh/resource-group"


class Selection(Value, frozen=True):
    """Which pods: of these namespaces, or with one of these annotations (`key: value`)."""

    key: str = ""
    value: tuple[str, ...] = ()


class ResourceGroup(Value, frozen=True):
    """One group: its pods, and what decides where they run."""

    name: str = msgspec.field(default="", name="resourceGroup")
    object: Selection = Selection()
    scheduler_name: str = ""
    tolerations: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    affinity: str = ""

    def matches(self, namespace: str, annotations: Mapping[str, Any]) -> bool:
        """Whether a pod belongs to the group."""
        match self.object.key:
            case "namespace":
                return namespace in self.object.value
            case "annotation":
                return self._matches_annotation(annotations)
            case "":
                return self._matches_annotation(annotations) or annotations.get(RESOURCE_GROUP) == self.name
            case _:
                return False

    def _matches_annotation(self, annotations: Mapping[str, Any]) -> bool:
        wanted: dict[str, str] = {}
        for item in self.object.value:
            key, colon, value = item.partition(":")
            if colon:
                wanted.setdefault(key.strip(), value.strip())
        return any(annotations.get(key) == value for key, value in wanted.items())

    def apply(self, spec: dict[str, Any]) -> None:
        """Set on a pod what the group's pods get."""
        if self.labels:
            spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **self.labels}
        if self.affinity and not spec.get("affinity") and (affinity := _read_object(self.affinity)):
            spec["affinity"] = affinity
        if self.tolerations:
            spec["tolerations"] = [*(spec.get("tolerations") or ()), *copy.deepcopy(self.tolerations)]
        if self.scheduler_name:
            spec["schedulerName"] = self.scheduler_name


class _Configuration(Value, frozen=True):
    groups: tuple[ResourceGroup, ...] = msgspec.field(default=(), name="resourceGroups")


def read_groups(text: str) -> tuple[ResourceGroup, ...]:
    """The groups of a configuration; `ValueError` says what is wrong with it."""
    try:
        content: Any = next(iter(documents(text)), {})
        return msgspec.convert(_with_go_keys(content), _Configuration).groups
    except (Unreadable, msgspec.ValidationError) as error:
        raise ValueError(f"not an admission configuration: {error}") from None


def _with_go_keys(content: Any) -> Any:
    """Volcano reads the keys of tolerations in lower case, so `tolerationseconds` means `tolerationSeconds`."""
    groups = content.get("resourceGroups") if isinstance(content, dict) else None
    for group in groups if isinstance(groups, list) else ():
        tolerations = group.get("tolerations") if isinstance(group, dict) else None
        for toleration in tolerations if isinstance(tolerations, list) else ():
            if isinstance(toleration, dict) and "tolerationseconds" in toleration:
                toleration["tolerationSeconds"] = toleration.pop("tolerationseconds")
    return content


def _read_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
