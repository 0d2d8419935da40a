"""Types of Kubernetes as CustomResourceDefinitions carry them: what `$ref: PodTemplateSpec` in `definitions` means.

They say which fields there are, of which type, and which are required. Allowed values and defaults are left to
admission and to the server that gets the pods, as in Volcano's definitions: a newer Kubernetes may know more of them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.api.schemas.builtin_schemas import notation
from stromboli.api.schemas.schema import Schema

Node = dict[str, Any]

_QUANTITY = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"
_METADATA = ("annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace")
"""Of the metadata of a template, what is taken over, and what kubectl writes into every template."""
_OPEN = "x-kubernetes-preserve-unknown-fields"


def crd_type(name: str) -> Node:
    """The OpenAPI schema of a type, such as PodTemplateSpec."""
    return _node(notation().type(name))


def _node(schema: Schema) -> Node:
    if schema.name.endswith(".ObjectMeta"):
        return _metadata(schema)
    if schema.int_or_string:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    if schema.format == "quantity":  # of any type, so that `cpu: 0.5` is as good as in a Pod
        return {"pattern": _QUANTITY, _OPEN: True}
    node: Node = {"type": schema.type} if schema.type else {}
    if schema.type in ("integer", "number", "string") and schema.format:
        node["format"] = schema.format
    if schema.preserve_unknown_fields:
        node[_OPEN] = True
    if schema.required:
        node["required"] = list(schema.required)
    if schema.properties:
        node["properties"] = {key: _node(inner) for key, inner in schema.properties.items()}
    if schema.additional_properties is not None:
        node["additionalProperties"] = _node(schema.additional_properties)
    if schema.map_type:
        node["x-kubernetes-map-type"] = schema.map_type
    if schema.items is not None:
        node |= _list(schema, schema.items)
    return node


def _list(schema: Schema, items: Schema) -> Node:
    """The items of a list; keys that identify them are required or have a default."""
    node: Node = {"items": _node(items), "x-kubernetes-list-type": schema.list_type}
    if schema.list_map_keys:
        node["x-kubernetes-list-map-keys"] = list(schema.list_map_keys)
    for key in schema.list_map_keys:
        if key not in items.required:
            default = items.properties[key].default
            node["items"]["properties"][key]["default"] = "" if default is msgspec.UNSET else default
    return node


def _metadata(schema: Schema) -> Node:
    properties = {key: _node(schema.properties[key]) for key in _METADATA}
    properties["creationTimestamp"]["nullable"] = True  # which kubectl and Go write where there is none
    return {"type": "object", "properties": properties}
