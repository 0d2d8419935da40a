"""CustomResourceDefinitions; `kind_registry.py` makes kinds of them."""

from __future__ import annotations

from collections.abc import Iterable
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
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.kind import EXTENSION, STATUS, Content, Kind, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import CREATION_TIMES

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class DefinitionStrategy(Strategy):
    has_generation = needs_version = True
    printer = CREATION_TIMES

    def initialise(self, content: Content) -> None:
        """Names are accepted at once: no controller has to check them."""
        spec = content.get("spec") or {}
        names = spec.get("names") or {}
        if isinstance(names.get("kind"), str):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", f"{names['kind']}List")
        spec.setdefault("conversion", {"strategy": "None"})
        now = object_metadata.now()
        content["status"] = {
            "conditions": [
                {
                    "type": name,
                    "status": "True",
                    "lastTransitionTime": now,
                    "reason": reason,
                    "message": message,
                }
                for name, reason, message in (
                    ("NamesAccepted", "NoConflicts", "no conflicts found"),
                    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
                )
            ],
            "acceptedNames": names,
            "storedVersions": [
                version.get("name") for version in spec.get("versions") or () if version.get("storage")
            ],
        }
        finalizers = content["metadata"].setdefault("finalizers", [])
        if CRD_FINALIZER not in finalizers:
            finalizers.append(CRD_FINALIZER)

    def prepare_for_update(self, kind: Kind, content: Content, old: Content, subresource: str) -> None:
        if subresource == "status":
            super().prepare_for_update(kind, content, old, subresource)
            return
        self.initialise(content)
        if "status" in old:
            content["status"]["conditions"] = old["status"].get("conditions", [])
            content["status"]["storedVersions"] = _stored_versions(content, old)

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        yield from _definition_problems(content)
        scope, before = ((version or {}).get("spec", {}).get("scope") for version in (content, old))
        if old is not None and scope != before:
            yield invalid("spec.scope", scope, "field is immutable")


def _stored_versions(definition: Content, old: Content) -> list[str]:
    """A storage version stays listed until a client removes it; objects are never left in a version that is dropped."""
    versions = [version.get("name") for version in (definition.get("spec") or {}).get("versions") or ()]
    listed = [name for name in old["status"].get("storedVersions") or () if name in versions]
    current = definition["status"]["storedVersions"]
    return [*listed, *(name for name in current if name not in listed)]


def _definition_problems(definition: Content) -> list[Problem]:
    """Why this server cannot serve a definition."""
    from stromboli.embedded.kinds.builtin_kinds import is_built_in  # which imports this module

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
    if name == expected and is_built_in(expected):
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


KIND = builtin(
    "apiextensions.k8s.io",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    "crd crds",
    STATUS,
    strategy=DefinitionStrategy(),
    **EXTENSION,
)
