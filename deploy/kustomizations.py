"""Kustomizations of `deploy`, read as kustomize reads them: only as much of it as our own files use."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parent
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Queue"} | {
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
}
KNOWN = {"apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator"}

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Patch:
    """One operation of a JSON patch (RFC 6902) on an object of others."""

    kind: str
    name: str
    operation: str
    path: tuple[str, ...]
    value: Any


def documents(path: Path) -> list[Manifest]:
    loaded = yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
    return [document for document in loaded if document is not None]


def build(folder: Path) -> list[Manifest]:
    """The objects of a kustomization, with its namespace and image tags."""
    (plan,) = documents(folder / "kustomization.yaml")
    unknown = plan.keys() - KNOWN
    if unknown:
        raise ValueError(f"{folder}: build() does not know {', '.join(sorted(unknown))}")
    made = [
        copy.deepcopy(manifest) for part in plan.get("resources", []) for manifest in _part(folder / part)
    ]
    made += [_config_map(folder, generator) for generator in plan.get("configMapGenerator", [])]
    for manifest in made:
        if "namespace" in plan and manifest["kind"] not in CLUSTER_WIDE:
            manifest["metadata"]["namespace"] = plan["namespace"]
        for container in containers(manifest):
            for image in plan.get("images", []):
                if container["image"] == image["name"]:
                    container["image"] = f"{image['name']}:{image['newTag']}"
    return made


def resources(component: Path) -> list[Manifest]:
    """The objects that a component adds."""
    (plan,) = documents(component / "kustomization.yaml")
    return [manifest for file in plan.get("resources", []) for manifest in documents(component / file)]


def patches(component: Path) -> list[Patch]:
    """What a component changes in objects that are there without it."""
    (plan,) = documents(component / "kustomization.yaml")
    return [
        Patch(
            kind=patch["target"]["kind"],
            name=patch["target"]["name"],
            operation=operation["op"],
            path=tuple(operation["path"].removeprefix("/").split("/")),
            value=operation["value"],
        )
        for patch in plan.get("patches", [])
        for operation in yaml.safe_load(patch["patch"])
    ]


def _part(path: Path) -> list[Manifest]:
    return build(path) if path.is_dir() else documents(path)


def _config_map(folder: Path, generator: Manifest) -> Manifest:
    options = generator["options"]
    if not options["disableNameSuffixHash"]:
        raise ValueError(f"{folder}: a name with a hash is more than build() knows")
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": generator["name"],
            "labels": options["labels"],
            "annotations": options["annotations"],
        },
        "data": {name: (folder / name).read_text() for name in generator["files"]},
    }


def containers(manifest: Manifest) -> Iterator[Manifest]:
    if manifest["kind"] == "Deployment":
        yield from manifest["spec"]["template"]["spec"]["containers"]


def only(manifests: list[Manifest], kind: str, name: str = "") -> Manifest:
    """The one object of that kind."""
    (match,) = (
        manifest
        for manifest in manifests
        if manifest["kind"] == kind and name in ("", manifest["metadata"]["name"])
    )
    return match
