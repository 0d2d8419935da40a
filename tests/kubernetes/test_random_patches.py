"""The real API server as the oracle of the embedded one: random patches of random objects, sent to both."""

from __future__ import annotations

import http.client
import json
import urllib.error
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from stromboli.api.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC
from stromboli.embedded.patching.field_sets import paths
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.embedded import EmbeddedPlane
from tests.kubernetes.random_patches import (
    LISTS,
    deployment,
    document,
    json_patch,
    lists_spec,
    merge_patch,
    with_directives,
)
from tests.kubernetes.test_patching import BORN_WITH
from tests.number_of_examples import scaled

pytestmark = pytest.mark.real_only

Json = Any
Servers = tuple[ControlPlane, ControlPlane]
MakePatch = Callable[[Random, str, Json], tuple[str, Json]]
"""The type of the next patch, and the patch, for an object of that name as it is."""

OBJECTS = scaled(25)
STEPS = 4
GROUP = "example.com"
EMPTY = (None, {}, [])
CONTAINERS = {*BORN_WITH, ".metadata", ".metadata.annotations"}


@pytest.fixture(scope="module")
def servers(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The real server and ours, with two kinds: one for anything, one with lists of all sorts."""
    with EmbeddedPlane(tmp_path_factory.mktemp("ours")) as ours:
        for server in (plane, ours):
            server.kubectl("create", "namespace", "patched")
            server.apply(
                definition("Document", {"x-kubernetes-preserve-unknown-fields": True}),
                definition("Shelf", {"type": "object", "properties": LISTS}),
            )
            server.kubectl(
                "wait", "--for=condition=Established", "crd/documents.example.com", "crd/shelfs.example.com"
            )
        yield plane, ours


def definition(kind: str, spec: Json) -> Json:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def custom(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


class Crashed(Exception):
    """The real server panicked, as it does over a `test` of null in a list."""


def send(server: ControlPlane, method: str, path: str, body: Json = None, media: str = "") -> Json:
    """The object, or the Status of a refusal."""
    try:
        return json.loads(server.request(method, path, body, media or "application/json"))
    except urllib.error.HTTPError as error:
        return json.loads(error.read())
    except http.client.RemoteDisconnected as error:
        raise Crashed from error


def outcome(answer: Json) -> Json:
    """What both servers must agree on: code, reason and conflicts; or the object and the managers of its fields."""
    if answer["kind"] == "Status":
        causes = (answer.get("details") or {}).get("causes", []) if answer["code"] == 409 else []
        return answer["code"], answer.get("reason"), sorted(map(str, causes))
    metadata = {key: answer["metadata"].get(key) for key in ("labels", "annotations", "generation")}
    managers = [
        (entry["manager"], entry["operation"], sorted(set(_fields(entry, answer)) - CONTAINERS))
        for entry in answer["metadata"].get("managedFields", ())
    ]
    return _without_empty(metadata), _shown(answer), sorted(entry for entry in managers if entry[2])


def _shown(answer: Json) -> Json:
    """Of built-in kinds, the real server leaves out maps and lists that are empty."""
    return answer.get("spec") if answer["apiVersion"].startswith(GROUP) else _without_empty(answer["spec"])


def _without_empty(node: Json) -> Json:
    if isinstance(node, list):
        return [_without_empty(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _without_empty(value) for key, value in node.items()}
    return {key: value for key, value in kept.items() if value not in EMPTY}


def _fields(entry: Json, answer: Json) -> Iterator[str]:
    return paths(_held(entry["fieldsV1"], answer))


def _held(fields: Json, node: Json) -> Json:
    """The fields that hold something."""
    held = {}
    for key, nested in fields.items():
        kind, _, text = key.partition(":")
        child = True
        if kind == "f":
            child = node.get(text) if isinstance(node, dict) else None
        elif kind == "k":
            keys = json.loads(text).items()
            child = next((item for item in node or () if keys <= item.items()), None)
        if child not in EMPTY:
            held[key] = _held(nested, child)
    return held


def is_same(real: Json, ours: Json) -> bool:
    """Where the real server fails at what it should refuse, ours refuses."""
    if real["kind"] == "Status" and real["code"] >= 500:
        return ours["kind"] == "Status" and 400 <= ours["code"] < 500
    return json.dumps(outcome(real), sort_keys=True) == json.dumps(outcome(ours), sort_keys=True)


def is_emptied_list(real: Json) -> bool:
    """An apply that takes the last entry out of a list leaves null there, which the real server then refuses."""
    return real["kind"] == "Status" and 'Invalid value: "null"' in real["message"]


def compare(servers: Servers, path: str, first: Json, random: Random, next_patch: MakePatch) -> None:
    name = first["metadata"]["name"]
    created = [send(server, "POST", f"{path}?fieldManager=kubectl-create", first) for server in servers]
    assert is_same(*created), first
    for _ in range(STEPS):
        live = send(servers[0], "GET", f"{path}/{name}")
        media, patch = next_patch(random, name, live)
        force = "&force=true" if media == APPLY and random.random() < 0.4 else ""
        url = f"{path}/{name}?fieldManager=kubectl-{random.choice('xy')}{force}"
        try:
            real, ours = (send(server, "PATCH", url, patch, media) for server in servers)
        except Crashed:
            return
        if is_emptied_list(real):
            return
        assert is_same(real, ours), "\n".join(
            map(str, (url, media, patch, live.get("spec"), outcome(real), outcome(ours)))
        )


def patch_document(random: Random, name: str, live: Json) -> tuple[str, Json]:
    if random.random() < 0.6:
        return JSON_PATCH, json_patch(random, live.get("spec"), "/spec")
    return MERGE, {"spec": merge_patch(random, live.get("spec"))}


def patch_shelf(random: Random, name: str, live: Json) -> tuple[str, Json]:
    media = random.choice((APPLY, APPLY, MERGE))
    spec = lists_spec(random)
    return media, custom("Shelf", name, spec) if media == APPLY else {"spec": spec}


def patch_deployment(random: Random, name: str, live: Json) -> tuple[str, Json]:
    media = random.choice((APPLY, STRATEGIC, STRATEGIC, MERGE))
    patch = deployment(random, name, whole=media == MERGE or random.random() < 0.3)
    return media, with_directives(random, patch, live) if media == STRATEGIC else patch


@pytest.mark.parametrize("seed", range(OBJECTS))
def test_any_document_is_patched_as_the_real_server_does(servers: Servers, seed: int) -> None:
    random = Random(seed)
    first = custom("Document", f"a{seed}", {key: document(random) for key in "abc"})
    path = f"/apis/{GROUP}/v1/namespaces/patched/documents"
    compare(servers, path, first, random, patch_document)


@pytest.mark.parametrize("seed", range(OBJECTS))
def test_any_configuration_is_applied_as_the_real_server_does(servers: Servers, seed: int) -> None:
    random = Random(seed)
    spec: Json = {"settings": {"p": "1"}}
    path = f"/apis/{GROUP}/v1/namespaces/patched/shelfs"
    compare(servers, path, custom("Shelf", f"b{seed}", spec), random, patch_shelf)


@pytest.mark.parametrize("seed", range(OBJECTS))
def test_any_workload_is_patched_and_applied_as_the_real_server_does(servers: Servers, seed: int) -> None:
    random = Random(seed)
    path = "/apis/apps/v1/namespaces/patched/deployments"
    compare(servers, path, deployment(random, f"c{seed}", whole=True), random, patch_deployment)
