"""Patches of stored objects: what they may not change, and what counts as a change. The answers are a real server's."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.embedded.api_requests import MERGE, config_map, running

Json = Any
MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
ANYTHING = {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": True}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}
        ],
    },
}


def thing(spec: Json, name: str = "a") -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


PATCHES: list[tuple[Json, int, int]] = [
    ({"kind": "Other"}, 422, 422),
    ({"kind": None}, 200, 422),
    ({"kind": 3}, 422, 422),
    ({"apiVersion": "v2"}, 422, 422),
    ({"apiVersion": None}, 400, 400),
    ({"metadata": None}, 400, 400),
    ({"metadata": 3}, 422, 422),
    ({"metadata": {"name": None}}, 400, 400),
    ({"metadata": {"name": "b"}}, 400, 400),
    ({"metadata": {"name": 3}}, 422, 422),
    ({"metadata": {"uid": "1"}}, 422, 422),
    ({"metadata": {"uid": None}}, 200, 200),
    ({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}, 422, 422),
    ({"metadata": {"resourceVersion": None}}, 200, 422),
    ({"metadata": {"resourceVersion": 3}}, 422, 422),
    ({"metadata": {"resourceVersion": "1"}}, 409, 409),
    ({"metadata": {"generateName": "q-"}}, 200, 200),
    ({"metadata": {"finalizers": ["x"]}}, 422, 200),
    ({"data": {"a b": "x"}}, 422, 200),
    ({"data": {"..a": "x"}}, 422, 200),
]
"""Merge patches, with the status of the answer for a ConfigMap and for an object of a CRD."""


def test_a_patch_leaves_type_and_identity_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CRDS, DEFINITION)
            for number, (patch, *expected) in enumerate(PATCHES):
                name, answers = f"a{number}", []
                for path, content in ((MAPS, config_map(name)), (THINGS, thing({}, name))):
                    await api.post(path, content)
                    answers.append((await api.request("PATCH", f"{path}/{name}", patch, MERGE))[0])
                assert answers == expected, patch

    asyncio.run(scenario())


def test_a_strategic_patch_may_name_any_type(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(MAPS, config_map("a"))
            patched = await api.patch(f"{MAPS}/a", {"apiVersion": "v2", "kind": "Other"}, STRATEGIC)
            assert (patched["apiVersion"], patched["kind"]) == ("v1", "ConfigMap")
            await api.patch(f"{MAPS}/a", b"null", STRATEGIC)

    asyncio.run(scenario())


def test_true_is_not_one_and_null_is_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(CRDS, DEFINITION)
            await api.post(THINGS, thing({"a": True}))
            patched = await api.patch(f"{THINGS}/a", {"spec": {"a": 1}})
            assert (patched["spec"]["a"] is True, patched["metadata"]["generation"]) == (False, 2)
            patched = await api.patch(f"{THINGS}/a", [{"op": "replace", "path": "/spec"}], JSON)
            assert "spec" not in patched

    asyncio.run(scenario())


def test_labels_that_are_all_removed_are_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(MAPS, config_map("a", labels={"l": "m"}))
            patched = await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"l": None}}})
            assert "labels" not in patched["metadata"]

    asyncio.run(scenario())
