"""Parts of requests that are valid somewhere, or nowhere: what mutations put in."""

from __future__ import annotations

import json
from typing import Any

Json = Any
NAMESPACE = "mutated"
CORE = f"/api/v1/namespaces/{NAMESPACE}"
READS = (
    "/api",
    "/apis",
    "/openapi/v2",
    "/openapi/v3",
    "/version",
    "/readyz",
    f"{CORE}/pods?labelSelector=a%3Db&limit=5",
    f"{CORE}/pods?fieldSelector=status.phase%3DRunning",
    f"{CORE}/pods?watch=true&timeoutSeconds=1&resourceVersion=1",
    f"{CORE}/pods/p/log?tailLines=3",
    f"{CORE}/configmaps?limit=1&continue=e30",
)
PATCHES = {
    "application/json-patch+json": [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}},
        {"op": "copy", "from": "/metadata", "path": "/metadata/annotations"},
        {"op": "test", "path": "/kind", "value": "Pod"},
    ],
    "application/merge-patch+json": {"metadata": {"labels": {"a": "b", "c": None}}, "spec": {"minMember": 3}},
    "application/strategic-merge-patch+json": {
        "metadata": {"annotations": {"a": "b"}, "$patch": "merge"},
        "spec": {"containers": [{"name": "main", "image": "other"}], "$retainKeys": ["containers"]},
    },
}
APPLY = "application/apply-patch+yaml"
SUBRESOURCES = ("status", "scale", "binding", "eviction", "log", "exec", "ephemeralcontainers", "resize")
LARGEST = 4 * 1024 * 1024
"""Bytes of a body; some are larger than the API server takes."""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "get", "BREW", "")
DEEP = json.loads("[" * 150 + "]" * 150)
ODD_VALUES: tuple[Json, ...] = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63,
    10**30,
    -(10**30),
    1e308,
    1e-308,
    0.1,
    "",
    " ",
    "a" * 300,
    "a" * 70_000,
    "\u0000",
    "\ud800",
    "\uff41\u202e",
    "../../etc",
    "1e99999",
    "9" * 60 + "Ei",
    "-0.0000000000000000001",
    "2026-13-45T99:99:99Z",
    "(a|aa)+$",
    [],
    {},
    [[]],
    [None],
    [{}],
    {"": ""},
    {"a": {"b": {"c": {}}}},
    ["x"] * 2000,
    {str(number): "x" for number in range(2000)},
    DEEP,
)
QUERIES = (
    "watch=maybe",
    "limit=-1",
    "limit=99999999999999999999",
    "resourceVersion=99999999999",
    "resourceVersion=x",
    "resourceVersionMatch=Exact",
    "continue=%00",
    "labelSelector=" + "a%2C" * 3000,
    "labelSelector=a+in+(((",
    "fieldSelector=no.such%3Dfield",
    "timeoutSeconds=1e9",
    "fieldManager=" + "m" * 200,
    "fieldValidation=Never",
    "dryRun=All",
    "dryRun=Some",
    "force=true",
    "gracePeriodSeconds=-5",
    "propagationPolicy=Sideways",
    "pretty=" + "x" * 2000,
    "%zz=%",
)
HEADERS = (
    ("Content-Type", "application/yaml"),
    ("Content-Type", "application/vnd.kubernetes.protobuf"),
    ("Content-Type", "text/plain; charset=nonsense"),
    ("Content-Type", ""),
    ("Content-Encoding", "gzip"),
    ("Content-Encoding", "deflate"),
    ("Content-Encoding", "br, gzip"),
    ("Transfer-Encoding", "chunked"),
    ("Content-Length", "7"),
    ("Content-Length", "-1"),
    ("Content-Length", "99999999999"),
    ("Expect", "100-continue"),
    ("Expect", "a miracle"),
    ("Upgrade", "websocket"),
    ("Connection", "Upgrade"),
    ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
    ("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList"),
    ("Accept", ";;;,,,q=9"),
    ("Authorization", "Bearer "),
    ("Authorization", "Bearer " + "x.y.z"),
    ("Authorization", "Basic " + "A" * 9000),
    ("Impersonate-User", "system:admin"),
    ("Impersonate-Extra-%", "x"),
    ("Host", "a b"),
    ("X-Long", "x" * 20_000),
    ("X-\u00e9", "\u00e9"),
)
