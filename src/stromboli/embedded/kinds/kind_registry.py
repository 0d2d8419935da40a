"""The kinds that the server has at the moment: built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stromboli.embedded.kinds.builtin_kinds import BUILT_IN, REVIEWS
from stromboli.embedded.kinds.kind import SCALE, STATUS, Kind, ScalePaths, SelectableField, Subresource
from stromboli.embedded.kinds.strategy import DEFINED


class KindRegistry:
    """Kinds by group, version and resource, by id, and by apiVersion and kind."""

    def __init__(self, kinds: Iterable[Kind] = (*BUILT_IN, *REVIEWS)):
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._by_id: dict[str, Kind] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._by_id[kind.id] = kind

    def register_definition(self, definition: dict[str, Any]) -> None:
        """Register the served versions of a valid CustomResourceDefinition."""
        for kind in defined_kinds(definition):
            self.register(kind)

    def unregister(self, name: str) -> None:
        """Remove all versions of a kind, by its id."""
        self._kinds = {resource: kind for resource, kind in self._kinds.items() if kind.id != name}
        self._by_id.pop(name, None)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def by_id(self, name: str) -> Kind | None:
        """`pods`, `jobs.batch`; of several versions the storage version, if it is served."""
        return self._by_id.get(name)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """As an owner reference or a manifest names it."""
        return next(
            (known for known in self if known.kind == kind and known.api_version == api_version), None
        )


def defined_kinds(definition: dict[str, Any]) -> list[Kind]:
    """The served versions of a valid CustomResourceDefinition; the storage version comes last."""
    spec = definition["spec"]
    versions = sorted(spec["versions"], key=lambda version: bool(version.get("storage")))
    storage_version = f"{spec['group']}/{versions[-1]['name']}"
    return [
        _defined(spec, version, "" if version is versions[-1] else storage_version)
        for version in versions
        if version.get("served")
    ]


def _defined(spec: dict[str, Any], version: dict[str, Any], storage_version: str) -> Kind:
    names = spec["names"]
    subresources: list[Subresource] = []
    scale: ScalePaths | None = None
    declared = version.get("subresources") or {}
    if "scale" in declared:
        paths = declared["scale"]
        scale = ScalePaths(
            paths.get("specReplicasPath", "").lstrip("."),
            paths.get("statusReplicasPath", "").lstrip("."),
            paths.get("labelSelectorPath", "").lstrip("."),
        )
        subresources.append(SCALE)
    if "status" in declared:
        subresources.append(STATUS)
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(subresources),
        selectable_fields={
            path: SelectableField(path)
            for entry in version.get("selectableFields") or ()
            if (path := entry["jsonPath"].lstrip("."))
        },
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        scale=scale,
        definition=version,
        storage_version=storage_version,
        strategy=DEFINED,
    )
