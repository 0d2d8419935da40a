"""Requests made to keep the server busy: each is answered, and meanwhile the event loop serves the others."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stromboli.admission.rules.rule_context import Settings
from tests.embedded.api_requests import MERGE, PODS, ApiCaller, config_map, pod, running
from tests.embedded.loop_lag import LoopLag

MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def encoded(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def keys(count: int, name: str = "k") -> dict[str, str]:
    return {f"{name}{number}": "v" for number in range(count)}


def yaml_map() -> bytes:
    lines = (b"  k%d: v\n" % number for number in range(230_000))
    return b"metadata: {name: y}\ndata:\n" + b"".join(lines)


def task(number: int) -> Any:
    return {
        "name": f"t{number}",
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}},
    }


def job(name: str, tasks: int) -> Any:
    return {"metadata": {"name": name}, "spec": {"tasks": [task(number) for number in range(tasks)]}}


def definition(schema: Any) -> Any:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "bombs", "kind": "Bomb", "singular": "bomb"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "bombs.x.io"}, "spec": spec}


def managers(count: int) -> list[Any]:
    entry = {"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}
    return [{"manager": f"m{number}", **entry} for number in range(count)]


def orders(count: int) -> Any:
    names = [f"a.b/{number}" for number in range(count)]
    return {"metadata": {"$setElementOrder/finalizers": names, "finalizers": names}}


ATTACKS: list[tuple[str, str, str, str, Callable[[], bytes], int]] = [
    ("3 MB of YAML", "POST", MAPS, YAML, yaml_map, 413),
    ("YAML to what everybody may ask", "POST", REVIEWS, YAML, yaml_map, 413),
    (
        "as much YAML as is read",
        "POST",
        MAPS,
        YAML,
        lambda: b"metadata: {name: f}\ndata: {" + b"a," * 8_000 + b"}",
        201,
    ),
    ("3 MB of lists", "POST", MAPS, JSON, lambda: b'{"data":[' + b"[]," * 999_000 + b"0]}", 413),
    (
        "an apply of 100,000 keys",
        "PATCH",
        f"{MAPS}/a?fieldManager=me",
        APPLY,
        lambda: encoded(config_map("a", keys(100_000))),
        413,
    ),
    (
        "an apply of as many keys as are decoded",
        "PATCH",
        f"{MAPS}/a?fieldManager=me",
        APPLY,
        lambda: encoded(config_map("a", keys(49_000))),
        413,
    ),
    (
        "an apply that changes all of its fields",
        "PATCH",
        f"{MAPS}/applied?fieldManager=me",
        APPLY,
        lambda: encoded(config_map("applied", keys(4_900, "z"))),
        200,
    ),
    (
        "an apply of 900,000 tasks",
        "PATCH",
        f"{JOBS}/j?fieldManager=me",
        APPLY,
        lambda: b'{"spec":{"tasks":[' + b"{}," * 900_000 + b"{}]}}",
        413,
    ),
    (
        "unknown fields",
        "POST",
        f"{MAPS}?fieldValidation=Strict",
        JSON,
        lambda: encoded({"metadata": {"name": "s"}, **keys(49_000)}),
        400,
    ),
    (
        "a million ports",
        "POST",
        PODS,
        JSON,
        lambda: encoded(pod("p", containers=[{"name": "m", "image": "i", "ports": [{}] * 900_000}])),
        413,
    ),
    (
        "20,000 managers",
        "POST",
        MAPS,
        JSON,
        lambda: encoded(config_map("m", managedFields=managers(20_000))),
        413,
    ),
    (
        "as many managers as are decoded",
        "POST",
        MAPS,
        JSON,
        lambda: encoded(config_map("m", managedFields=managers(6_000))),
        201,
    ),
    (
        "an order of 100,000 entries",
        "PATCH",
        f"{MAPS}/small",
        STRATEGIC,
        lambda: encoded(orders(100_000)),
        413,
    ),
    (
        "an order of as many entries as are decoded",
        "PATCH",
        f"{MAPS}/small",
        STRATEGIC,
        lambda: encoded(orders(20_000)),
        413,
    ),
    (
        "copies of copies",
        "PATCH",
        f"{MAPS}/wide",
        JSON_PATCH,
        lambda: encoded([{"op": "copy", "from": "/data", "path": "/metadata/annotations"}] * 9_999),
        413,
    ),
    (
        "long paths",
        "PATCH",
        f"{MAPS}/small",
        JSON_PATCH,
        lambda: encoded([{"op": "test", "path": "/data" + "/a" * 130, "value": None}] * 9_999),
        422,
    ),
    (
        "a patch by which the object grows",
        "PATCH",
        f"{MAPS}/wide",
        MERGE,
        lambda: encoded({"data": keys(49_000, "z")}),
        413,
    ),
    ("empty fields of protobuf", "POST", MAPS, PROTOBUF, lambda: b"k8s\0" + b"\x0a\0" * 1_500_000, 400),
    (
        "defaults of 300 MB",
        "POST",
        "/apis/x.io/v1/namespaces/default/bombs",
        JSON,
        lambda: b'{"metadata":{"name":"b"},"items":[' + b"{}," * 20_000 + b"{}]}",
        413,
    ),
]


async def prepare(api: ApiCaller) -> None:
    await api.post(MAPS, config_map("small"))
    await api.post(MAPS, config_map("wide", keys(2_000)))
    first = config_map("applied", keys(2_000))
    await api.patch(f"{MAPS}/applied?fieldManager=me", first, APPLY)
    item = {"type": "object", "properties": {"text": {"type": "string", "default": "x" * 3_000}}}
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": item}}}
    await api.post(CRDS, definition(schema))


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack[0] for attack in ATTACKS])
def test_no_request_keeps_the_others_waiting(
    tmp_path: Path, attack: tuple[str, str, str, str, Callable[[], bytes], int]
) -> None:
    subject, method, path, media_type, body, expected = attack

    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            await prepare(api)
            data = body()
            async with LoopLag() as lag:
                status, answer = await api.request(method, path, data, media_type)
            assert status == expected, answer
            assert len(json.dumps(answer)) < 500_000
            lag.check(subject)

    asyncio.run(scenario())


@pytest.mark.slow
def test_the_largest_requests_of_honest_users_are_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, crds=True, volcano_settings=Settings()) as api:
            text = "a,b:[c],{d}\n" * (1024 * 1024 // 12)
            requests = [
                ("POST", MAPS, JSON, config_map("large", {"text": text})),
                ("POST", JOBS, JSON, job("many-tasks", 1000)),
                ("POST", f"{JOBS}?fieldManager=kubectl-client-side-apply", JSON, job("kubectl", 1000)),
                ("PATCH", f"{JOBS}/applied?fieldManager=me", APPLY, job("applied", 1000)),
                ("PATCH", f"{JOBS}/applied?fieldManager=me", APPLY, job("applied", 1000)),
                ("PATCH", f"{MAPS}/keys?fieldManager=me", APPLY, config_map("keys", keys(1_000))),
                ("PATCH", f"{MAPS}/large", JSON_PATCH, [{"op": "add", "path": "/data/a", "value": "b"}]),
            ]
            for method, path, media_type, body in requests:
                if media_type == APPLY:
                    body["apiVersion"] = "v1" if path.startswith(MAPS) else "batch.volcano.sh/v1alpha1"
                async with LoopLag() as lag:
                    status, answer = await api.request(method, path, encoded(body), media_type)
                assert status in (200, 201), (path, str(answer)[:500])
                lag.check(path)

    asyncio.run(scenario())


@pytest.mark.slow
def test_the_body_of_somebody_without_rights_is_not_even_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            accounts = "/api/v1/namespaces/default/serviceaccounts"
            await api.post(accounts, {"metadata": {"name": "nobody"}})
            token = (await api.post(f"{accounts}/nobody/token", {}))["status"]["token"]
            data = yaml_map()
            for path, used, expected in ((MAPS, token, 403), (REVIEWS, token, 413), (MAPS, "wrong", 401)):
                async with LoopLag() as lag:
                    status, answer = await api.request("POST", path, data, YAML, used)
                assert status == expected, answer
                lag.check(path)

    asyncio.run(scenario())


@pytest.mark.slow
def test_compressed_bodies_are_read_within_bounds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            bomb = gzip.compress(b'{"data":{"a":"' + b"x" * 300_000_000 + b'"}}', 1)
            small = gzip.compress(encoded(config_map("a")))
            for body, encoding, expected in (
                (bomb, "gzip", 413),
                (small, "gzip", 201),
                (small, "deflate", 400),
                (small, "br", 415),
            ):
                headers = {"Content-Encoding": encoding}
                async with LoopLag() as lag:
                    status, answer = await api.request("POST", MAPS, body, headers=headers)
                assert status == expected, answer
                lag.check(encoding)

    asyncio.run(scenario())


def test_a_refusal_says_how_many_more_fields_are_unknown(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            body = {**config_map("a"), **keys(100)}
            _, answer = await api.request("POST", f"{MAPS}?fieldValidation=Strict", body)
            assert answer["message"].endswith('unknown field "k19", and 80 more')

    asyncio.run(scenario())


def test_a_refusal_does_not_repeat_long_names(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            long = "x" * 1_000_000
            for body in (
                {**config_map("a"), long: {}},
                config_map("a", {f"{number}{long[:60_000]}/": "" for number in range(40)}),
                config_map(long),
                config_map("a", labels={long: long}),
            ):
                status, answer = await api.request("POST", f"{MAPS}?fieldValidation=Strict", body)
                assert status in (400, 422)
                assert len(json.dumps(answer)) < 200_000

    asyncio.run(scenario())


def test_json_that_is_sent_as_yaml_may_be_large_and_yaml_may_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            data = {f"k{number}": "v" * 100 for number in range(1_000)}
            for name, body, expected in (
                ("json", encoded(config_map("json", data)), 201),
                ("flow", b"{metadata: {name: flow}}", 201),
                ("large", b"#" + b" " * 20_000 + b"\nmetadata: {name: large}", 413),
            ):
                status, answer = await api.request("POST", MAPS, body, YAML)
                assert status == expected, (name, answer)
            assert answer["message"].endswith("send it as JSON, which kubectl does")

    asyncio.run(scenario())
