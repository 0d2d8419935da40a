"""Which kinds the server has at the moment: those it was born with, and those that CustomResourceDefinitions add."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stromboli.embedded.errors import Cause, cause, required
from stromboli.embedded.kinds import BUILT_IN, REVIEWS, SCALE, STATUS, Kind, Part, ScalePaths
from stromboli.embedded.schemas.crd import SchemaError, from_crd

OLD_FIRST = ("v1", "v2")


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

    def drop(self, kind: Kind) -> None:
        self._kinds.pop((kind.group, kind.version, kind.plural), None)
        self._by_id.pop(kind.id, None)
        self.generation += 1

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def by_id(self, name: str) -> Kind | None:
        """`pods`, `jobs.batch`."""
        return self._by_id.get(name)

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """As an owner reference or a manifest names it."""
        return next((one for one in self if one.kind == kind and one.api_version == api_version), None)

    def groups(self) -> dict[str, list[str]]:
        """The versions of each group but the core."""
        found: dict[str, list[str]] = {}
        for kind in self:
            versions = found.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        found.pop("", None)
        return found

    def within(self, group: str, version: str) -> list[Kind]:
        return [one for one in self if (one.group, one.version) == (group, version)]


def defined_kind(definition: dict[str, Any]) -> Kind:
    """The kind that a checked CustomResourceDefinition makes: its one served version."""
    spec = definition["spec"]
    names = spec["names"]
    version = next(one for one in spec["versions"] if one.get("served") and one.get("storage"))
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
    stored = [one for one in spec["versions"] if one.get("storage")]
    served = [one for one in spec["versions"] if one.get("served")]
    if len(stored) != 1:
        message = "Invalid value: must have exactly one version marked as storage version"
        problems.append(cause("spec.versions", message))
    elif served != stored:
        message = (
            "Invalid value: the embedded API server serves one version of a kind, the one that is stored;"
            " set served: false on the others"
        )
        problems.append(cause("spec.versions", message))
    if any(not (one.get("schema") or {}).get("openAPIV3Schema") for one in served):
        problems.append(required("spec.versions[0].schema.openAPIV3Schema", "schemas are required"))
    return problems or _schema_problems(spec["versions"])


def _schema_problems(versions: list[dict[str, Any]]) -> list[Cause]:
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        try:
            from_crd(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
        except SchemaError as error:
            return [one.cause() for one in error.problems]
    return []
