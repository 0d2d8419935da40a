"""Validation of objects without a server: built-in kinds and Volcano's, by the schemas that the server has."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from stromboli.api.schemas.field_suggestions import suggested_field
from stromboli.api.schemas.normalization import VALID, ValidationResult
from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry


class OfflineSchemas:
    """Schemas of all kinds that are known without a cluster."""

    def __init__(self, definitions: Iterable[Content] = ()) -> None:
        """`definitions` are CustomResourceDefinitions besides Volcano's, which are read group by group when needed."""
        self._registry = KindRegistry()
        self._groups: set[str] = set()
        for definition in definitions:
            self._registry.register_definition(definition)

    def knows(self, content: Content) -> bool:
        return self._kind(content) is not None

    def kinds_of(self, group: str) -> list[str]:
        """The kinds of a group with their apiVersions; none if the group is not known."""
        self._read_group(group)
        return sorted(f"{kind.api_version} {kind.kind}" for kind in self._registry if kind.group == group)

    def validate(self, content: Content) -> ValidationResult:
        """Unknown fields, and what is wrong with the others; the object is not changed."""
        kind = self._kind(content)
        if kind is None:
            return VALID
        normalized = copy.deepcopy(content)
        unknown, problems = object_schemas.normalize(kind, normalized)
        if not problems and isinstance(normalized.get("metadata"), dict):
            kind.strategy.complete(normalized)
            problems = object_schemas.problems(kind, normalized, None)
        return ValidationResult(unknown, problems)

    def suggested_field(self, content: Content, path: str) -> str:
        """The field that was probably meant by one that is unknown; empty if none comes to mind."""
        kind = self._kind(content)
        return "" if kind is None else suggested_field(path, object_schemas.schema(kind))

    def _kind(self, content: Content) -> Kind | None:
        version, kind = content.get("apiVersion"), content.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            return None
        self._read_group(version.rpartition("/")[0])
        return self._registry.by_kind(version, kind)

    def _read_group(self, group: str) -> None:
        if group and group not in self._groups:
            self._groups.add(group)
            for definition in volcano_definitions([group]):
                self._registry.register_definition(definition)
