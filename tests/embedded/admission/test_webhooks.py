"""Webhooks: who is asked, what their answers do, and what happens when they do not answer."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stromboli.embedded.kube_controllers import controller_loop
from tests.embedded.api_requests import MERGE, ApiCaller, config_map, pod, running
from tests.embedded.kube_controllers.test_controller_loop import conditions_of, eventually, is_, names, owned
from tests.embedded.kube_controllers.test_loop_lag import phases
from tests.embedded.kube_controllers.volumes.test_persistent_volumes import (
    CLAIMS,
    CLASSES,
    VOLUMES,
    claim,
    storage_class,
)
from tests.embedded.test_custom_resources import (
    DEFINITIONS,
    TOYS,
    definition,
    stored_version,
    toy,
    two_versions,
)
from tests.serving import CERTIFICATE

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
Json = Any


@asynccontextmanager
async def hooked(
    folder: Path,
    answer: Callable[[Json], Json],
    thought: asyncio.Event | None = None,
    packet: int = 1 << 20,
) -> AsyncIterator[tuple[ApiCaller, str, list[Json]]]:
    """A server, the address of a webhook that answers so, and what that was asked."""
    asked: list[Json] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        question = (await request.json())["request"]
        asked.append(question)
        verdict = answer(question)
        if thought is not None:
            await thought.wait()
        if verdict is None:
            return web.Response(status=500)
        body = json.dumps({"response": {"uid": question["uid"], **verdict}}).encode()
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), packet):
            await response.write(body[start : start + packet])
            await asyncio.sleep(0.01)
        return response

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    try:
        async with running(folder) as api:
            yield api, f"https://127.0.0.1:{runner.addresses[0][1]}/", asked
    finally:
        await runner.cleanup()


async def register(api: ApiCaller, sort: str, url: str, **how: Json) -> None:
    bundle = base64.b64encode(_certificate()).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **how,
    }
    await api.post(f"{HOOKS}/{sort}webhookconfigurations", {"metadata": {"name": "h"}, "webhooks": [hook]})


def _certificate() -> bytes:
    text = CERTIFICATE.read_text()
    return text[text.index("-----BEGIN CERTIFICATE") :].encode()


def test_a_mutating_webhook_changes_what_is_stored(tmp_path: Path) -> None:
    def answer(question: Json) -> Json:
        patch = [{"op": "add", "path": "/data/seen", "value": question["operation"]}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        allowed = {"allowed": True, "warnings": ["be careful"]}
        changed = {"patch": encoded, "patchType": "JSONPatch"} if question["operation"] != "DELETE" else {}
        return {**allowed, **changed}

    async def scenario() -> None:
        async with hooked(tmp_path, answer) as (api, url, asked):
            await register(api, "mutating", url)
            made = await api.post(MAPS, config_map("a", {"n": "1"}))
            assert made["data"] == {"n": "1", "seen": "CREATE"}
            changed = await api.patch(f"{MAPS}/a", {"data": {"n": "2"}})
            assert changed["data"] == {"n": "2", "seen": "UPDATE"}
            await api.delete(f"{MAPS}/a")
            assert [request["operation"] for request in asked] == ["CREATE", "UPDATE", "DELETE"]
            assert asked[0]["userInfo"]["username"] == "admin"
            assert asked[0]["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
            assert asked[1]["oldObject"]["data"]["n"] == "1"
            assert asked[2]["object"] is None

    asyncio.run(scenario())


def test_a_validating_webhook_refuses_with_its_own_words(tmp_path: Path) -> None:
    def answer(question: Json) -> Json:
        if question["name"] == "bad":
            return {"allowed": False, "status": {"message": "no such luck", "code": 422}}
        return {"allowed": True}

    async def scenario() -> None:
        async with hooked(tmp_path, answer) as (api, url, _):
            await register(api, "validating", url)
            await api.post(MAPS, config_map("good"))
            status, refusal = await api.request("POST", MAPS, config_map("bad"))
            assert status == 422
            assert (
                refusal["message"] == 'admission webhook "hook.example.com" denied the request: no such luck'
            )
            assert (await api.request("GET", f"{MAPS}/bad"))[0] == 404

    asyncio.run(scenario())


def test_a_response_that_comes_in_several_packets_is_read_to_its_end(tmp_path: Path) -> None:
    def answer(question: Json) -> Json:
        return {"allowed": False, "status": {"message": "not on a Sunday", "code": 403}}

    async def scenario() -> None:
        async with hooked(tmp_path, answer, packet=20) as (api, url, _):
            await register(api, "validating", url)
            status, refusal = await api.request("POST", MAPS, config_map("a"))
            assert (status, "not on a Sunday" in refusal["message"]) == (403, True)

    asyncio.run(scenario())


@pytest.mark.parametrize("bundle", ["own", "none"])
def test_a_webhook_that_cannot_be_reached_is_told_of_in_plain_words(tmp_path: Path, bundle: str) -> None:
    async def scenario() -> None:
        async with hooked(tmp_path, lambda question: None) as (api, url, _):
            untrusted = {"clientConfig": {"url": url}}
            await register(
                api, "validating", "https://127.0.0.1:9/", **(untrusted if bundle == "none" else {})
            )
            status, refusal = await api.request("POST", MAPS, config_map("a"))
            assert status == 500
            assert "cannot connect to 127.0.0.1:" in refusal["message"]
            assert ("refused" if bundle == "own" else "certificate") in refusal["message"]
            assert "object at 0x" not in refusal["message"]

    asyncio.run(scenario())


def test_who_registers_a_webhook_of_a_service_is_warned(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            hook = {
                "name": "hook.example.com",
                "clientConfig": {"service": {"name": "s", "namespace": "default"}},
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            configuration = {"metadata": {"name": "h"}, "webhooks": [hook]}
            result = await warnings_of(api, "POST", "", configuration)
            assert len(result) == 1
            assert 'webhook \\"hook.example.com\\" has a clientConfig.service' in result[0]
            hook["clientConfig"] = {"url": "https://127.0.0.1:9/"}
            assert await warnings_of(api, "PATCH", "/h", configuration) == []
            hook["clientConfig"] = {"service": {"name": "s", "namespace": "default"}}
            assert len(await warnings_of(api, "PATCH", "/h", configuration)) == 1

    asyncio.run(scenario())


async def warnings_of(api: ApiCaller, method: str, path: str, configuration: Json) -> list[str]:
    headers = {
        "Authorization": f"Bearer {api.server.token}",
        "Content-Type": MERGE if method == "PATCH" else "application/json",
    }
    url = f"{api.server.url}{HOOKS}/validatingwebhookconfigurations{path}"
    async with api._session.request(method, url, data=json.dumps(configuration), headers=headers) as answer:
        assert answer.status in (200, 201), await answer.text()
        return answer.headers.getall("Warning", [])


def test_a_webhook_that_fails_stops_everything_or_nothing_as_it_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with hooked(tmp_path, lambda question: None) as (api, url, asked):
            await register(api, "validating", url)
            status, refusal = await api.request("POST", MAPS, config_map("a"))
            assert (status, 'failed calling webhook "hook.example.com"' in refusal["message"]) == (500, True)
            path = f"{HOOKS}/validatingwebhookconfigurations/h"
            hook = (await api.get(path))["webhooks"][0]
            for change in (
                {"failurePolicy": "Ignore"},
                {"failurePolicy": "Ignore", "clientConfig": {"url": "https://127.0.0.1:1/"}},
                {"namespaceSelector": {"matchLabels": {"hooked": "yes"}}},
                {"objectSelector": {"matchLabels": {"hooked": "yes"}}},
                {"rules": [{**hook["rules"][0], "resources": ["secrets"]}]},
                {"rules": [{**hook["rules"][0], "operations": ["UPDATE"]}]},
            ):
                body = {"webhooks": [{**hook, **change}]}
                assert (await api.request("PATCH", path, body, MERGE))[0] == 200, change
                await api.post(MAPS, config_map("a"))
                await api.patch(path, {"webhooks": []})
                await api.delete(f"{MAPS}/a")
            assert len(asked) == 2

    asyncio.run(scenario())


def test_what_changes_while_a_webhook_thinks_is_not_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        def answer(question: Json) -> Json:
            return {"allowed": True}

        async with hooked(tmp_path, answer) as (api, url, _):
            made = await api.post(MAPS, config_map("a", {"n": "0"}))
            await register(api, "validating", url)
            patches = [api.patch(f"{MAPS}/a", {"data": {f"k{number}": "x"}}) for number in range(4)]
            await asyncio.gather(*patches)
            assert set((await api.get(f"{MAPS}/a"))["data"]) == {"n", "k0", "k1", "k2", "k3"}
            puts = [
                api.request("PUT", f"{MAPS}/a", {**made, "data": {"n": str(number)}}) for number in range(4)
            ]
            assert {status for status, _ in await asyncio.gather(*puts)} == {409}

    asyncio.run(scenario())


def test_a_webhook_changes_what_its_author_might_have_changed_and_no_more(tmp_path: Path) -> None:
    patches: list[Json] = []

    def answer(question: Json) -> Json:
        encoded = base64.b64encode(json.dumps(patches).encode()).decode()
        return {"allowed": True, "patch": encoded, "patchType": "JSONPatch"}

    async def scenario() -> None:
        async with hooked(tmp_path, answer) as (api, url, _):
            made = await api.post(MAPS, config_map("a"))
            await register(api, "mutating", url)
            patches[:] = [
                {"op": "add", "path": "/metadata/uid", "value": "mine"},
                {"op": "add", "path": "/unheard", "value": "of"},
                {"op": "add", "path": "/data", "value": {"n": "1"}},
            ]
            for changed in (
                await api.patch(f"{MAPS}/a", {"data": {"x": "y"}}),
                await api.post(MAPS, config_map("b")),
            ):
                assert changed["data"] == {"n": "1"}
                assert changed["metadata"]["uid"] != "mine"
                assert "unheard" not in changed
            assert (await api.get(f"{MAPS}/a"))["metadata"]["uid"] == made["metadata"]["uid"]
            for path, value, code in (("/data", {"n": [1]}, 422), ("/metadata/name", "c", 400)):
                patches[:] = [{"op": "add", "path": path, "value": value}]
                status, _ = await api.request("PATCH", f"{MAPS}/a", {"data": {"x": "z"}}, MERGE)
                assert status == code
                assert (await api.request("POST", MAPS, config_map("d")))[0] == code

    asyncio.run(scenario())


def test_nothing_is_made_in_a_namespace_that_went_while_a_webhook_thought(tmp_path: Path) -> None:
    async def scenario() -> None:
        thinking, thought = asyncio.Event(), asyncio.Event()

        def answer(question: Json) -> Json:
            thinking.set()
            return {"allowed": True}

        async with hooked(tmp_path, answer, thought) as (api, url, _):
            await api.post("/api/v1/namespaces", {"metadata": {"name": "brief"}})
            await register(api, "validating", url)
            making = asyncio.create_task(
                api.request("POST", "/api/v1/namespaces/brief/configmaps", config_map("a"))
            )
            await thinking.wait()
            await api.delete("/api/v1/namespaces/brief")
            thought.set()
            assert (await making)[0] in (403, 404)

    asyncio.run(scenario())


TOYS_RULE = {
    "apiGroups": ["example.com"],
    "apiVersions": ["*"],
    "resources": ["toys"],
    "operations": ["CREATE", "UPDATE"],
}


@pytest.mark.parametrize("recreated", [False, True])
def test_nothing_is_created_of_a_kind_whose_definition_went_during_admission(
    recreated: bool, tmp_path: Path
) -> None:
    async def scenario() -> None:
        asking, thought = asyncio.Event(), asyncio.Event()

        def answer(question: Json) -> Json:
            asking.set()
            return {"allowed": True}

        async with hooked(tmp_path, answer, thought) as (api, url, _):
            await api.post(DEFINITIONS, definition())
            await register(api, "validating", url, rules=[TOYS_RULE])
            creating = asyncio.create_task(api.request("POST", TOYS, toy("a", 1)))
            await asking.wait()
            await api.delete(f"{DEFINITIONS}/toys.example.com")
            await eventually(lambda: is_(_code(api, f"{DEFINITIONS}/toys.example.com"), 404))
            if recreated:
                await api.post(DEFINITIONS, definition())
            thought.set()
            assert (await creating)[0] == 404
            if not recreated:
                await api.post(DEFINITIONS, definition())
            assert (await api.get(TOYS))["items"] == []

    asyncio.run(scenario())


def test_an_object_is_stored_in_a_storage_version_that_changed_during_admission(tmp_path: Path) -> None:
    async def scenario() -> None:
        asked_twice, thought = asyncio.Event(), asyncio.Event()

        def answer(question: Json) -> Json:
            if len(asked) == 2:
                asked_twice.set()
            return {"allowed": True}

        async with hooked(tmp_path, answer, thought) as (api, url, asked):
            both = two_versions()
            await api.post(DEFINITIONS, both)
            await api.post(TOYS, toy("a", 1))
            await register(api, "validating", url, rules=[TOYS_RULE])
            creating = asyncio.create_task(api.post(TOYS, toy("b", 1)))
            changing = asyncio.create_task(api.patch(f"{TOYS}/a", {"metadata": {"labels": {"x": "y"}}}))
            await asked_twice.wait()
            for version in both["spec"]["versions"]:
                version["storage"] = not version["storage"]
            await api.patch(f"{DEFINITIONS}/toys.example.com", {"spec": both["spec"]})
            thought.set()
            for answered in (creating, changing):
                assert (await answered)["apiVersion"] == "example.com/v1"
            for name in "ab":
                assert stored_version(api, name) == "example.com/v2"

    asyncio.run(scenario())


async def _code(api: ApiCaller, path: str) -> int:
    return (await api.request("GET", path))[0]


def test_of_two_evictions_that_wait_for_a_webhook_the_budget_allows_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        thought = asyncio.Event()
        async with hooked(tmp_path, lambda _: {"allowed": True}, thought) as (api, url, asked):
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
            budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
            await api.post(budgets, {"metadata": {"name": "b"}, "spec": spec})
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            for name in ("a", "b"):
                await api.post(PODS, pod(name, metadata={"labels": {"app": "x"}}))
                await api.patch(f"{PODS}/{name}/status", {"status": ready})
            rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]}
            await register(api, "validating", url, rules=[rule])
            going = [asyncio.create_task(api.request("POST", f"{PODS}/{name}/eviction", {})) for name in "ab"]
            await eventually(lambda: is_(_soon(len(asked)), 2))
            thought.set()
            assert sorted(status for status, _ in await asyncio.gather(*going)) == [201, 429]

    asyncio.run(scenario())


async def _soon(value: Json) -> Json:
    return value


def test_what_may_not_be_deleted_does_not_hold_the_rest_of_its_namespace_or_owner(tmp_path: Path) -> None:
    def answer(question: Json) -> Json:
        return {"allowed": question["operation"] != "DELETE" or question["name"] != "a"}

    async def scenario() -> None:
        async with hooked(tmp_path, answer) as (api, url, _):
            await api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
            path = "/api/v1/namespaces/team/configmaps"
            owner = await api.post(MAPS, config_map("owner"))
            for name in ("a", "b", "c"):
                await api.post(path, config_map(name))
                references = owned(name, owner)["metadata"]["ownerReferences"]
                await api.post(MAPS, config_map(name, ownerReferences=references))
            await register(api, "validating", url)
            await api.delete("/api/v1/namespaces/team")
            await eventually(lambda: is_(names(api, path), ["a"]))
            conditions = await conditions_of(api, "/api/v1/namespaces/team")
            failure = conditions["NamespaceDeletionContentFailure"]
            assert (failure["status"], failure["reason"]) == ("True", "ContentDeletionFailed")
            assert 'admission webhook "hook.example.com" denied the request' in failure["message"]
            await api.delete(f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
            await eventually(lambda: is_(names(api, MAPS), ["a", "owner"]))

    asyncio.run(scenario())


DELETED_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["configmaps"],
    "operations": ["DELETE"],
}


async def leave_dependents(api: ApiCaller, count: int) -> None:
    """Delete pods that own a ConfigMap each, so that the garbage collector deletes those."""
    for number in range(count):
        owner = await api.post(PODS, pod(f"owner-{number}"))
        references = owned("any", owner)["metadata"]["ownerReferences"]
        await api.post(MAPS, config_map(f"left-{number}", ownerReferences=references))
        await api.delete(f"{PODS}/owner-{number}")


def test_a_webhook_that_hangs_delays_only_the_objects_that_it_is_called_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        thought = asyncio.Event()
        async with hooked(tmp_path, lambda _: {"allowed": True}, thought) as (api, url, asked):
            await register(api, "validating", url, rules=[DELETED_MAPS])
            await leave_dependents(api, 2)
            await eventually(lambda: is_(_soon(len(asked)), 2))
            await api.post(CLASSES, storage_class("quick"))
            await api.post(CLAIMS, claim("c", "quick"))
            await eventually(lambda: is_(phases(api, CLAIMS), ["Bound"]))
            await api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
            await eventually(lambda: is_(names(api, "/api/v1/namespaces/team/serviceaccounts"), ["default"]))
            other = await api.post(PODS, pod("other"))
            await api.post(PODS, owned("its-own", other))
            await api.delete(f"{PODS}/other")
            await eventually(lambda: is_(names(api, PODS), []))
            assert "left-0" in await names(api, MAPS)
            thought.set()
            await eventually(lambda: is_(names(api, MAPS), []))

    asyncio.run(scenario())


def test_volumes_that_a_webhook_keeps_from_going_delay_no_other_claim(tmp_path: Path) -> None:
    async def scenario() -> None:
        thought = asyncio.Event()
        async with hooked(tmp_path, lambda _: {"allowed": True}, thought) as (api, url, asked):
            await api.post(CLASSES, storage_class("quick"))
            for number in range(12):
                await api.post(CLAIMS, claim(f"c{number}", "quick"))
            await eventually(lambda: is_(phases(api, CLAIMS), ["Bound"] * 12))
            await register(
                api, "validating", url, rules=[{**DELETED_MAPS, "resources": ["persistentvolumes"]}]
            )
            assert (await api.request("DELETE", CLAIMS))[0] == 200
            await eventually(lambda: is_(_soon(bool(asked)), True))
            await api.post(CLAIMS, claim("other", "quick"))
            await eventually(lambda: is_(phases(api, CLAIMS), ["Bound"]), 20)
            await eventually(lambda: is_(_soon(len(asked)), 12), 20)
            thought.set()
            await eventually(lambda: is_(phases(api, VOLUMES), ["Bound"]))

    asyncio.run(scenario())


def test_a_server_starts_though_a_webhook_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_loop, "START_TIMEOUT", 0.2)

    async def scenario() -> None:
        thought = asyncio.Event()
        async with hooked(tmp_path / "hook", lambda _: {"allowed": True}, thought) as (_, url, asked):
            async with running(tmp_path / "data") as api:
                await register(api, "validating", url, rules=[DELETED_MAPS])
                await leave_dependents(api, 1)
                await eventually(lambda: is_(_soon(len(asked)), 1))
            async with asyncio.timeout(60), running(tmp_path / "data") as api:
                assert "left-0" in await names(api, MAPS)
                thought.set()
                await eventually(lambda: is_(names(api, MAPS), []))

    asyncio.run(scenario())


def condition(expression: str, name: str = "c") -> Json:
    return {"name": name, "expression": expression}


def test_a_webhook_is_asked_if_all_its_conditions_hold(tmp_path: Path) -> None:
    conditions = [
        condition("object == null || object.metadata.name.startsWith('a')", "name"),
        condition("request.userInfo.username == 'admin' && request.operation != 'DELETE'", "user"),
        condition("oldObject == null || oldObject.data.n != object.data.n", "changed"),
    ]

    async def scenario() -> None:
        async with hooked(tmp_path, lambda _: {"allowed": True}) as (api, url, asked):
            await register(api, "validating", url, matchConditions=conditions)
            for name in ("a", "b"):
                await api.post(MAPS, config_map(name, {"n": "1"}))
            await api.patch(f"{MAPS}/a", {"metadata": {"labels": {"x": "y"}}})
            await api.patch(f"{MAPS}/a", {"data": {"n": "2"}})
            await api.delete(f"{MAPS}/a")
            assert [request["operation"] for request in asked] == ["CREATE", "UPDATE"]

    asyncio.run(scenario())


def test_the_failure_policy_decides_if_a_condition_has_no_value(tmp_path: Path) -> None:
    failing = condition("object.data.missing == 'x'", "failing")

    async def scenario() -> None:
        async with hooked(tmp_path, lambda _: {"allowed": True}) as (api, url, asked):
            await register(api, "validating", url, matchConditions=[failing])
            status, refusal = await api.request("POST", MAPS, config_map("a", {"n": "1"}))
            assert status == 403
            assert 'match condition "failing" cannot be evaluated: no such key' in refusal["message"]
            hooks = f"{HOOKS}/validatingwebhookconfigurations/h"
            await api.patch(hooks, {"webhooks": [_changed(await api.get(hooks), failurePolicy="Ignore")]})
            await api.post(MAPS, config_map("a", {"n": "1"}))
            both = [failing, condition("object.metadata.name != 'b'", "other")]
            changed = _changed(await api.get(hooks), failurePolicy="Fail", matchConditions=both)
            await api.patch(hooks, {"webhooks": [changed]})
            await api.post(MAPS, config_map("b", {"n": "1"}))
            assert asked == []

    asyncio.run(scenario())


def _changed(configuration: Json, **changes: Json) -> Json:
    return {**configuration["webhooks"][0], **changes}


def test_conditions_that_cannot_be_evaluated_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            for conditions, why in (
                (
                    [condition("authorizer.group('').resource('pods').check('get').allowed()")],
                    "not supported here",
                ),
                ([condition("object.metadata.name ==")], "Syntax error"),
                ([condition("object.metadata.name + 'x'")], "must evaluate to a bool"),
                ([condition("")], "Required value"),
                ([condition("true"), condition("false")], "Duplicate value"),
                ([condition("true", "a b")], "name part must consist of"),
                ([condition("true", f"c{number}") for number in range(65)], "must have at most 64 items"),
            ):
                hook = {
                    "name": "hook.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/"},
                    "sideEffects": "None",
                    "admissionReviewVersions": ["v1"],
                    "matchConditions": conditions,
                }
                configuration = {"metadata": {"name": "h"}, "webhooks": [hook]}
                status, refusal = await api.request(
                    "POST", f"{HOOKS}/mutatingwebhookconfigurations", configuration
                )
                assert status == 422, conditions
                assert why in refusal["message"]

    asyncio.run(scenario())
