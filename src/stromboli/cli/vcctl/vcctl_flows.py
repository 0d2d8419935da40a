"""`vcctl jobflow` and `vcctl jobtemplate` (spec 07 16)."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import typer
import yaml

from stromboli.cli.cluster.cluster_errors import refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import JOB_FLOWS, JOB_TEMPLATES, Manifest, name_of, namespace_of
from stromboli.cli.cluster.manifest_files import read_manifests
from stromboli.cli.cluster.object_output import without_managed_fields
from stromboli.cli.vcctl.vcctl_flags import Flag
from stromboli.cli.vcctl.vcctl_session import Call, VcctlCommand, VcctlError
from stromboli.cli.vcctl.vcctl_tables import NO_RESOURCES, print_fitted
from stromboli.embedded.tables.age_text import age
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

NAME = Flag("name", "N", "", "the name of the object")
NAMESPACE = Flag("namespace", "n", "", "the namespace of the object")
FILE = Flag("file", "f", "", "the path to the YAML file")


@dataclass(frozen=True, slots=True)
class FlowCommands:
    """The commands of one kind."""

    resource: Resource
    words: str
    """The kind in messages."""

    async def create(self, call: Call) -> None:
        failed = False
        for manifest in self._of_file(call):
            name, namespace = name_of(manifest), namespace_of(manifest) or call.session.namespace
            try:
                await call.session.create(self.resource, manifest, namespace)
            except ApiError as error:
                failed = True
                typer.echo(shown(f"Failed to create {self.resource.kind}: {refusal_text(error)}"))
            else:
                typer.echo(shown(f"Created {self.resource.kind}: {namespace}/{name}"))
        if failed:
            raise typer.Exit(1)

    def _of_file(self, call: Call) -> list[Manifest]:
        if not call["file"]:
            raise VcctlError("open : no such file or directory")
        manifests = [manifest for _, manifest in read_manifests([call["file"]])]
        for manifest in manifests:
            if manifest.get("kind") != self.resource.kind:
                raise VcctlError(
                    f"{call['file']}: a {manifest.get('kind')}, and a {self.resource.kind} is needed"
                )
        return manifests

    async def list_all(self, call: Call) -> None:
        everywhere = call.words.values.get("all-namespaces") == "true"
        items = (await call.session.list(self.resource, "" if everywhere else None)).items
        if items:
            self._print(items)
        else:
            typer.echo(NO_RESOURCES)

    async def get(self, call: Call) -> None:
        if not call.name:
            raise VcctlError(f"name is mandatory to get the particular {self.words} details")
        self._print([await call.existing(self.resource, call.name)])

    def _print(self, items: list[Manifest]) -> None:
        titles: tuple[str, ...] = ("Name", "Namespace")
        rows: list[list[object]] = [[name_of(item), namespace_of(item)] for item in items]
        if self.resource is JOB_FLOWS:
            titles = (*titles, "Phase", "Age")
            for row, item in zip(rows, items, strict=True):
                phase = ((item.get("status") or {}).get("state") or {}).get("phase", "")
                row += [phase, age(item, time.time())]
        print_fitted(titles, rows, 4, 4)

    async def describe(self, call: Call) -> None:
        if call["format"] not in ("yaml", "json"):
            raise VcctlError(f"Unsupported format: {call['format']}")
        items = (
            [await call.existing(self.resource, call.name)]
            if call.name
            else (await call.session.list(self.resource)).items
        )
        for number, item in enumerate(items):
            if number:
                typer.echo("\n")
            content = without_managed_fields(item)
            if call["format"] == "json":
                typer.echo(json.dumps(content, indent=2))
            else:
                typer.echo(yaml.safe_dump(content, sort_keys=False, allow_unicode=False).rstrip())

    async def delete(self, call: Call) -> None:
        if call["file"]:
            chosen = [
                (namespace_of(manifest) or call.session.namespace, name_of(manifest))
                for manifest in self._of_file(call)
            ]
        elif call.name:
            chosen = [(call.session.namespace, call.name)]
        else:
            raise VcctlError(f"{self.words} name must be specified")
        failed = False
        for namespace, name in chosen:
            try:
                await call.existing(self.resource, name, namespace)
                await call.session.delete(self.resource, name, namespace)
            except (ApiError, VcctlError) as error:
                failed = True
                text = refusal_text(error) if isinstance(error, ApiError) else str(error)
                typer.echo(shown(f"Failed to delete {self.resource.kind}: {text}"))
            else:
                typer.echo(shown(f"Deleted {self.resource.kind}: {namespace}/{name}"))
        if failed:
            raise typer.Exit(1)

    def table(self) -> dict[str, VcctlCommand]:
        everywhere = Flag("all-namespaces", "", "false", "list in all namespaces", boolean=True)
        format = Flag("format", "o", "yaml", "the format of the output, yaml or json")
        return {
            "create": VcctlCommand(f"create a {self.words}", (FILE, NAMESPACE), self.create),
            "list": VcctlCommand(f"list all the {self.words}", (NAMESPACE, everywhere), self.list_all),
            "get": VcctlCommand(f"get a {self.words}", (NAME, NAMESPACE), self.get),
            "describe": VcctlCommand(f"describe a {self.words}", (NAME, NAMESPACE, format), self.describe),
            "delete": VcctlCommand(f"delete a {self.words}", (NAME, NAMESPACE, FILE), self.delete),
        }


JOBFLOW_COMMANDS = FlowCommands(JOB_FLOWS, "jobflow").table()
JOBTEMPLATE_COMMANDS = FlowCommands(JOB_TEMPLATES, "job template").table()
