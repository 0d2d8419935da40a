"""Validation of objects without a server: built-in kinds and Volcano's, by the schemas that the server has."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from stromboli.api.schemas.normalization import VALID, ValidationResult
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.kinds.volcano_definitions import volcano_definitions


class OfflineSchemas:
    """Schemas of all kinds that are known without a cluster."""

    def __init__(self, definitions: Iterable[Content] = ()) -> None:
        """`definitions` are CustomResourceDefinitions besides Volcano's."""
        self._registry = KindRegistry()
        for definition in (*volcano_definitions(), *definitions):
            self._registry.register_definition(definition)

    def knows(self, content: Content) -> bool:
        return self._kind(content) is not None

    def kinds_of(self, group: str) -> list[str]:
        """The kinds of a group with their apiVersions; none if the group is not known."""
        return sorted(f"{kind.api_version} {kind.kind}" for kind in self._registry if kind.group == group)

    def validate(self, content: Content) -> ValidationResult:
        """Unknown fields, and what is wrong with the others; the object is not changed."""
        kind = self._kind(content)
        if kind is None:
            return VALID
        normalized = copy.deepcopy(content)
        unknown, problems = object_schemas.normalize(kind, normalized)
        if not problems and isinstance(normalized.get("metadata"), dict):
            problems = object_schemas.problems(kind, normalized, None)
        return ValidationResult(unknown, problems)

    def _kind(self, content: Content) -> Kind | None:
        version, kind = content.get("apiVersion"), content.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            return None
        return self._registry.by_kind(version, kind)
