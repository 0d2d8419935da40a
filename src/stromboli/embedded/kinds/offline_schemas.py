"""The form of objects, judged without a server: built-in kinds and Volcano's, by the schemas that the server has."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.kinds.volcano_definitions import volcano_definitions
from stromboli.embedded.schemas.normalization import VALID, ValidationResult
from stromboli.embedded.schemas.schema_problems import Problem

Content = dict[str, Any]


class Forms:
    """All kinds that are known without a cluster."""

    def __init__(self, definitions: Iterable[Content] = ()) -> None:
        """`definitions` are CustomResourceDefinitions besides Volcano's."""
        self._registry = Registry()
        for definition in (*volcano_definitions(), *definitions):
            self._registry.define(definition)

    def know(self, content: Content) -> bool:
        return self._kind(content) is not None

    def kinds_of(self, group: str) -> list[str]:
        """The kinds of a group, each with its version; none if the group is not known."""
        return sorted(f"{kind.api_version} {kind.kind}" for kind in self._registry if kind.group == group)

    def findings(self, content: Content) -> ValidationResult:
        """Fields that nobody knows, and what is wrong with the others; the object is not touched."""
        kind = self._kind(content)
        if kind is None:
            return VALID
        shaped = copy.deepcopy(content)
        unknown, problems = object_schemas.shape(kind, shaped)
        if not problems and isinstance(shaped.get("metadata"), dict):
            found = object_schemas.problems(kind, shaped, None)
            problems = [Problem(one["field"], one["reason"], one["message"]) for one in found]
        return ValidationResult(unknown, problems)

    def _kind(self, content: Content) -> Kind | None:
        version, kind = content.get("apiVersion"), content.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            return None
        return self._registry.by_kind(version, kind)
