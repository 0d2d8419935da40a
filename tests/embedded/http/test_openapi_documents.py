"""OpenAPI documents: whole, with what kubectl looks for, and made again only where something changed."""

import asyncio
import json
from typing import Any

from stromboli.embedded.http.openapi_documents import index, openapi_document, v2, v2_protobuf, v3
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry
from tests.api.schemas.manifests import OPENAPI


def custom_kind(schema: dict[str, Any]) -> Kind:
    definition = {"schema": {"openAPIV3Schema": schema}}
    return Kind("example.com", "v1", "things", "Thing", definition=definition)


BUILT_IN = tuple(KindRegistry())
CUSTOM = custom_kind(OPENAPI)
REGISTRY = KindRegistry((*BUILT_IN, CUSTOM))


def read(root: str) -> Any:
    document = asyncio.run(openapi_document(REGISTRY, f"/openapi/v3/{root}", "application/json"))
    assert document is not None
    return json.loads(document[0])


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(child) for child in node.values()))
    return set().union(*(references(child) for child in node)) if isinstance(node, list) else set()


def test_every_reference_leads_somewhere() -> None:
    for root in json.loads(index((*BUILT_IN, CUSTOM)))["paths"]:
        document_v3 = read(root)
        known = {f"#/components/schemas/{name}" for name in document_v3["components"]["schemas"]}
        assert references(document_v3) <= known
    swagger = json.loads(v2((*BUILT_IN, CUSTOM)))
    assert references(swagger) <= {f"#/definitions/{name}" for name in swagger["definitions"]}


def test_the_index_names_each_group_with_a_hash_that_changes_with_it() -> None:
    before, after = (
        json.loads(index((*BUILT_IN, custom_kind(schema))))["paths"]
        for schema in (OPENAPI, {"type": "object"})
    )
    assert {"api/v1", "apis/apps/v1", "apis/batch/v1", "apis/example.com/v1"} <= before.keys()
    assert before["apis/apps/v1"] == after["apis/apps/v1"]
    assert before["apis/example.com/v1"] != after["apis/example.com/v1"]
    assert asyncio.run(openapi_document(REGISTRY, "/openapi/v3/apis/nonsense/v1", "application/json")) is None


def test_merge_keys_and_kinds_stand_where_kubectl_looks() -> None:
    document_v3 = read("apis/apps/v1")
    deployment = document_v3["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"]
    gvk = {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert deployment["x-kubernetes-group-version-kind"] == [gvk]
    pod = document_v3["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert pod["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    patch = document_v3["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == gvk
    assert {"fieldValidation", "dryRun"} <= {parameter["name"] for parameter in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_a_crd_is_published_as_it_was_written() -> None:
    document_v3 = read("apis/example.com/v1")
    spec = document_v3["components"]["schemas"]["com.example.v1.Thing"]["properties"]["spec"]["properties"]
    for name in ("i", "ie", "s", "e", "l", "m", "mp", "deep", "any", "one"):
        written = OPENAPI["properties"]["spec"]["properties"][name]
        published = dict(spec[name])
        if written.get("type") == "array" and "x-kubernetes-list-type" not in written:
            assert published.pop("x-kubernetes-list-type") == "atomic"
        assert published == written
    patch = document_v3["paths"]["/apis/example.com/v1/namespaces/{namespace}/things/{name}"]["patch"]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


def test_documents_are_made_once() -> None:
    kinds_of_crd = (CUSTOM,)
    assert v3(kinds_of_crd) is v3((CUSTOM,))
    assert v2_protobuf(kinds_of_crd) is v2_protobuf(kinds_of_crd)


def messages(data: bytes) -> dict[int, list[bytes]]:
    """The fields of a protobuf message of texts and messages."""
    fields: dict[int, list[bytes]] = {}
    position = 0

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while position < len(data):
        tag = varint()
        size = {0: 0, 1: 8, 2: -1}[tag & 7]
        if size == 0:
            fields.setdefault(tag >> 3, []).append(str(varint()).encode())
            continue
        size = varint() if size < 0 else size
        fields.setdefault(tag >> 3, []).append(data[position : position + size])
        position += size
    return fields


def test_protobuf_and_json_documents_are_equal() -> None:
    kinds = (*BUILT_IN, CUSTOM)
    swagger = json.loads(v2(kinds))
    top = messages(v2_protobuf(kinds))
    assert top[1] == [b"2.0"]
    definitions = {}
    for entry in messages(top[9][0])[1]:
        named = messages(entry)
        definitions[named[1][0].decode()] = messages(named[2][0])
    assert definitions.keys() == swagger["definitions"].keys()
    for name, definition in definitions.items():
        properties = [
            messages(entry)[1][0].decode() for entry in messages(definition.get(25, [b""])[0]).get(1, [])
        ]
        assert properties == list(swagger["definitions"][name].get("properties", {}))
    assert len(messages(top[8][0])[2]) == len(swagger["paths"])
