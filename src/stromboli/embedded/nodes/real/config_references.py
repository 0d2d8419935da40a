"""The ConfigMaps and Secrets that a pod refers to, to be fetched before it starts."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.nodes.node_types import Content, NodePod

Reference = tuple[str, str]
_KINDS = (("ConfigMap", "configMap"), ("Secret", "secret"))


def references(pod: NodePod) -> set[Reference]:
    """Kind and name of each."""
    names: set[Reference] = set()
    for container in [*pod.spec.containers, *(pod.spec.init_containers or ())]:
        for source in container.get("envFrom") or ():
            names.update(_referenced(source, "Ref"))
        for variable in container.get("env") or ():
            names.update(_referenced(variable.get("valueFrom") or {}, "KeyRef"))
    for volume in pod.spec.volumes or ():
        for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
            names.update(_referenced(source, ""))
    return names


def _referenced(source: Content, suffix: str) -> Iterator[Reference]:
    for kind, field in _KINDS:
        reference = source.get(f"{field}{suffix}")
        if isinstance(reference, dict):
            name = reference.get("secretName") or reference.get("name")
            if isinstance(name, str) and name:
                yield kind, name
