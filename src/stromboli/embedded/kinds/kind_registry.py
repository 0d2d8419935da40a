"""Which kinds the server has at the moment: those it was born with, and those that CustomResourceDefinitions add."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from stromboli.embedded.kinds.builtin_kinds import BUILT_IN, REVIEWS
from stromboli.embedded.kinds.kind import SCALE, STATUS, Kind, Part, ScalePaths
from stromboli.embedded.kinds.status_errors import Cause, cause, required
from stromboli.embedded.schemas.crd_schemas import SchemaError, from_crd

_VERSION = re.compile(r"v([0-9]{1,9})(?:(alpha|beta)([0-9]{1,9}))?")
_STAGES = (None, "beta", "alpha")
_BORN_WITH = frozenset(kind.id for kind in (*BUILT_IN, *REVIEWS))


class Registry:
    """Kinds by where they are found."""

    def __init__(self, kinds: Iterable[Kind] = (*BUILT_IN, *REVIEWS)):
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._by_id: dict[str, Kind] = {}
        self.generation = 0
        """Rises with every kind that comes or goes; what is derived from all kinds is kept until then."""
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._by_id[kind.id] = kind
        self.generation += 1

    def define(self, definition: dict[str, Any]) -> None:
        """Add what a checked CustomResourceDefinition makes."""
        for kind in defined_kinds(definition):
            self.add(kind)

    def drop(self, name: str) -> None:
        """All versions of a kind, by its id."""
        self._kinds = {place: kind for place, kind in self._kinds.items() if kind.id != name}
        self._by_id.pop(name, None)
        self.generation += 1

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def by_id(self, name: str) -> Kind | None:
        """`pods`, `jobs.batch`; of several versions the one that is stored, if it is served."""
        return self._by_id.get(name)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """As an owner reference or a manifest names it."""
        return next((one for one in self if one.kind == kind and one.api_version == api_version), None)

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group but the core, the preferred one first."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        found.pop("", None)
        return {group: sorted(versions, key=_rank) for group, versions in found.items()}

    def within(self, group: str, version: str) -> list[Kind]:
        return [one for one in self if (one.group, one.version) == (group, version)]


def _rank(version: str) -> tuple[int, int, int, str]:
    """Stable before beta before alpha, new before old, names of another form at the end."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return len(_STAGES), 0, 0, version
    major, stage, minor = found.groups()
    return _STAGES.index(stage), -int(major), -int(minor or 0), version


def defined_kinds(definition: dict[str, Any]) -> list[Kind]:
    """The served versions of the kind that a checked CustomResourceDefinition makes; the stored one comes last."""
    spec = definition["spec"]
    versions = sorted(spec["versions"], key=lambda one: bool(one.get("storage")))
    stored = f"{spec['group']}/{versions[-1]['name']}"
    return [
        _defined(spec, one, "" if one is versions[-1] else stored) for one in versions if one.get("served")
    ]


def _defined(spec: dict[str, Any], version: dict[str, Any], stored: str) -> Kind:
    names = spec["names"]
    parts: list[Part] = []
    scale: ScalePaths | None = None
    declared = version.get("subresources") or {}
    if "scale" in declared:
        paths = declared["scale"]
        scale = ScalePaths(
            paths.get("specReplicasPath", "").lstrip("."),
            paths.get("statusReplicasPath", "").lstrip("."),
            paths.get("labelSelectorPath", "").lstrip("."),
        )
        parts.append(SCALE)
    if "status" in declared:
        parts.append(STATUS)
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec.get("scope") == "Namespaced",
        short=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        parts=tuple(parts),
        fields=tuple(one["jsonPath"].lstrip(".") for one in version.get("selectableFields") or ()),
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        scale=scale,
        definition=version,
        stored=stored,
    )


def definition_problems(definition: dict[str, Any]) -> list[Cause]:
    """What keeps a CustomResourceDefinition from being one that this server can serve."""
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
    wanted, name = f"{names['plural']}.{spec['group']}", definition["metadata"].get("name", "")
    if name != wanted:
        message = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        problems.append(cause("metadata.name", message))
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        message = f'Unsupported value: "{spec.get("scope", "")}": supported values: "Cluster", "Namespaced"'
        problems.append(cause("spec.scope", message, "FieldValueNotSupported"))
    if name == wanted and wanted in _BORN_WITH:
        message = (
            f'Invalid value: "{name}": the server has this resource from the start; choose another group'
        )
        problems.append(cause("metadata.name", message))
    problems += _version_problems(spec)
    return problems or _schema_problems(spec["versions"])


def _version_problems(spec: dict[str, Any]) -> list[Cause]:
    versions = spec["versions"]
    problems: list[Cause] = []
    names = [one.get("name") for one in versions]
    if len(set(names)) < len(names):
        problems.append(cause("spec.versions", "Invalid value: must contain unique version names"))
    if sum(bool(one.get("storage")) for one in versions) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        problems.append(cause("spec.versions", message))
    if not any(one.get("served") for one in versions):
        problems.append(
            cause("spec.versions", "Invalid value: must have at least one version with served: true")
        )
    strategy = (spec.get("conversion") or {}).get("strategy") or "None"
    if strategy != "None" and any(one.get("served") and not one.get("storage") for one in versions):
        message = (
            f'Unsupported value: "{strategy}": the embedded API server asks no webhook for a conversion: use "None",'
            " or serve the stored version alone"
        )
        problems.append(cause("spec.conversion.strategy", message, "FieldValueNotSupported"))
    for index, one in enumerate(versions):
        if one.get("served") and not (one.get("schema") or {}).get("openAPIV3Schema"):
            where = f"spec.versions[{index}].schema.openAPIV3Schema"
            problems.append(required(where, "schemas are required"))
    return problems


def _schema_problems(versions: list[dict[str, Any]]) -> list[Cause]:
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        try:
            from_crd(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
        except SchemaError as error:
            return [one.cause() for one in error.problems]
    return []
