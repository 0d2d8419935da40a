"""Kinds that users define."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from stromboli.api.patches import APPLY
from stromboli.embedded.store.records import Key
from tests.embedded.api_requests import MERGE, ApiCaller, running
from tests.embedded.kube_controllers.test_controller_loop import eventually

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TOYS = "/apis/example.com/v1/namespaces/default/toys"


def definition(**version: Any) -> Any:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"count": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "properties": {"count": {"type": "integer"}}},
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "toys", "kind": "Toy", "shortNames": ["ty"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


def two_versions() -> Any:
    """The second has a field more, with a default, and one less."""
    both = definition()
    spec = {"type": "object", "properties": {"size": {"type": "integer", "default": 3, "maximum": 9}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    both["spec"]["versions"].append({"name": "v2", "served": True, "storage": False, "schema": schema})
    return both


def stored_version(api: ApiCaller, name: str) -> Any:
    record = api.server.store.get("toys.example.com", "default", name)
    return record and record.object()["apiVersion"]


SUBRESOURCES = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"},
}


def toy(name: str, count: int) -> Any:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Toy",
        "metadata": {"name": name},
        "spec": {"count": count},
    }


def test_a_kind_works_as_soon_as_it_is_defined_and_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            assert (await api.request("GET", TOYS))[0] == 404
            made = await api.post(DEFINITIONS, definition(subresources=SUBRESOURCES))
            conditions = {entry["type"]: entry["status"] for entry in made["status"]["conditions"]}
            assert conditions == {"NamesAccepted": "True", "Established": "True"}
            first = await api.post(TOYS, {**toy("a", 2), "status": {"count": 9}})
            assert "status" not in first
            resource_list = await api.get("/apis/example.com/v1")
            assert {entry["name"] for entry in resource_list["resources"]} == {
                "toys",
                "toys/status",
                "toys/scale",
            }
        async with running(tmp_path) as api:
            changed = await api.patch(f"{TOYS}/a", {"spec": {"count": 3}})
            assert changed["metadata"]["generation"] == 2
            changed = await api.patch(f"{TOYS}/a/status", {"status": {"count": 1}})
            assert (changed["metadata"]["generation"], changed["status"]) == (2, {"count": 1})
            scale = await api.get(f"{TOYS}/a/scale")
            assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 1})
            _, scale = await api.request("PUT", f"{TOYS}/a/scale", {**scale, "spec": {"replicas": 5}})
            assert scale["spec"] == {"replicas": 5}
            assert (await api.get(f"{TOYS}/a"))["spec"]["count"] == 5
            await api.patch(f"{TOYS}/a/scale", {"spec": {"replicas": 6}})
            assert (await api.get(f"{TOYS}/a"))["spec"]["count"] == 6
            patch = [{"op": "replace", "path": "/spec/replicas", "value": 7}]
            scale = await api.patch(f"{TOYS}/a/scale", patch, "application/json-patch+json")
            assert scale["spec"] == {"replicas": 7}
            stale = {**scale, "metadata": {**scale["metadata"], "resourceVersion": "1"}}
            assert (await api.request("PUT", f"{TOYS}/a/scale", stale))[0] == 409
            assert (await api.request("PUT", f"{TOYS}/a/scale", {"spec": {"replicas": -1}}))[0] == 422

    asyncio.run(scenario())


def test_a_definition_goes_with_all_its_objects(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, definition())
            await api.post(TOYS, toy("a", 1))
            await api.delete(f"{DEFINITIONS}/toys.example.com")

            async def gone() -> bool:
                return (await api.request("GET", TOYS))[0] == 404

            await eventually(gone)
            await api.post(DEFINITIONS, definition())
            assert (await api.get(TOYS))["items"] == []

    asyncio.run(scenario())


def test_nothing_is_created_of_a_kind_whose_definition_is_being_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, definition())
            held = toy("held", 1)
            held["metadata"]["finalizers"] = ["example.com/x"]
            await api.post(TOYS, held)
            await api.delete(f"{DEFINITIONS}/toys.example.com")
            for method, path, media_type in (
                ("POST", TOYS, "application/json"),
                ("PATCH", f"{TOYS}/late?fieldManager=m", APPLY),
            ):
                status, answer = await api.request(method, path, toy("late", 1), media_type)
                message = "create not allowed while custom resource definition is terminating"
                assert (status, answer["reason"], answer["message"]) == (405, "MethodNotAllowed", message)
            await api.patch(f"{TOYS}/held", {"metadata": {"finalizers": None}})

            async def gone() -> bool:
                return (await api.request("GET", f"{DEFINITIONS}/toys.example.com"))[0] == 404

            await eventually(gone)
            await api.post(DEFINITIONS, definition())
            assert (await api.get(TOYS))["items"] == []

    asyncio.run(scenario())


def test_a_definition_that_cannot_be_served_is_refused_with_the_way_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            webhook = two_versions()
            webhook["spec"]["conversion"] = {"strategy": "Webhook"}
            status, answer = await api.request("POST", DEFINITIONS, webhook)
            assert (status, "serve the stored version alone" in answer["message"]) == (422, True)
            for spoilt in ({"served": False}, {"storage": False}, {"name": "v2"}):
                both = two_versions()
                for version in both["spec"]["versions"]:
                    version.update(spoilt)
                assert (await api.request("POST", DEFINITIONS, both))[0] == 422, spoilt
            misnamed = definition()
            misnamed["metadata"]["name"] = "toys.example.org"
            assert (await api.request("POST", DEFINITIONS, misnamed))[0] == 422
            for broken in ({}, {"spec": {}}, {"spec": {"versions": "x"}}, {"spec": []}):
                body = {"metadata": {"name": "toys.example.com"}, **broken}
                assert (await api.request("POST", DEFINITIONS, body))[0] in (400, 422), broken

    asyncio.run(scenario())


def test_volcanos_kinds_come_along_if_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True) as api:
            queue = {"metadata": {"name": "q"}, "spec": {"weight": 1}}
            await api.post("/apis/scheduling.volcano.sh/v1beta1/queues", queue)
            status, _ = await api.request(
                "PATCH",
                "/apis/scheduling.volcano.sh/v1beta1/queues/q",
                {},
                "application/strategic-merge-patch+json",
            )
            assert status == 415

    asyncio.run(scenario())


def test_volcanos_kinds_of_an_earlier_release_are_brought_up_to_date(tmp_path: Path) -> None:
    open_spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    jobs, queues = "jobs.batch.volcano.sh", "queues.scheduling.volcano.sh"

    def schema(content: Any) -> Any:
        return content["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]

    async def scenario() -> None:
        async with running(tmp_path, crds=True) as api:
            record = api.server.store.get("customresourcedefinitions.apiextensions.k8s.io", "", jobs)
            assert record is not None
            api.server.objects.system_update(record, lambda stored: schema(stored).update(spec=open_spec))
            changed = await api.get(f"{DEFINITIONS}/{queues}")
            schema(changed)["spec"] = open_spec
            assert (await api.request("PUT", f"{DEFINITIONS}/{queues}", changed))[0] == 200
        async with running(tmp_path, crds=True) as api:
            assert "tasks" in schema(await api.get(f"{DEFINITIONS}/{jobs}"))["spec"]["properties"]
            assert schema(await api.get(f"{DEFINITIONS}/{queues}"))["spec"] == open_spec

    asyncio.run(scenario())


def test_a_kind_moves_to_another_version_with_its_objects(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, definition())
            await api.post(TOYS, toy("a", 1))
            newer = {**definition()["spec"]["versions"][0], "name": "v2"}
            path = f"{DEFINITIONS}/toys.example.com"
            await api.patch(path, {"spec": {"versions": [newer]}})
            moved = "/apis/example.com/v2/namespaces/default/toys"
            assert (await api.get(f"{moved}/a"))["apiVersion"] == "example.com/v2"
            assert (await api.request("GET", TOYS))[0] == 404
            assert (await api.request("PATCH", path, {"spec": {"scope": "Cluster"}}, MERGE))[0] == 422

    asyncio.run(scenario())


def test_a_kind_is_served_in_several_versions_and_stored_in_one(tmp_path: Path) -> None:
    newer = TOYS.replace("v1", "v2")

    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, two_versions())
            group = await api.get("/apis/example.com")
            assert [entry["version"] for entry in group["versions"]] == ["v2", "v1"]
            assert (await api.get("/apis/example.com/v2"))["resources"][0]["name"] == "toys"
            await api.post(TOYS, toy("a", 2))
            assert (await api.request("POST", newer, toy("b", 2)))[0] == 400
            made = await api.post(newer, {**toy("b", 2), "apiVersion": "example.com/v2"})
            assert (made["apiVersion"], made["spec"]) == ("example.com/v2", {"size": 3})
            assert stored_version(api, "b") == "example.com/v1"
            for path, version, spec in (
                (TOYS, "example.com/v1", {"count": 2}),
                (newer, "example.com/v2", {}),
            ):
                listed = await api.get(path)
                assert {entry["apiVersion"] for entry in listed["items"]} == {version}
                assert (await api.get(f"{path}/a"))["spec"] == spec
                async with api.watch(f"{path}?watch=true") as following:
                    shown = (await following())["object"]
                    assert (shown["apiVersion"], shown["spec"]) == (version, spec)
                    await following()
                    changed = await api.patch(f"{TOYS}/a", {"metadata": {"labels": {"from": version[-2:]}}})
                    assert changed["apiVersion"] == "example.com/v1"
                    assert (await following())["object"]["apiVersion"] == version
            assert (await api.request("PATCH", f"{newer}/b", {"spec": {"size": 10}}, MERGE))[0] == 422
            assert (await api.patch(f"{newer}/b", {"spec": {"size": 4}}))["apiVersion"] == "example.com/v2"
        async with running(tmp_path) as api:
            assert (await api.get(f"{newer}/a"))["apiVersion"] == "example.com/v2"
            versions = two_versions()["spec"]["versions"]
            for entry in versions:
                entry["storage"] = not entry["storage"]
            await api.patch(f"{DEFINITIONS}/toys.example.com", {"spec": {"versions": versions}})
            assert (await api.get(f"{TOYS}/a"))["apiVersion"] == "example.com/v1"
            assert stored_version(api, "a") == "example.com/v2"
            await api.delete(f"{TOYS}/a")
            assert [entry["metadata"]["name"] for entry in (await api.get(newer))["items"]] == ["b"]
            await api.delete(f"{DEFINITIONS}/toys.example.com")

            async def gone() -> bool:
                return {(await api.request("GET", path))[0] for path in (TOYS, newer)} == {404}

            await eventually(gone)

    asyncio.run(scenario())


def test_a_former_storage_version_stays_listed_until_it_is_removed(tmp_path: Path) -> None:
    path = f"{DEFINITIONS}/toys.example.com"

    async def scenario() -> None:
        async with running(tmp_path) as api:

            async def stored_versions() -> Any:
                return (await api.get(path))["status"]["storedVersions"]

            both = two_versions()
            await api.post(DEFINITIONS, both)
            assert await stored_versions() == ["v1"]
            for entry in both["spec"]["versions"]:
                entry["storage"] = not entry["storage"]
            await api.patch(path, {"spec": {"versions": both["spec"]["versions"]}})
            assert await stored_versions() == ["v1", "v2"]
            await api.patch(path, {"metadata": {"labels": {"x": "y"}}})
            assert await stored_versions() == ["v1", "v2"]
            await api.patch(f"{path}/status", {"status": {"storedVersions": ["v2"]}})
            await api.patch(path, {"metadata": {"labels": {"x": "z"}}})
            assert await stored_versions() == ["v2"]

    asyncio.run(scenario())


def test_watches_end_when_their_definition_changes(tmp_path: Path) -> None:
    newer, path = TOYS.replace("v1", "v2"), f"{DEFINITIONS}/toys.example.com"

    async def scenario() -> None:
        async with running(tmp_path) as api:
            both = two_versions()
            await api.post(DEFINITIONS, both)
            made = await api.post(TOYS, toy("a", 1))
            since = f"?resourceVersion={made['metadata']['resourceVersion']}"
            for entry in both["spec"]["versions"]:
                entry["storage"] = not entry["storage"]
            async with api.watch(TOYS + since) as old, api.watch(newer + since) as new:
                await api.patch(path, {"metadata": {"labels": {"x": "y"}}})
                await api.patch(f"{TOYS}/a", {"metadata": {"labels": {"x": "y"}}})
                for following, version in ((old, "example.com/v1"), (new, "example.com/v2")):
                    event = await following()
                    assert (event["type"], event["object"]["apiVersion"]) == ("MODIFIED", version)
                await api.patch(path, {"spec": {"versions": both["spec"]["versions"]}})
                assert [await old(), await new()] == [None, None]
            for resource in (TOYS, newer):
                async with api.watch(resource + since) as following:
                    event = await following()
                    assert (event["type"], event["object"]["reason"]) == ("ERROR", "Expired")

    asyncio.run(scenario())


def test_watches_end_after_the_last_object_when_their_definition_is_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, definition())
            await api.post(TOYS, toy("a", 1))
            async with api.watch(TOYS) as following:
                await api.delete(f"{DEFINITIONS}/toys.example.com")
                async with asyncio.timeout(5):
                    events = [await following(), await following(), await following()]
            assert [event and event["type"] for event in events] == ["ADDED", "DELETED", None]

    asyncio.run(scenario())


def test_a_definition_does_not_take_the_place_of_what_the_server_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            shadow = definition()
            shadow["metadata"]["name"] = "deployments.apps"
            shadow["spec"] |= {"group": "apps", "names": {"plural": "deployments", "kind": "Deployment"}}
            status, answer = await api.request("POST", DEFINITIONS, shadow)
            assert (status, "choose another group" in answer["message"]) == (422, True)
            assert (await api.get("/apis/apps/v1/deployments"))["kind"] == "DeploymentList"

    asyncio.run(scenario())


def with_rules(*rules: str) -> Any:
    crd = definition(subresources=SUBRESOURCES)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["x-kubernetes-validations"] = [{"rule": rule} for rule in rules]
    return crd


def test_rules_of_a_kind_are_in_force_for_every_write(tmp_path: Path) -> None:
    rules = (
        "self.metadata.name.startsWith('t')",
        "self.spec.count >= oldSelf.spec.count",
        "!has(self.status) || self.status.count <= self.spec.count",
    )

    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(DEFINITIONS, with_rules(*rules))
            status, refusal = await api.request("POST", TOYS, toy("x", 3))
            assert status == 422
            assert "failed rule: self.metadata.name.startsWith('t')" in refusal["message"]
            await api.post(TOYS, toy("t", 3))
            await api.patch(f"{TOYS}/t", {"spec": {"count": 4}})
            status, refusal = await api.request(
                "PATCH", f"{TOYS}/t", {"spec": {"count": 2}}, content_type=MERGE
            )
            assert (status, "oldSelf" in refusal["message"]) == (422, True)
            await api.patch(f"{TOYS}/t/status", {"status": {"count": 4}})
            status, refusal = await api.request(
                "PATCH", f"{TOYS}/t/status", {"status": {"count": 5}}, content_type=MERGE
            )
            assert (status, "self.status.count" in refusal["message"]) == (422, True)

    asyncio.run(scenario())


def test_a_kind_with_a_rule_that_nobody_can_evaluate_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            status, refusal = await api.request("POST", DEFINITIONS, with_rules("isURL(self.metadata.name)"))
            assert status == 422
            assert "Kubernetes' URL library is not supported here" in refusal["message"]
            assert "x-kubernetes-validations[0].rule" in refusal["details"]["causes"][0]["field"]

    asyncio.run(scenario())


def test_a_definition_of_what_has_become_built_in_still_serves_the_objects_of_an_old_folder(
    tmp_path: Path,
) -> None:
    """Earlier releases had no PodGroups of scheduling.k8s.io, so somebody may have defined them."""
    stored, name, group = definition(), "podgroups.scheduling.k8s.io", "scheduling.k8s.io"
    stored["metadata"] = {"name": name, "uid": "1"}
    stored["spec"] |= {"group": group, "names": {"plural": "podgroups", "kind": "PodGroup"}}
    stored["spec"]["versions"][0]["name"] = "v1alpha2"
    path = f"/apis/{group}/v1alpha2/namespaces/default/podgroups"

    async def scenario() -> None:
        async with running(tmp_path) as api:
            api.server.store.put(Key("customresourcedefinitions.apiextensions.k8s.io", "", name), stored)
            await api.server.store.wait_committed()
        async with running(tmp_path) as api:
            created = await api.post(path, {"metadata": {"name": "g"}, "spec": {"count": 3}})
            assert (created["spec"], created["metadata"].get("finalizers")) == ({"count": 3}, None)
            await api.delete(f"{path}/g")
            assert (await api.get(path))["items"] == []

    asyncio.run(scenario())
