"""The kinds that the server has at the moment: built-in ones, and those of CustomResourceDefinitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stromboli.api.schemas.crd_schemas import SchemaError, from_crd
from stromboli.api.schemas.rule_definitions import RuleChecks
from stromboli.api.schemas.schema_problems import (
    INVALID,
    UNSUPPORTED,
    Problem,
    invalid,
    required,
    unsupported,
)
from stromboli.embedded.kinds.builtin_kinds import BUILT_IN, METRICS, REVIEWS
from stromboli.embedded.kinds.kind import SCALE, STATUS, Kind, ScalePaths, SelectableField, Subresource

_BUILT_IN_IDS = frozenset(kind.id for kind in (*BUILT_IN, *REVIEWS, *METRICS))


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
    )


def definition_problems(definition: dict[str, Any]) -> list[Problem]:
    """Why this server cannot serve a CustomResourceDefinition."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    problems = [
        required(f"spec.{field}")
        for field, value in (
            ("group", spec.get("group")),
            ("names.plural", names.get("plural")),
            ("names.kind", names.get("kind")),
            ("versions", spec.get("versions")),
        )
        if not value
    ]
    if problems:
        return problems
    expected, name = f"{names['plural']}.{spec['group']}", definition["metadata"].get("name", "")
    if name != expected:
        problems.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        problems.append(unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    if name == expected and expected in _BUILT_IN_IDS:
        detail = "the server has this resource from the start; choose another group"
        problems.append(invalid("metadata.name", name, detail))
    problems += _version_problems(spec)
    return problems or _schema_problems(spec["versions"])


def _version_problems(spec: dict[str, Any]) -> list[Problem]:
    versions = spec["versions"]
    problems: list[Problem] = []
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        message = "Invalid value: must contain unique version names"
        problems.append(Problem("spec.versions", INVALID, message))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        problems.append(Problem("spec.versions", INVALID, message))
    if not any(version.get("served") for version in versions):
        message = "Invalid value: must have at least one version with served: true"
        problems.append(Problem("spec.versions", INVALID, message))
    strategy = (spec.get("conversion") or {}).get("strategy") or "None"
    if strategy != "None" and any(
        version.get("served") and not version.get("storage") for version in versions
    ):
        message = (
            f'Unsupported value: "{strategy}": the embedded API server asks no webhook for a conversion: use "None",'
            " or serve the stored version alone"
        )
        problems.append(Problem("spec.conversion.strategy", UNSUPPORTED, message))
    for index, version in enumerate(versions):
        if version.get("served") and not (version.get("schema") or {}).get("openAPIV3Schema"):
            field = f"spec.versions[{index}].schema.openAPIV3Schema"
            problems.append(required(field, "schemas are required"))
    return problems


def _schema_problems(versions: list[dict[str, Any]]) -> list[Problem]:
    rule_checks = RuleChecks()
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        try:
            from_crd(schema, f"spec.versions[{index}].schema.openAPIV3Schema", rule_checks=rule_checks)
        except SchemaError as error:
            return error.problems
    return []
