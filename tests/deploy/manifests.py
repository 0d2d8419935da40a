"""What is in `deploy/`, read as kustomize reads it: only as much of it as our own files use."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SAMPLES = Path(__file__).parent / "samples"
CLUSTER_WIDE = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Queue"} | {
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
}

Manifest = dict[str, Any]


def documents(path: Path) -> list[Manifest]:
    loaded = yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader)
    return [document for document in loaded if document is not None]


def build(folder: Path) -> list[Manifest]:
    """The objects of a kustomization, with its namespace and image tags."""
    (plan,) = documents(folder / "kustomization.yaml")
    unknown = plan.keys() - {"apiVersion", "kind", "namespace", "resources", "images", "configMapGenerator"}
    assert not unknown, f"{folder}: teach build() about {unknown}"
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


def _part(path: Path) -> list[Manifest]:
    return build(path) if path.is_dir() else documents(path)


def _config_map(folder: Path, generator: Manifest) -> Manifest:
    options = generator["options"]
    assert options["disableNameSuffixHash"], f"{folder}: a name with a hash is more than build() knows"
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


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def only(manifests: list[Manifest], kind: str, name: str = "") -> Manifest:
    """The one object of that kind."""
    (match,) = (
        manifest
        for manifest in manifests
        if manifest["kind"] == kind and name in ("", manifest["metadata"]["name"])
    )
    return match


CRDS = build(DEPLOY / "crds")
STANDALONE = build(DEPLOY / "overlays" / "standalone")
TAKEOVER = build(DEPLOY / "overlays" / "takeover")
NODE_USAGE = build(DEPLOY / "components" / "node-usage")
NODE_LOCK = build(DEPLOY / "components" / "node-lock")
DEBUG_ENDPOINTS = build(DEPLOY / "components" / "debug-endpoints")
EXPLAIN = documents(DEPLOY / "components" / "explain" / "rbac.yaml")


def schema_of(kind: str) -> Manifest:
    """What the CRD says about objects of a kind."""
    crd = next(crd for crd in CRDS if crd["spec"]["names"]["kind"] == kind)
    (version,) = crd["spec"]["versions"]
    schema: Manifest = version["schema"]["openAPIV3Schema"]
    return schema


def accepted_samples() -> list[Manifest]:
    return documents(SAMPLES / "accepted.yaml")


def refused_samples() -> list[tuple[str, Manifest]]:
    """Objects that are wrong, each with the field that an API server complains about."""
    return [(sample["because"], sample["object"]) for sample in documents(SAMPLES / "refused.yaml")]
