"""API discovery: group by group, or aggregated in one document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
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
_VERSION = re.compile(r"v([0-9]{1,9})(?:(alpha|beta)([0-9]{1,9}))?")
_LAST = "scheduling.k8s.io"
"""The group that comes last: where two groups have a resource, kubectl takes the first, so PodGroups are Volcano's."""
_STAGES = (None, "beta", "alpha")
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def discovery_document(registry: KindRegistry, path: str, accept: str) -> tuple[bytes, str] | None:
    """The document of /api, /apis or a group or version below, and its content type; None elsewhere."""
    aggregated = path in ("/api", "/apis") and "as=apigroupdiscoverylist" in accept.lower()
    document = _encoded(tuple(registry), path, aggregated)
    if document is None:
        return None
    return document, _content_type(accept) if aggregated else "application/json"


@lru_cache(maxsize=256)
def _encoded(kinds: tuple[Kind, ...], path: str, aggregated: bool) -> bytes | None:
    """Encoded once, until a kind is registered or unregistered."""
    content = _aggregated(kinds, path == "/apis") if aggregated else _content(kinds, path)
    return None if content is None else msgspec.json.encode(content)


def _versions(kinds: Iterable[Kind]) -> dict[str, list[str]]:
    """The versions of each group but the core group, the preferred one first."""
    versions: dict[str, set[str]] = {}
    for kind in kinds:
        if kind.group:
            versions.setdefault(kind.group, set()).add(kind.version)
    groups = sorted(versions, key=lambda group: group == _LAST)
    return {group: sorted(versions[group], key=_rank) for group in groups}


def _rank(version: str) -> tuple[int, int, int, str]:
    """Kubernetes' version priority: stable, beta, alpha, each with the newest first; then all other names."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STAGES), 0, 0, version
    major, stage, minor = match.groups()
    return _STAGES.index(stage), -int(major), -int(minor or 0), version


def _content(kinds: tuple[Kind, ...], path: str) -> dict[str, Any] | None:
    groups = _versions(kinds)
    match path.strip("/").split("/"):
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["api", "v1"]:
            return _resources(kinds, "", "v1")
        case ["apis"]:
            listed = [_group(name, versions) for name, versions in groups.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, groups[group])}
        case ["apis", group, version] if version in groups.get(group, ()):
            return _resources(kinds, group, version)
    return None


def _resources(kinds: Iterable[Kind], group: str, version: str) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for kind in kinds:
        if (kind.group, kind.version) == (group, version):
            resources.append(_resource(kind))
            resources += (_subresource(kind, subresource) for subresource in kind.subresources)
    name = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}


def _aggregated(kinds: tuple[Kind, ...], groups: bool) -> dict[str, Any]:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        _aggregated_resource(kind)
                        for kind in kinds
                        if (kind.group, kind.version) == (group, version)
                    ],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }
        for group, versions in (_versions(kinds) if groups else {"": ["v1"]}).items()
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
