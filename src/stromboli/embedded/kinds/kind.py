"""A kind of object that the server serves: its names, versions, subresources and selectable fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Content = dict[str, Any]
"""A decoded object."""

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
ALWAYS_SELECTABLE = ("metadata.name", "metadata.namespace")
READ_PATCH_UPDATE = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """`kind` is what is sent and returned, the kind of the object itself if empty."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource("status", READ_PATCH_UPDATE)
SCALE = Subresource("scale", READ_PATCH_UPDATE, "Scale", "autoscaling", "v1")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Fields of a kind that its `scale` subresource reads and writes."""

    spec: str = "spec.replicas"
    status: str = "status.replicas"
    selector: str = "spec.selector"


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One version of a kind, with its resource: what discovery lists."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    selectable_fields: tuple[str, ...] = ()
    """For field selectors, beside name and namespace."""
    verbs: tuple[str, ...] = VERBS
    singular: str = ""
    list_kind: str = ""
    scale: ScalePaths | None = None
    definition: dict[str, Any] | None = field(default=None, repr=False)
    """The entry of `spec.versions` in the CustomResourceDefinition; None for built-in kinds."""
    storage_version: str = ""
    """The apiVersion in which objects are stored; empty if it is this one."""

    @property
    def id(self) -> str:
        """The resource as messages and the store name it: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_kind_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def singular_name(self) -> str:
        return self.singular or self.kind.lower()

    def subresource(self, name: str) -> Subresource | None:
        return next((entry for entry in self.subresources if entry.name == name), None)

    @property
    def has_status(self) -> bool:
        return self.subresource("status") is not None

    def selectable(self, path: str) -> bool:
        return path in ALWAYS_SELECTABLE or path in self.selectable_fields
