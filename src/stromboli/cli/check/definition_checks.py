"""Whether Volcano's kinds are installed, in the versions and with the fields that we read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.cli.check.check_result import CheckResult, failed, ok, skipped, warning
from stromboli.cli.check.installation_facts import InstallationFacts
from stromboli.cli.cluster.cluster_kinds import Manifest, name_of
from stromboli.embedded.tables.table_printer import condition

CHECK = "kinds"
NECESSARY = ("jobs.batch.volcano.sh", "queues.scheduling.volcano.sh", "podgroups.scheduling.volcano.sh")
APPLY = "kubectl apply -k deploy/crds --server-side --force-conflicts"
MOST_DEPTH = 6
MOST_NAMED = 3


def check_definitions(facts: InstallationFacts) -> Iterator[CheckResult]:
    """One result for each kind that is wrong, and one if all are right."""
    if "CustomResourceDefinition" in facts.refused:
        yield skipped(CHECK, facts.refused["CustomResourceDefinition"])
        return
    installed = {name_of(item): item for item in facts.objects.get("CustomResourceDefinition", ())}
    wrong = False
    for definition in volcano_definitions():
        for result in _compared(definition, installed.get(name_of(definition))):
            wrong = True
            yield result
    if not wrong:
        yield ok(CHECK, "all kinds of Volcano are installed, with all fields")


def _compared(wanted: Manifest, installed: Manifest | None) -> Iterator[CheckResult]:
    name = name_of(wanted)
    tell = failed if name in NECESSARY else warning
    if installed is None:
        yield tell(CHECK, f"{name} is not installed", APPLY)
        return
    if condition(installed, "Established").get("status") != "True":
        yield tell(CHECK, f"{name} is not established yet", f"kubectl describe crd {name}")
    served = {version.get("name"): version for version in _versions(installed) if version.get("served")}
    for version in _versions(wanted):
        if version["name"] not in served:
            text = f"{name} is not served in version {version['name']} but in {', '.join(map(str, served)) or 'none'}"
            yield tell(CHECK, text, APPLY)
        elif missing := list(_missing_fields(_schema(version), _schema(served[version["name"]]))):
            more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
            text = f"{name} lacks {', '.join(missing[:MOST_NAMED])}{more}: the API server drops such fields"
            yield warning(CHECK, text, APPLY)


def _versions(definition: Manifest) -> list[Manifest]:
    return (definition.get("spec") or {}).get("versions") or []


def _schema(version: Manifest) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema") or {}


def _missing_fields(wanted: Any, present: Any, path: str = "", depth: int = 0) -> Iterator[str]:
    """Fields that a schema has and another lacks, as `spec.networkTopology`; not those below a missing one."""
    if depth > MOST_DEPTH or not isinstance(present, dict) or not isinstance(wanted, dict):
        return
    if present.get("x-kubernetes-preserve-unknown-fields"):
        return
    if isinstance(wanted.get("items"), dict):
        yield from _missing_fields(wanted["items"], present.get("items"), f"{path}[]", depth + 1)
    properties = present.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        field = f"{path}.{name}".lstrip(".")
        if name not in properties and not _is_open(present):
            yield field
        else:
            yield from _missing_fields(schema, properties.get(name), field, depth + 1)


def _is_open(schema: dict[str, Any]) -> bool:
    """Whether fields that are not listed are kept."""
    return "properties" not in schema
