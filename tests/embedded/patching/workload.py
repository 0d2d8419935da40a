"""A kind small enough to hold in one's head: containers by name, finalizers, labels, and things that are whole."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from stromboli.api.schemas.schema import Schema
from stromboli.embedded.patching.managed_fields import FieldManager


def record(**properties: Schema) -> Schema:
    return Schema(type="object", properties=properties)


TEXT = Schema(type="string")
COUNT = Schema(type="integer")
TEXTS = Schema(type="object", additional_properties=TEXT)
PORT = record(number=COUNT, protocol=Schema(type="string", default="TCP"), name=TEXT)
CONTAINER = record(
    name=TEXT,
    image=TEXT,
    env=TEXTS,
    args=Schema(type="array", items=TEXT, list_type="atomic"),
    ports=Schema(
        type="array",
        items=PORT,
        list_type="map",
        list_map_keys=("number", "protocol"),
        merge_key="number",
        patch_strategies=("merge",),
    ),
)
SPEC = record(
    replicas=COUNT,
    containers=Schema(
        type="array",
        items=CONTAINER,
        list_type="map",
        list_map_keys=("name",),
        merge_key="name",
        patch_strategies=("merge",),
    ),
    command=Schema(type="array", items=TEXT, list_type="atomic"),
    selector=Schema(type="object", additional_properties=TEXT, map_type="atomic"),
    strategy=Schema(
        type="object", properties={"type": TEXT, "rolling": TEXTS}, patch_strategies=("retainKeys",)
    ),
)
METADATA = record(
    name=TEXT,
    uid=TEXT,
    labels=TEXTS,
    annotations=TEXTS,
    finalizers=Schema(type="array", items=TEXT, list_type="set", patch_strategies=("merge",)),
)
WORKLOAD = record(apiVersion=TEXT, kind=TEXT, metadata=METADATA, spec=SPEC, status=record(phase=TEXT))

API = "example.com/v1"


def workload(spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """An object of that kind, called `web`."""
    content: dict[str, Any] = {"apiVersion": API, "kind": "Workload", "metadata": {"name": "web", **metadata}}
    return content if spec is None else {**content, "spec": spec}


def field_manager(manager: str, time: str = "2026-01-01T00:00:00Z", **more: Any) -> FieldManager:
    return FieldManager(name=manager, api_version=API, time=time, **more)


def container(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


_names = st.sampled_from(["a", "b", "c", "d"])
_texts = st.dictionaries(_names, st.sampled_from(["x", "y"]), max_size=3)
_ports = st.lists(
    st.fixed_dictionaries({"number": st.integers(1, 4)}, optional={"name": _names}),
    unique_by=lambda port: port["number"],
    max_size=3,
)
_containers = st.lists(
    st.fixed_dictionaries(
        {"name": _names},
        optional={"image": _names, "env": _texts, "args": st.lists(_names, max_size=2), "ports": _ports},
    ),
    unique_by=lambda container: container["name"],
    max_size=4,
)
_specs = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 3),
        "containers": _containers,
        "command": st.lists(_names, max_size=3),
        "selector": _texts,
    },
)
workloads = st.builds(
    lambda spec, labels, finalizers: workload(spec, **labels, **finalizers),
    _specs,
    st.fixed_dictionaries({}, optional={"labels": _texts}),
    st.fixed_dictionaries({}, optional={"finalizers": st.lists(_names, unique=True, max_size=3)}),
)
"""Any object of that kind, and any configuration that somebody might apply."""

documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b/c", "~"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c/d", "~"]), below, max_size=3)
    ),
    max_leaves=12,
)
"""Anything that JSON can say, of moderate size."""
