"""Valid requests, mutated by chance: the same seed gives the same requests."""

from __future__ import annotations

import copy
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.embedded.valid_objects import VALID_OBJECTS
from tests.soak.odd_inputs import (
    APPLY,
    HEADERS,
    LARGEST,
    METHODS,
    NAMESPACE,
    ODD_VALUES,
    PATCHES,
    QUERIES,
    READS,
    SUBRESOURCES,
)
from tests.soak.workloads import config_map, job, pod

Json = Any
CORE = f"/api/v1/namespaces/{NAMESPACE}"
COLLECTIONS = {
    "Pod": f"{CORE}/pods",
    "ConfigMap": f"{CORE}/configmaps",
    "Service": f"{CORE}/services",
    "Secret": f"{CORE}/secrets",
    "PersistentVolumeClaim": f"{CORE}/persistentvolumeclaims",
    "ResourceQuota": f"{CORE}/resourcequotas",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
    "PodDisruptionBudget": f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "PodGroup": f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups",
    "Job": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs",
    "CronJob": f"/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/cronjobs",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
}
POD_GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "g"},
    "spec": {"minMember": 2, "queue": "default", "minResources": {"cpu": "1"}},
}
CRON_JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "CronJob",
    "metadata": {"name": "c"},
    "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job("x", 1)["spec"]}},
}
OBJECTS = [
    *(content for content in VALID_OBJECTS if content["kind"] in COLLECTIONS),
    pod("p"),
    job("j", 2),
    config_map("m", 2000),
    POD_GROUP,
    CRON_JOB,
]


@dataclass
class Request:
    """An HTTP request before it is bytes."""

    method: str
    path: str
    content: Json = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    """The body, if it is no longer the encoded content."""

    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.content is None else json.dumps(self.content).encode()

    def encode(self, token: str) -> bytes:
        body = self.body()[:LARGEST]
        headers = {
            "Host": "cluster",
            "Authorization": f"Bearer {token}",
            "Connection": "close",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        } | self.headers
        head = f"{self.method} {self.path} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return head.encode("utf-8", "surrogatepass") + b"\r\n" + body


def mutated_requests(seed: int) -> Iterator[Request]:
    """Without end."""
    chance = random.Random(seed)
    while True:
        request = _valid(chance)
        for _ in range(chance.choice((1, 1, 2, 4))):
            chance.choice(MUTATIONS)(chance, request)
        yield request


def _valid(chance: random.Random) -> Request:
    """A request such as clients send, to an object of which there may be one."""
    content = copy.deepcopy(chance.choice(OBJECTS))
    collection = COLLECTIONS[content["kind"]]
    path = f"{collection}/{content['metadata']['name']}"
    sort = chance.choice(("create", "create", "update", "patch", "apply", "delete", "subresource", "read"))
    if sort == "read":
        return Request("GET", chance.choice((*READS, collection, path)))
    if sort == "create":
        return Request("POST", collection, content)
    if sort == "update":
        return Request("PUT", path, content)
    if sort == "delete":
        return Request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
    if sort == "apply":
        return Request("PATCH", f"{path}?fieldManager=m", content, {"Content-Type": APPLY})
    if sort == "subresource":
        method = chance.choice(("GET", "PUT", "POST", "PATCH"))
        return Request(method, f"{path}/{chance.choice(SUBRESOURCES)}", content)
    media = chance.choice(tuple(PATCHES))
    return Request("PATCH", path, copy.deepcopy(PATCHES[media]), {"Content-Type": media})


# -- mutations


def _method(chance: random.Random, request: Request) -> None:
    request.method = chance.choice(METHODS)


def _path(chance: random.Random, request: Request) -> None:
    parts = request.path.split("/")
    index = chance.randrange(len(parts))
    odd = (
        "",
        "..",
        "%2e%2e",
        "%00",
        "\u00e9",
        "a" * 300,
        "*",
        "?",
        "#",
        "status",
        parts[index] + "%20",
        "%",
        ";a=b",
    )
    parts[index : index + chance.randrange(2)] = [chance.choice(odd)]
    request.path = "/".join(parts)


def _query(chance: random.Random, request: Request) -> None:
    request.path += ("&" if "?" in request.path else "?") + chance.choice(QUERIES)


def _header(chance: random.Random, request: Request) -> None:
    name, value = chance.choice(HEADERS)
    request.headers[name] = value


def _value(chance: random.Random, request: Request) -> None:
    """Put an odd value in the place of any value, or take the value out, or add one."""
    place: Json = request.content
    while isinstance(place, dict | list) and place:
        key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
        inner = place[key]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.7:
            place = inner
            continue
        if chance.random() < 0.15:
            del place[key]
        elif isinstance(place, dict) and chance.random() < 0.15:
            place[chance.choice(("", "unknown", "a" * 300, "$patch", "k:{}", "metadata"))] = chance.choice(
                ODD_VALUES
            )
        else:
            place[key] = copy.deepcopy(chance.choice(ODD_VALUES))
        return


def _bytes(chance: random.Random, request: Request) -> None:
    """Cut, insert or change some bytes of the body."""
    body = bytearray(request.body() or b"{}")
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(body) + 1)
        body[at : at + chance.randrange(3)] = chance.choice(
            (b"", b"\x00", b"\xff", b'"', b"{", b"]", b",", b"\\u")
        )
    request.raw = bytes(body)


def _compressed(chance: random.Random, request: Request) -> None:
    request.raw = zlib.compress(request.body() * chance.choice((1, 30)), 1)
    request.headers["Content-Encoding"] = "deflate"


def _yaml(chance: random.Random, request: Request) -> None:
    """As YAML: anchors, merge keys, and more of it than anybody writes."""
    lines = chance.choice((3, 300, 10_000))
    request.raw = b"a: &a [x]\n" + b"".join(b"k%d: *a\n" % number for number in range(lines))
    request.headers["Content-Type"] = chance.choice(("application/yaml", APPLY))


def _repeated(chance: random.Random, request: Request) -> None:
    """A list of the content, many times."""
    request.content = [request.content] * chance.choice((2, 30))


MUTATIONS: tuple[Callable[[random.Random, Request], None], ...] = (
    _method,
    _path,
    _query,
    _header,
    *[_value] * 6,
    _bytes,
    _compressed,
    _yaml,
    _repeated,
)
