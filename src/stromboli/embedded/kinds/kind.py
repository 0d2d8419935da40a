"""A kind of object that the server serves: its names, versions, subresources and selectable fields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
BY_NAME = ("metadata.name", "metadata.namespace")
READ_PATCH_UPDATE = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Part:
    """A subresource: its name, what may be done with it, and the kind that is sent (its own object's, if none)."""

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Part("status", READ_PATCH_UPDATE)
SCALE = Part("scale", READ_PATCH_UPDATE, "Scale", "autoscaling", "v1")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what the `scale` subresource shows."""

    spec: str = "spec.replicas"
    status: str = "status.replicas"
    selector: str = "spec.selector"


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A collection of objects, as discovery tells of it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    fields: tuple[str, ...] = ()
    """What a field selector may name, beyond name and namespace."""
    verbs: tuple[str, ...] = VERBS
    singular: str = ""
    list_kind: str = ""
    scale: ScalePaths | None = None
    definition: dict[str, Any] | None = field(default=None, repr=False)
    """The version of the CustomResourceDefinition that made this kind, if one did."""
    stored: str = ""
    """The apiVersion in which objects are stored, where that is another one."""

    @property
    def id(self) -> str:
        """As messages and the store call it: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def listed(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @property
    def alone(self) -> str:
        return self.singular or self.kind.lower()

    def part(self, name: str) -> Part | None:
        return next((one for one in self.parts if one.name == name), None)

    @property
    def has_status(self) -> bool:
        return self.part("status") is not None

    def selectable(self, path: str) -> bool:
        return path in BY_NAME or path in self.fields
