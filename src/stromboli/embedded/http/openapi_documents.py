"""OpenAPI documents: v3 per group and version, v2 for all kinds.

kubectl uses v3 for `explain`, for the merge keys of `apply`, and to find out whether the server validates; older ones
use v2, as protobuf. Documents are built when they are first requested, kind by kind with pauses for other requests, and
again only where a kind has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from stromboli.api.schemas import builtin_schemas
from stromboli.api.schemas.schema import KEYWORDS, Schema
from stromboli.embedded.http.openapi_protobuf import encode_document, encode_schema
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.patching.patch_request import accepted_patch_types
from stromboli.embedded.time_slices import TimeSlices

Node = dict[str, Any]
Part = TypeVar("Part")

ROOT = "/openapi/"
_V3 = f"{ROOT}v3/"
_INFO = {"title": "Kubernetes", "version": "unversioned"}
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ACCEPTED = (PROTOBUF, PROTOBUF.replace(".v1.0", "@v1.0"))
"""`Accept` of clients that want protobuf; the second, which most send, is not a valid content type."""
_GVK = "x-kubernetes-group-version-kind"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


# -- documents


async def openapi_document(registry: KindRegistry, path: str, accept: str) -> tuple[bytes, str] | None:
    """A document below /openapi and its content type; None if there is no such path."""
    kinds = tuple(registry)
    if path == f"{ROOT}v2":
        if any(media_type in accept for media_type in PROTOBUF_ACCEPTED):
            await _in_slices(_protobuf_definitions, kinds)
            return v2_protobuf(kinds), PROTOBUF
        await _in_slices(lambda kind: _definitions(kind, is_v3=False), kinds)
        return v2(kinds), "application/json"
    groups = _by_root(kinds)
    if path == f"{ROOT}v3":
        await _in_slices(lambda kind: _definitions(kind, is_v3=True), kinds)
        await _in_slices(v3, groups.values())
        return index(kinds), "application/json"
    group = groups.get(path.removeprefix(_V3))
    if group is None:
        return None
    await _in_slices(lambda kind: _definitions(kind, is_v3=True), group)
    return v3(group), "application/json"


async def _in_slices(build: Callable[[Part], object], parts: Iterable[Part]) -> None:
    """Build parts of a document, which are kept until it is put together."""
    slices = TimeSlices()
    for part in parts:
        build(part)
        if slices.due:
            await slices.pause()


def index(kinds: Iterable[Kind]) -> bytes:
    """/openapi/v3: the URL of each document, with a hash that changes when it does."""
    paths = {}
    for root, group in _by_root(kinds).items():
        digest = hashlib.sha256(v3(group)).hexdigest()[:32].upper()
        paths[root] = {"serverRelativeURL": f"{_V3}{root}?hash={digest}"}
    return msgspec.json.encode({"paths": paths})


def _by_root(kinds: Iterable[Kind]) -> dict[str, tuple[Kind, ...]]:
    """Kinds by group and version, such as `apis/batch/v1`."""
    roots: dict[str, tuple[Kind, ...]] = {}
    for kind in kinds:
        roots[_root(kind)] = (*roots.get(_root(kind), ()), kind)
    return roots


def _root(kind: Kind) -> str:
    return f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"


@lru_cache(maxsize=128)
def v3(kinds: tuple[Kind, ...]) -> bytes:
    """A group and version, as JSON."""
    paths = _paths(kinds, is_v3=True)
    components = {"schemas": _all_definitions(kinds, is_v3=True)}
    return msgspec.json.encode({"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": components})


@lru_cache(maxsize=2)
def v2(kinds: tuple[Kind, ...]) -> bytes:
    """All kinds, as JSON."""
    definitions = _all_definitions(kinds, is_v3=False)
    return msgspec.json.encode({**_swagger(kinds), "definitions": definitions})


@lru_cache(maxsize=2)
def v2_protobuf(kinds: tuple[Kind, ...]) -> bytes:
    """All kinds, as protobuf (`PROTOBUF_ACCEPTED`)."""
    definitions: dict[str, bytes] = {}
    for kind in kinds:
        definitions |= _protobuf_definitions(kind)
    return encode_document(_swagger(kinds), definitions)


def _swagger(kinds: Iterable[Kind]) -> Node:
    """A document of version 2 without its definitions."""
    return {"swagger": "2.0", "info": _INFO, "paths": _paths(kinds, is_v3=False)}


def _all_definitions(kinds: Iterable[Kind], is_v3: bool) -> dict[str, Node]:
    definitions: dict[str, Node] = {}
    for kind in kinds:
        definitions |= _definitions(kind, is_v3)
    return definitions


@lru_cache(maxsize=2048)
def _definitions(kind: Kind, is_v3: bool) -> dict[str, Node]:
    """The schema of a kind, and those that it refers to."""
    definitions = _Definitions("#/components/schemas/" if is_v3 else "#/definitions/", is_v3)
    definitions.add(kind)
    return definitions.definitions


@lru_cache(maxsize=1024)
def _protobuf_definitions(kind: Kind) -> dict[str, bytes]:
    return {name: encode_schema(node) for name, node in _definitions(kind, is_v3=False).items()}


# -- paths: only what kubectl reads


def _paths(kinds: Iterable[Kind], is_v3: bool) -> Node:
    paths: Node = {}
    for kind in kinds:
        scope = "namespaces/{namespace}/" if kind.namespaced else ""
        path = f"/{_root(kind)}/{scope}{kind.plural}"
        shared = {_GVK: _gvk(kind), "responses": {"200": {"description": "OK"}}}
        paths[path] = {"get": shared, "post": {**shared, **_write(is_v3)}}
        paths[f"{path}/{{name}}"] = {
            "get": shared,
            "put": {**shared, **_write(is_v3)},
            "patch": {**shared, **_write(is_v3, accepted_patch_types(kind.definition is None))},
            "delete": shared,
        }
    return paths


def _write(is_v3: bool, media_types: tuple[str, ...] = ("application/json",)) -> Node:
    """The parameters and the body of a create, update or patch."""
    if not is_v3:
        texts = [{"name": name, "in": "query", "type": "string"} for name in _PARAMETERS]
        return {"parameters": texts, "consumes": list(media_types)}
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS]
    content = {media_type: {"schema": {"type": "object"}} for media_type in media_types}
    return {"parameters": parameters, "requestBody": {"content": content}}


def _gvk(kind: Kind) -> Node:
    return {"group": kind.group, "kind": kind.kind, "version": kind.version}


# -- schemas


class _Definitions:
    """Schemas by name, with those that they refer to."""

    def __init__(self, prefix: str, is_v3: bool) -> None:
        self.definitions: dict[str, Node] = {}
        self._prefix = prefix
        self._is_v3 = is_v3

    def add(self, kind: Kind) -> None:
        schema = object_schemas.schema(kind)
        name = schema.name or ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
        self.definitions[name] = {**self._body(schema), _GVK: [_gvk(kind)]}

    def _ref(self, name: str) -> Node:
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = (
                self._quantity() if name == _QUANTITY else self._body(builtin_schemas.named(name))
            )
        return {"$ref": self._prefix + name}

    def _quantity(self) -> Node:
        text: Node = {"description": "A number with an optional suffix: 500m, 2, 1Gi."}
        return text | (
            {"oneOf": [{"type": "string"}, {"type": "number"}]} if self._is_v3 else {"type": "string"}
        )

    def _node(self, schema: Schema) -> Node:
        if schema.format == "quantity":
            ref, own = self._ref(_QUANTITY), ""
        elif schema.name:
            ref, own = self._ref(schema.name), builtin_schemas.named(schema.name).description
        else:
            return self._body(schema)
        extra: Node = {}
        if schema.description and schema.description != own:
            extra["description"] = schema.description
        if schema.default is not msgspec.UNSET:
            extra["default"] = schema.default
        if schema.patch_strategies:
            extra["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategies)
        if self._is_v3 and extra:
            return {"allOf": [ref], **extra}
        return {**ref, **extra}

    def _body(self, schema: Schema) -> Node:
        node: Node = {"description": schema.description} if schema.description else {}
        if schema.int_or_string:
            node["format"] = "int-or-string"
            node |= (
                {"oneOf": [{"type": "integer"}, {"type": "string"}]} if self._is_v3 else {"type": "string"}
            )
        elif schema.type:
            node["type"] = schema.type
        if schema.default is not msgspec.UNSET:
            node["default"] = schema.default
        if schema.properties and (
            self._is_v3 or not schema.preserve_unknown_fields
        ):  # kubectl takes those of v2 for all fields
            node["properties"] = {key: self._node(property) for key, property in schema.properties.items()}
        if schema.items is not None:
            node["items"] = self._node(schema.items)
        if schema.additional_properties is not None:
            node["additionalProperties"] = self._node(schema.additional_properties)
        node |= _limits(schema)
        return node | (self._combined(schema) if self._is_v3 else {})

    def _combined(self, schema: Schema) -> Node:
        """What v2 cannot express."""
        node: Node = {"nullable": True} if schema.nullable else {}
        for name, group in (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of)):
            if group:
                node[name] = [self._node(part) for part in group]
        if schema.none_of is not None:
            node["not"] = self._node(schema.none_of)
        if schema.rules:
            node["x-kubernetes-validations"] = [msgspec.to_builtins(rule) for rule in schema.rules]
        return node


def _limits(schema: Schema) -> Node:
    """Validations and extensions."""
    node: Node = {}
    if schema.required:
        node["required"] = list(schema.required)
    if schema.enum:
        node["enum"] = list(schema.enum)
    for field, name in KEYWORDS.items():
        value = getattr(schema, field)
        if value is not None and value is not False and value not in ("", ()):
            node[name] = value
    if schema.patch_strategies:
        node["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategies)
    return node
