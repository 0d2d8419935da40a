"""A kind of object that the server serves: its names, versions, subresources and selectable fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stromboli.embedded.kinds.strategy import DEFAULT, Content, Strategy

__all__ = (
    "ALPHA",
    "CLUSTER",
    "EXTENSION",
    "IN_ALL",
    "READ_PATCH_UPDATE",
    "SCALE",
    "STATUS",
    "VERBS",
    "Content",
    "Kind",
    "ScalePaths",
    "SelectableField",
    "Subresource",
    "builtin",
    "fields",
)

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
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


class SelectableField(NamedTuple):
    """What a field selector compares: a field, the value of an object that lacks it, and a field instead of it."""

    path: str
    absent: str = ""
    substitute: str = ""


_NAME, _NAMESPACE = SelectableField("metadata.name"), SelectableField("metadata.namespace")


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
    selectable_fields: Mapping[str, SelectableField] = field(default_factory=dict)
    """By the label in field selectors, beside name and namespace."""
    verbs: tuple[str, ...] = VERBS
    singular: str = ""
    list_kind: str = ""
    scale: ScalePaths | None = None
    definition: dict[str, Any] | None = field(default=None, repr=False)
    """The entry of `spec.versions` in the CustomResourceDefinition; None for built-in kinds."""
    storage_version: str = ""
    """The apiVersion in which objects are stored; empty if it is this one."""
    strategy: Strategy = DEFAULT

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

    @property
    def has_own_selectors(self) -> bool:
        """Whether Kubernetes registers field selectors for the kind, instead of its default ones."""
        return bool(self.selectable_fields) or self.definition is not None

    def selectable(self, label: str) -> SelectableField | None:
        """The field with this label in field selectors."""
        if label == _NAME.path:
            return _NAME
        if label == _NAMESPACE.path and (self.namespaced or not self.has_own_selectors):
            return _NAMESPACE
        return self.selectable_fields.get(label)


# -- built-in kinds

CLUSTER: dict[str, Any] = {"namespaced": False}
IN_ALL: dict[str, Any] = {"categories": ("all",)}
ALPHA: dict[str, Any] = {"version": "v1alpha2"}
EXTENSION: dict[str, Any] = {"categories": ("api-extensions",), **CLUSTER}


def builtin(
    group: str, plural: str, kind: str, short: str = "", *subresources: Subresource, **more: Any
) -> Kind:
    """A built-in kind; `short` has the short names, separated by blanks."""
    scale = ScalePaths() if SCALE in subresources else None
    names = tuple(short.split())
    more = {"version": "v1", "short_names": names, "subresources": subresources, "scale": scale, **more}
    return Kind(group=group, plural=plural, kind=kind, **more)


def fields(*fields: str) -> dict[str, SelectableField]:
    """For field selectors; `path=value` where an object that lacks the field has that value."""
    parts = (field.partition("=") for field in fields)
    return {path: SelectableField(path, absent) for path, _, absent in parts}
