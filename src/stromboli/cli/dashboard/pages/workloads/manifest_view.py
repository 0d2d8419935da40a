"""An object as YAML, with the command that shows all of it."""

from __future__ import annotations

import json
import shlex
from typing import Any

import msgspec

from stromboli.cli.cluster.cluster_kinds import Manifest
from stromboli.cli.dashboard.pages.object_elements import command_line, kubectl_kind, lines_of
from stromboli.cli.dashboard.pages.page_elements import card
from stromboli.cli.output import yaml_text
from stromboli.kube.api_resources import Resource
from stromboli.simulator.reports.page.markup import Markup

LARGEST_MANIFEST = 64 * 1024
"""Characters of a manifest that are shown."""


def manifest_card(resource: Resource, manifest: Manifest, namespace: str) -> Markup:
    """An object as YAML, without what only API servers need; the beginning of it if it is large."""
    name = str(manifest["metadata"].get("name") or "")
    command = f"kubectl get {kubectl_kind(resource)} {shlex.quote(name)} -n {shlex.quote(namespace)} -o yaml"
    text, whole = manifest_text(manifest)
    note = "" if whole else f"Only the first {LARGEST_MANIFEST:,} characters are shown."
    return card(
        "Manifest", command_line(command), lines_of(text.splitlines(), "manifest"), note=note, wide=True
    )


def manifest_text(manifest: Manifest) -> tuple[str, bool]:
    """As YAML, or where it is large the beginning of it as JSON; and whether that is all of it."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    kept: dict[str, Any] = {**manifest, "metadata": metadata}
    if len(msgspec.json.encode(kept)) <= LARGEST_MANIFEST:
        text = yaml_text(kept)
    else:
        text = json.dumps(kept, indent=2, ensure_ascii=False)
    return text[:LARGEST_MANIFEST], len(text) <= LARGEST_MANIFEST
