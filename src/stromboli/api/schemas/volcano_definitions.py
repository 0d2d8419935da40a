"""Volcano's CustomResourceDefinitions, from `definitions/*.yaml`.

There, `$ref: JobSpec` stands for that type in `shared_types.yaml`, and a `$ref` that is not there for a type of
Kubernetes. `make crds` writes the whole definitions to `deploy/crds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from stromboli.api.manifests.yaml_reader import documents
from stromboli.api.schemas.crd_types import crd_type

Node = dict[str, Any]

SHARED_TYPES = "shared_types.yaml"


@cache
def definition_files() -> dict[str, str]:
    """The text of each definition by the name of its file, `<group>_<plural>.yaml`."""
    folder = files("stromboli.api.schemas") / "definitions"
    texts = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir()}
    return {name: texts[name] for name in sorted(texts) if name != SHARED_TYPES}


def volcano_definitions(groups: Iterable[str] = ()) -> Iterator[Node]:
    """The definitions of these groups, or all; each is read when it is its turn."""
    wanted = set(groups)
    for name, text in definition_files().items():
        if not wanted or name.partition("_")[0] in wanted:
            yield from map(resolved, documents(text))


def resolved(node: Any) -> Any:
    """A schema with what its references stand for in their place; a description beside a reference stays."""
    if isinstance(node, list):
        return [resolved(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        described = {key: value for key, value in node.items() if key != "$ref"}
        return described | _referenced(node["$ref"])
    return {key: resolved(value) for key, value in node.items()}


def _referenced(name: str) -> Node:
    shared = _shared_types().get(name)
    node: Node = resolved(shared) if shared is not None else crd_type(name)
    return node


@cache
def _shared_types() -> Node:
    """By name, with the references in them; they must not be changed."""
    file = files("stromboli.api.schemas") / "definitions" / SHARED_TYPES
    types: Node
    (types,) = documents(file.read_text(encoding="utf-8"))
    return types
