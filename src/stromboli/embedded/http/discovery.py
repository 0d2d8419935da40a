"""What the server has, as clients ask for it: group by group, or all of it in one document."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.embedded.kinds.kind import Kind, Part
from stromboli.embedded.kinds.kind_registry import Registry

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
    """Documents, kept until a kind comes or goes."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._documents: dict[str, bytes] = {}
        self._generation = -1

    def document(self, path: str, accept: str) -> tuple[bytes, str] | None:
        """The answer to /api, /apis and what lies right below; nothing elsewhere."""
        if self._generation != self._registry.generation:
            self._documents.clear()
            self._generation = self._registry.generation
        aggregated = path in ("/api", "/apis") and "as=apigroupdiscoverylist" in accept.lower()
        key = f"{path} {aggregated}"
        if key not in self._documents:
            made = self._aggregated(path == "/apis") if aggregated else self._made(path)
            if made is None:
                return None
            self._documents[key] = msgspec.json.encode(made)
        return self._documents[key], _version(accept) if aggregated else "application/json"

    def _made(self, path: str) -> dict[str, Any] | None:
        parts = path.strip("/").split("/")
        match parts:
            case ["api"]:
                return {
                    "kind": "APIVersions",
                    "versions": ["v1"],
                    "serverAddressByClientCIDRs": [],
                }
            case ["api", "v1"]:
                return self._resources("", "v1")
            case ["apis"]:
                groups = [_group(name, found) for name, found in self._registry.groups().items()]
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
        for kind in self._registry.within(group, version):
            resources.append(_resource(kind))
            resources += (_part(kind, part) for part in kind.parts)
        name = f"{group}/{version}" if group else version
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": name,
            "resources": resources,
        }

    def _aggregated(self, groups: bool) -> dict[str, Any]:
        found = self._registry.groups() if groups else {"": ["v1"]}
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "resources": [_discovered(one) for one in self._registry.within(group, version)],
                        "freshness": "Current",
                    }
                    for version in versions
                ],
            }
            for group, versions in found.items()
        ]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": items,
        }


def _version(accept: str) -> str:
    return AGGREGATED.replace("v=v2;", "v=v2beta1;") if "v=v2;" not in accept.replace(" ", "") else AGGREGATED


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource(kind: Kind) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.alone,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        resource["shortNames"] = list(kind.short)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    return resource


def _part(kind: Kind, part: Part) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "name": f"{kind.plural}/{part.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": part.kind or kind.kind,
        "verbs": list(part.verbs),
    }
    if part.group:
        resource |= {"group": part.group, "version": part.version}
    return resource


def _discovered(kind: Kind) -> dict[str, Any]:
    resource: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.alone,
        "verbs": list(kind.verbs),
    }
    if kind.short:
        resource["shortNames"] = list(kind.short)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    if kind.parts:
        resource["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": {
                    "group": part.group if part.kind else kind.group,
                    "version": part.version or kind.version,
                    "kind": part.kind or kind.kind,
                },
                "verbs": list(part.verbs),
            }
            for part in kind.parts
        ]
    return resource
