"""Which ConfigMaps and Secrets a pod refers to, so that they can be fetched before it starts."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.nodes.node_types import Content, NodePod

Reference = tuple[str, str]
_KINDS = (("ConfigMap", "configMap"), ("Secret", "secret"))


def references(pod: NodePod) -> set[Reference]:
    """Kind and name of each."""
    found: set[Reference] = set()
    for container in [*pod.spec.containers, *(pod.spec.init_containers or ())]:
        for source in container.get("envFrom") or ():
            found.update(_named(source, "Ref"))
        for variable in container.get("env") or ():
            found.update(_named(variable.get("valueFrom") or {}, "KeyRef"))
    for volume in pod.spec.volumes or ():
        for source in [volume, *((volume.get("projected") or {}).get("sources") or ())]:
            found.update(_named(source, ""))
    return found


def _named(source: Content, suffix: str) -> Iterator[Reference]:
    for kind, field in _KINDS:
        given = source.get(f"{field}{suffix}")
        if isinstance(given, dict):
            name = given.get("secretName") or given.get("name")
            if isinstance(name, str) and name:
                yield kind, name
