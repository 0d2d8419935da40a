"""What one may do with objects, as any client would see it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.embedded.api_requests import MERGE, PODS, Json, config_map, pod, running
from tests.embedded.valid_objects import VALID_OBJECTS

MAPS = "/api/v1/namespaces/default/configmaps"


def test_an_object_is_created_read_changed_and_deleted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            created = await api.post(PODS, pod("a"))
            meta = created["metadata"]
            assert meta["uid"]
            assert meta["creationTimestamp"].endswith("Z")
            assert (meta["namespace"], meta["generation"]) == ("default", 1)
            assert created["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
            assert await api.get(f"{PODS}/a") == created
            changed = await api.patch(f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}})
            assert int(changed["metadata"]["resourceVersion"]) > int(meta["resourceVersion"])
            assert changed["metadata"]["uid"] == meta["uid"]
            await api.delete(f"{PODS}/a")
            status, answer = await api.request("GET", f"{PODS}/a")
            assert (status, answer["reason"], answer["message"]) == (404, "NotFound", 'pods "a" not found')
            assert answer["details"] == {"name": "a", "kind": "pods"}

    asyncio.run(scenario())


def test_a_status_that_the_server_replaces_may_lack_required_fields(tmp_path: Path) -> None:
    """Manifests made from Go types have one."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    empty = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": []}
    toys = next(made for made in VALID_OBJECTS if made["kind"] == "CustomResourceDefinition")

    async def scenario() -> None:
        async with running(tmp_path) as api:
            created = await api.post(path, {**toys, "status": empty})
            assert created["status"]["acceptedNames"]["kind"] == "Toy"
            status, updated = await api.request(
                "PUT", f"{path}/toys.example.com", {**created, "status": empty}
            )
            assert (status, updated["status"]["acceptedNames"]["kind"]) == (200, "Toy")
            status, answer = await api.request("POST", path, {**toys, "status": {"acceptedNames": 1}})
            assert (status, "status.acceptedNames" in answer["message"]) == (422, True)

    asyncio.run(scenario())


def test_the_second_of_a_name_is_refused_and_generated_names_differ(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("a"))
            status, answer = await api.request("POST", PODS, pod("a"))
            assert (status, answer["reason"]) == (409, "AlreadyExists")
            names = set()
            for _ in range(20):
                body = {**pod(""), "metadata": {"generateName": "job-"}}
                names.add((await api.post(PODS, body))["metadata"]["name"])
            assert len(names) == 20
            assert all(name.startswith("job-") and len(name) == 9 for name in names)

    asyncio.run(scenario())


def test_an_update_from_an_old_version_is_a_conflict(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            old = await api.post(MAPS, config_map("a", {"n": "1"}))
            newer = await api.patch(f"{MAPS}/a", {"data": {"n": "2"}})
            status, answer = await api.request("PUT", f"{MAPS}/a", {**old, "data": {"n": "3"}})
            assert (status, answer["reason"]) == (409, "Conflict")
            assert answer["message"].startswith(
                'Operation cannot be fulfilled on configmaps "a": the object has'
            )
            status, answer = await api.request("PUT", f"{MAPS}/a", {**newer, "data": {"n": "3"}})
            assert (status, answer["data"]) == (200, {"n": "3"})
            status, again = await api.request("PUT", f"{MAPS}/a", answer)
            assert again == answer, "nothing changed, so it is the same version"

    asyncio.run(scenario())


def test_a_dry_run_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            assert (await api.request("POST", f"{MAPS}?dryRun=All", config_map("a")))[0] == 201
            assert (await api.request("GET", f"{MAPS}/a"))[0] == 404
            await api.post(MAPS, config_map("a", {"n": "1"}))
            changed = await api.patch(f"{MAPS}/a?dryRun=All", {"data": {"n": "2"}})
            assert changed["data"] == {"n": "2"}
            assert (await api.request("DELETE", f"{MAPS}/a?dryRun=All"))[0] == 200
            assert (await api.get(f"{MAPS}/a"))["data"] == {"n": "1"}
            assert (await api.request("DELETE", f"{MAPS}/a", {"dryRun": ["All"]}))[0] == 200
            assert (await api.request("POST", f"{MAPS}?dryRun=Some", config_map("b")))[0] == 422
            await api.get(f"{MAPS}/a")

    asyncio.run(scenario())


def test_pages_show_one_moment_whatever_happens_meanwhile(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for number in range(10):
                await api.post(MAPS, config_map(f"m{number}", {"n": str(number)}))
            page = await api.get(f"{MAPS}?limit=4")
            seen = page["items"]
            assert page["metadata"]["remainingItemCount"] == 6
            await api.delete(f"{MAPS}/m7")
            await api.post(MAPS, config_map("m55"))
            await api.patch(f"{MAPS}/m8", {"data": {"n": "changed"}})
            while token := page["metadata"].get("continue"):
                page = await api.get(f"{MAPS}?limit=4&continue={token}")
                seen += page["items"]
            assert [(item["metadata"]["name"], item["data"]["n"]) for item in seen] == [
                (f"m{number}", str(number)) for number in range(10)
            ]

    asyncio.run(scenario())


def test_selectors_choose_by_labels_and_fields(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for name, tier in (("a", "web"), ("b", "db"), ("c", "db")):
                await api.post(PODS, pod(name, metadata={"labels": {"tier": tier}}))
            await api.patch(f"{PODS}/c/status", {"status": {"phase": "Running"}})

            async def names(query: str) -> list[str]:
                return [item["metadata"]["name"] for item in (await api.get(f"{PODS}?{query}"))["items"]]

            assert await names("labelSelector=tier%3Ddb") == ["b", "c"]
            assert await names("labelSelector=tier+in+(web,x),!other") == ["a"]
            assert await names("labelSelector=tier!=db") == ["a"]
            assert await names("fieldSelector=status.phase%3DRunning") == ["c"]
            assert await names("fieldSelector=metadata.name%3Db") == ["b"]
            assert await names("fieldSelector=spec.nodeName%3D&labelSelector=tier") == ["a", "b", "c"]
            status, answer = await api.request("GET", f"{PODS}?fieldSelector=spec.nonsense%3D1")
            assert (status, "field label not supported" in answer["message"]) == (400, True)

    asyncio.run(scenario())


def test_a_pod_is_bound_once_and_its_spec_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, pod("a"))
            target: Json = {"target": {"kind": "Node", "name": "n1"}}
            for wrong in ({"labels": {"a": {"b": "c"}}}, {"annotations": {"a": 1}}, "text"):
                status, _ = await api.request("POST", f"{PODS}/a/binding", {**target, "metadata": wrong})
                assert status == 422, wrong
            assert (await api.post(f"{PODS}/a/binding", target))["status"] == "Success"
            bound = await api.get(f"{PODS}/a")
            assert bound["spec"]["nodeName"] == "n1"
            assert [(item["type"], item["status"]) for item in bound["status"]["conditions"]] == [
                ("PodScheduled", "True")
            ]
            status, answer = await api.request("POST", f"{PODS}/a/binding", target)
            assert (status, answer["reason"]) == (409, "Conflict")
            assert 'pod a is already assigned to node "n1"' in answer["message"]
            status, answer = await api.request("PATCH", f"{PODS}/a", {"spec": {"nodeName": "n2"}}, MERGE)
            assert (status, answer["reason"]) == (422, "Invalid")

    asyncio.run(scenario())


def test_status_is_written_on_its_own_path_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(PODS, {**pod("a"), "status": {"phase": "Running"}})
            assert (await api.get(f"{PODS}/a"))["status"]["phase"] == "Pending"
            await api.patch(f"{PODS}/a", {"status": {"phase": "Failed"}})
            assert (await api.get(f"{PODS}/a"))["status"]["phase"] == "Pending"
            both = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
            changed = await api.patch(f"{PODS}/a/status", both)
            assert changed["status"]["phase"] == "Running"
            assert "nodeName" not in changed["spec"]

    asyncio.run(scenario())


def test_a_pod_that_runs_is_given_time_and_one_that_waits_is_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post("/api/v1/nodes", {"metadata": {"name": "n1"}})
            await api.post(PODS, pod("a", terminationGracePeriodSeconds=7))
            await api.post(f"{PODS}/a/binding", {"target": {"name": "n1"}})
            leaving = await api.delete(f"{PODS}/a")
            assert leaving["metadata"]["deletionGracePeriodSeconds"] == 7
            assert (await api.get(f"{PODS}/a"))["metadata"]["deletionTimestamp"]
            await api.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
            assert (await api.request("GET", f"{PODS}/a"))[0] == 404
            await api.post(PODS, pod("b"))
            await api.delete(f"{PODS}/b")
            assert (await api.request("GET", f"{PODS}/b"))[0] == 404

    asyncio.run(scenario())


def test_finalizers_hold_an_object_and_preconditions_protect_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            created = await api.post(MAPS, config_map("a", finalizers=["example.com/hold"]))
            wrong = {"preconditions": {"uid": "another"}}
            assert (await api.request("DELETE", f"{MAPS}/a", wrong))[0] == 409
            right = {"preconditions": {"uid": created["metadata"]["uid"]}}
            assert (await api.delete(f"{MAPS}/a", right))["metadata"]["deletionTimestamp"]
            held = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
            assert (await api.request("PATCH", f"{MAPS}/a", held, MERGE))[0] == 422
            await api.patch(f"{MAPS}/a", {"metadata": {"finalizers": None}})
            assert (await api.request("GET", f"{MAPS}/a"))[0] == 404

    asyncio.run(scenario())


def test_whoever_shows_no_token_or_a_wrong_one_is_not_let_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for token in ("", "wrong", "a.b.c"):
                status, answer = await api.request("GET", PODS, token=token)
                assert (status, answer["reason"]) == (401, "Unauthorized")
            assert await api.request("GET", "/readyz", token="") == (200, "ok")

    asyncio.run(scenario())


def test_bodies_that_are_too_large_or_no_objects_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            large = config_map("a", {"x": "y" * (3 * 1024 * 1024)})
            assert (await api.request("POST", MAPS, large))[0] == 413
            for body in (b"[]", b"{", b"\xff", b"[" * 5000, b"null", b'{"metadata":[]}', b'{"kind":"Pod"}'):
                status, answer = await api.request("POST", MAPS, body)
                assert (status, answer["reason"]) == (400, "BadRequest"), body
            assert (await api.request("POST", MAPS, b"x", "text/plain"))[0] == 415
            for name in ("", "A", "a/b", "-a", "a" * 254, "a..b"):
                assert (await api.request("POST", MAPS, config_map(name)))[0] == 422, name
            assert (await api.request("POST", MAPS, config_map("a", labels={"k": "v" * 64})))[0] == 422
            assert (await api.request("POST", "/api/v1/namespaces/nowhere/pods", pod("a")))[0] == 404
            assert (await api.request("GET", "/api/v1/nonsense"))[0] == 404
            assert (await api.request("PUT", MAPS, config_map("a")))[0] == 405

    asyncio.run(scenario())


def test_who_creates_what_needs_a_network_is_warned_that_there_is_none(tmp_path: Path) -> None:
    networking = "/apis/networking.k8s.io/v1/namespaces/default"
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    bodies = {
        f"{networking}/ingresses": ({"defaultBackend": backend}, "no ingress controller runs here"),
        f"{networking}/networkpolicies": ({"podSelector": {}}, "nothing here enforces a NetworkPolicy"),
        "/api/v1/namespaces/default/services": (
            {"type": "NodePort", "ports": [{"port": 80}]},
            "nothing listens at the ports of nodes here",
        ),
    }

    async def scenario() -> None:
        async with running(tmp_path) as api:
            for path, (spec, warning) in bodies.items():
                headers = {"Authorization": f"Bearer {api.server.token}"}
                body = {"metadata": {"name": "web"}, "spec": spec}
                async with api._session.post(api.server.url + path, json=body, headers=headers) as answer:
                    assert answer.status == 201, await answer.text()
                    (told,) = answer.headers.getall("Warning")
                    assert warning in told

    asyncio.run(scenario())
