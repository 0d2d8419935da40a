"""API discovery: group by group, or aggregated in one document."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.kinds.kind import Kind, Subresource
from stromboli.embedded.kinds.kind_registry import KindRegistry

VERSION = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.0-stromboli",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Discovery:
    """Discovery documents, cached until a kind is registered or unregistered."""

    def __init__(self, registry: KindRegistry):
        self._registry = registry
        self._documents: dict[str, bytes] = {}
        self._generation = -1

    def document(self, path: str, accept: str) -> tuple[bytes, str] | None:
        """The document of /api, /apis or a group or version below, and its content type; None elsewhere."""
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
        aggregated = path in ("/api", "/apis") and "as=apigroupdiscoverylist" in accept.lower()
        key = f"{path} {aggregated}"
        if key not in self._documents:
            content = self._aggregated(path == "/apis") if aggregated else self._content(path)
            if content is None:
                return None
            self._documents[key] = msgspec.json.encode(content)
        return self._documents[key], _content_type(accept) if aggregated else "application/json"

    def _content(self, path: str) -> dict[str, Any] | None:
        match path.strip("/").split("/"):
            case ["api"]:
                return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            case ["api", "v1"]:
                return self._resources("", "v1")
            case ["apis"]:
                groups = [_group(name, versions) for name, versions in self._registry.groups().items()]
                return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", group]:
                versions = self._registry.groups().get(group)
                return (
                    {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions else None
                )
            case ["apis", group, version] if version in self._registry.groups().get(group, ()):
                return self._resources(group, version)
        return None

    def _resources(self, group: str, version: str) -> dict[str, Any]:
        resources: list[dict[str, Any]] = []
        for kind in self._registry.in_group_version(group, version):
            resources.append(_resource(kind))
            resources += (_subresource(kind, subresource) for subresource in kind.subresources)
        name = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}

    def _aggregated(self, groups: bool) -> dict[str, Any]:
        versions_by_group = self._registry.groups() if groups else {"": ["v1"]}
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "resources": [
                            _aggregated_resource(kind)
                            for kind in self._registry.in_group_version(group, version)
                        ],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for group, versions in versions_by_group.items()
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }


def _content_type(accept: str) -> str:
    return AGGREGATED.replace("v=v2;", "v=v2beta1;") if "v=v2;" not in accept.replace(" ", "") else AGGREGATED


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _optional_names(kind: Kind) -> dict[str, Any]:
    names = {"shortNames": kind.short_names, "categories": kind.categories}
    return {name: list(values) for name, values in names.items() if values}


def _resource(kind: Kind) -> dict[str, Any]:
    return {
        "name": kind.plural,
        "singularName": kind.singular_name,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        **_optional_names(kind),
    }


def _subresource(kind: Kind, subresource: Subresource) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": f"{kind.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": subresource.kind or kind.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.group:
        resource |= {"group": subresource.group, "version": subresource.version}
    return resource


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular_name,
        "verbs": list(kind.verbs),
        **_optional_names(kind),
    }
    if kind.subresources:
        resource["subresources"] = [
            {
                "subresource": subresource.name,
                "responseKind": {
                    "group": subresource.group if subresource.kind else kind.group,
                    "version": subresource.version or kind.version,
                    "kind": subresource.kind or kind.kind,
                },
                "verbs": list(subresource.verbs),
            }
            for subresource in kind.subresources
        ]
    return resource
