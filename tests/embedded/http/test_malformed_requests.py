"""Whatever is sent, the server answers with a yes or a no, and goes on."""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stromboli.api.patches import APPLY, JSON_PATCH, MERGE, STRATEGIC
from stromboli.daemon import request_log
from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.api_status import StatusError
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.http import list_pages, request_bodies
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.kinds.builtin_kinds import BUILT_IN
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.objects import deletion
from tests.embedded.api_requests import running
from tests.embedded.valid_objects import VALID_OBJECTS
from tests.number_of_examples import scaled
from tests.raw_http import GARBAGE, exchange, post, status_of

KEYS = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "name",
        "labels",
        "containers",
        "rules",
        "versions",
        "template",
        "selector",
        "a",
        "",
    ]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
SECTIONS = st.sampled_from(
    [
        "spec",
        "status",
        "data",
        "rules",
        "subjects",
        "roleRef",
        "webhooks",
        "involvedObject",
        "value",
        "type",
        "stringData",
    ]
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["a", "b", "A", "", 1, None, "x" * 300]),
        "generateName": VALUES,
        "labels": VALUES,
        "annotations": VALUES,
        "finalizers": VALUES,
        "ownerReferences": VALUES,
        "deletionTimestamp": VALUES,
        "managedFields": VALUES,
        "namespace": VALUES,
        "uid": VALUES,
        "resourceVersion": VALUES,
    },
)
OBJECTS = st.builds(
    lambda sections, meta: {**sections, "metadata": meta},
    st.dictionaries(SECTIONS, VALUES, max_size=3),
    METADATA | VALUES,
)
KINDS = st.sampled_from(BUILT_IN)


BY_KIND = {kind.kind: kind for kind in BUILT_IN}
Step = tuple[Kind, Any, Any, str]


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[Kind, Any]:
    """A valid object, with some value replaced by any other."""
    content = copy.deepcopy(draw(st.sampled_from(VALID_OBJECTS)))
    kind = BY_KIND[content["kind"]]
    node: Any = content
    while True:
        key = draw(st.sampled_from(list(node) if isinstance(node, dict) else list(range(len(node)))))
        if not isinstance(node[key], dict | list) or not node[key] or draw(st.integers(0, 3)) == 0:
            node[key] = draw(VALUES)
            return kind, content
        node = node[key]


@st.composite
def a_step(draw: st.DrawFn) -> Step:
    kind, content = draw(st.tuples(KINDS, OBJECTS) | spoilt() | spoilt())
    return kind, content, draw(VALUES), draw(st.sampled_from([JSON_PATCH, MERGE, STRATEGIC, APPLY]))


@settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example], max_examples=scaled(15)
)
@given(st.lists(a_step(), max_size=10))
def test_no_object_and_no_patch_is_too_strange_to_be_answered(steps: list[Step]) -> None:
    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with ApiServer(Path(folder), tls=False) as server:
                for kind, content, patch, media in steps:
                    await attempt(server, kind, content, patch, media)
                await server.controllers.drain()

    asyncio.run(scenario())


async def attempt(server: ApiServer, kind: Kind, content: Any, patch: Any, media: str) -> None:
    """Create, change, list and delete; a refusal is an answer."""
    objects, namespace = server.objects, "default" if kind.namespaced else ""
    try:
        content = request_bodies.decode_body(json.dumps(content).encode(), "application/json")
        request = WriteRequest(kind, namespace, "", APISERVER_USER)
        created = json.loads((await objects.create(request, content)).data)
        request = request._replace(name=created["metadata"]["name"])
        for change in (
            request_bodies.read_patch(kind, json.dumps(patch).encode(), media)
            if media != APPLY
            else request_bodies.read_apply(kind, json.dumps(patch).encode(), "me", True, ""),
            lambda old: {**old, "spec": patch},
        ):
            try:
                await objects.update(request, change)
            except StatusError as refusal:
                assert refusal.code < 500, refusal
        await list_pages.list_page(objects.store, kind, namespace, {})
        await deletion.delete(objects, request, deletion.DeleteOptions())
    except StatusError as refusal:
        assert refusal.code < 500, refusal


def test_a_configuration_with_unknown_fields_and_odd_metadata_is_refused() -> None:
    with pytest.raises(StatusError, match="field not declared in schema") as refused:
        request_bodies.read_apply(BUILT_IN[0], b'{"name": null, "metadata": true}', "me", True, "")
    assert refused.value.code == 400


PARTS = st.sampled_from(["binding", "eviction", "scale", "status", "token", "log", "finalize"])
BODIES = VALUES | st.dictionaries(
    st.sampled_from(["metadata", "target", "spec", "deleteOptions", "status"]), VALUES, max_size=4
)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=scaled(30))
@given(st.lists(st.tuples(PARTS, st.sampled_from(["POST", "PUT", "PATCH", "GET"]), BODIES), max_size=12))
def test_no_body_of_a_part_is_too_strange_either(steps: list[tuple[str, str, Any]]) -> None:
    async def scenario() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with running(Path(folder), tls=False) as api:
                await api.post("/api/v1/namespaces/default/pods", VALID_OBJECTS[0])
                deployment = next(content for content in VALID_OBJECTS if content["kind"] == "Deployment")
                await api.post("/apis/apps/v1/namespaces/default/deployments", deployment)
                for part, method, body in steps:
                    media = "application/json" if method != "PATCH" else MERGE
                    for path in (
                        f"/api/v1/namespaces/default/pods/p/{part}",
                        f"/apis/apps/v1/namespaces/default/deployments/d/{part}",
                        f"/api/v1/namespaces/default/serviceaccounts/default/{part}",
                        f"/api/v1/namespaces/default/{part}",
                    ):
                        status, answer = await api.request(method, path, body, media)
                        assert status < 500, answer

    asyncio.run(scenario())


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_what_is_no_http_costs_a_line_at_most(
    tmp_path: Path, tls: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(request_log, "PAUSE", 0.0)

    async def scenario() -> None:
        async with running(tmp_path, tls=tls) as api:
            port = int(api.server.url.rpartition(":")[2])
            for garbage in GARBAGE:
                caplog.clear()
                assert status_of(await exchange(port, garbage, tls)) == 400, garbage[:60]
                await exchange(port, garbage, tls=False)
                assert len([record for record in caplog.records if record.name == request_log.__name__]) <= 2
                assert not any(record.exc_info for record in caplog.records)
            await api.get("/api/v1/nodes")

    asyncio.run(scenario())


def test_bodies_and_expectations_that_cannot_be_met_are_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(tmp_path, tls=False) as api:
            port = int(api.server.url.rpartition(":")[2])
            known = f"Authorization: Bearer {api.server.token}"
            path = "/api/v1/namespaces/default/configmaps"

            async def answer(body: bytes, *headers: str) -> bytes:
                return await exchange(
                    port, post(path, body, known, "Content-Type: application/json", *headers)
                )

            for encoding in ("deflate", "gzip"):
                refused = await answer(b"garbage", f"Content-Encoding: {encoding}")
                assert (status_of(refused), b'"reason":"BadRequest"' in refused) == (400, True)
            assert status_of(await answer(b"", "Expect: wonders")) == 417
            for header in (b"Content-Type", b"User-Agent", b"Expect", b"Authorization", b"Impersonate-User"):
                latin = post(path, b"{}", known).replace(b"Host: x", b"Host: x\r\n" + header + b": \xe4")
                assert status_of(await exchange(port, latin)) == 400
            named = b'{"metadata":{"name":"a"}}'
            continued, _, created = (await answer(named, "Expect: 100-continue")).partition(b"\r\n\r\n")
            assert (continued, status_of(created)) == (b"HTTP/1.1 100 Continue", 201)
            unknown = await exchange(port, post(path, named, "Expect: 100-continue"))
            assert status_of(unknown) == 401, "nobody is told to send what will not be read"
            old = f"GET {path}?watch=true&timeoutSeconds=1 HTTP/1.0\r\n{known}\r\n\r\n".encode()
            assert (await exchange(port, old)).count(b'"type":"ADDED"') == 1, "a watch of an old client"
            chunked = "Transfer-Encoding: chunked"
            broken = post(path, b"", known, chunked).replace(b"Content-Length: 0\r\n", b"") + b"5\r\n{"
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(broken)
            await writer.drain()
            writer.transport.abort()
            await api.get(path)
            assert not any(record.exc_info for record in caplog.records)

    asyncio.run(scenario())
