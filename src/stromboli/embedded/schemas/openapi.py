"""OpenAPI documents: v3 per group and version, v2 for all kinds.

kubectl uses v3 for `explain`, for the merge keys of `apply`, and to find out whether the server validates; older ones
use v2, as protobuf. Documents are built when they are first requested, and again only where a kind has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from stromboli.embedded.schemas import builtin_schemas
from stromboli.embedded.schemas.openapi_protobuf import encoded
from stromboli.embedded.schemas.schema import KEYWORDS, Schema

Node = dict[str, Any]

_INFO = {"title": "Kubernetes", "version": "unversioned"}
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_ACCEPTED = (PROTOBUF, PROTOBUF.replace(".v1.0", "@v1.0"))
"""`Accept` of clients that want protobuf; the second, which most send, is not a valid content type."""
_GVK = "x-kubernetes-group-version-kind"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


class Resource(msgspec.Struct, frozen=True):
    """A kind with its plural name and schema."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    schema: Schema
    patch_types: tuple[str, ...]
    """Media types of the patches that it accepts."""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def root(self) -> str:
        return f"apis/{self.api_version}" if self.group else f"api/{self.version}"

    @property
    def gvk(self) -> Node:
        return {"group": self.group, "kind": self.kind, "version": self.version}

    @property
    def definition(self) -> str:
        """The name of its schema: io.k8s.api.batch.v1.Job, sh.volcano.batch.v1alpha1.Job."""
        if self.schema.name:
            return self.schema.name
        return ".".join([*reversed(self.group.split(".")), self.version, self.kind])


# -- documents


def index(resources: Iterable[Resource]) -> bytes:
    """/openapi/v3: the URL of each document, with a hash that changes when it does."""
    paths = {}
    for root, group in _by_root(resources).items():
        digest = hashlib.sha256(v3(group)).hexdigest()[:32].upper()
        paths[root] = {"serverRelativeURL": f"/openapi/v3/{root}?hash={digest}"}
    return msgspec.json.encode({"paths": paths})


def document(resources: Iterable[Resource], root: str) -> bytes | None:
    """/openapi/v3/ROOT, such as apis/batch/v1; None if there is no such root."""
    group = _by_root(resources).get(root)
    return v3(group) if group else None


def _by_root(resources: Iterable[Resource]) -> dict[str, tuple[Resource, ...]]:
    roots: dict[str, list[Resource]] = {}
    for resource in resources:
        roots.setdefault(resource.root, []).append(resource)
    return {root: tuple(group) for root, group in roots.items()}


@lru_cache(maxsize=128)
def v3(resources: tuple[Resource, ...]) -> bytes:
    """A group and version, as JSON."""
    schemas = _Definitions("#/components/schemas/", is_v3=True)
    schemas.add(resources)
    paths = _paths(resources, _patch_v3)
    components = {"schemas": schemas.definitions}
    return msgspec.json.encode({"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": components})


@lru_cache(maxsize=2)
def v2(resources: tuple[Resource, ...]) -> bytes:
    """All kinds, as JSON."""
    return msgspec.json.encode(_swagger(resources))


@lru_cache(maxsize=2)
def v2_protobuf(resources: tuple[Resource, ...]) -> bytes:
    """All kinds, as protobuf (`PROTOBUF_ACCEPTED`)."""
    return encoded(_swagger(resources))


def _swagger(resources: Sequence[Resource]) -> Node:
    definitions = _Definitions("#/definitions/", is_v3=False)
    definitions.add(resources)
    paths = _paths(resources, _patch_v2)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions.definitions}


# -- paths: only what kubectl reads


def _paths(resources: Iterable[Resource], patch: Any) -> Node:
    paths: Node = {}
    for resource in resources:
        scope = "namespaces/{namespace}/" if resource.namespaced else ""
        path = f"/{resource.root}/{scope}{resource.plural}"
        shared = {_GVK: resource.gvk, "responses": {"200": {"description": "OK"}}}
        paths[path] = {"get": shared, "post": {**shared, **patch(None)}}
        paths[f"{path}/{{name}}"] = {
            "get": shared,
            "put": {**shared, **patch(None)},
            "patch": {**shared, **patch(resource.patch_types)},
            "delete": shared,
        }
    return paths


def _patch_v3(media: tuple[str, ...] | None) -> Node:
    text = {"type": "string"}
    parameters = [{"name": name, "in": "query", "schema": text} for name in _PARAMETERS]
    content = {media: {"schema": {"type": "object"}} for media in media or ("application/json",)}
    return {"parameters": parameters, "requestBody": {"content": content}}


def _patch_v2(media: tuple[str, ...] | None) -> Node:
    parameters = [{"name": name, "in": "query", "type": "string"} for name in _PARAMETERS]
    return {"parameters": parameters, "consumes": list(media or ("application/json",))}


# -- schemas


class _Definitions:
    """Schemas by name, with those that they refer to."""

    def __init__(self, prefix: str, is_v3: bool) -> None:
        self.definitions: dict[str, Node] = {}
        self._prefix = prefix
        self._is_v3 = is_v3

    def add(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self.definitions[resource.definition] = {**self._body(resource.schema), _GVK: [resource.gvk]}

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
            node["x-kubernetes-validations"] = [
                {"rule": rule.rule, "message": rule.message} for rule in schema.rules
            ]
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
