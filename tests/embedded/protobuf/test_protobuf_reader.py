"""Objects in protobuf, as Go clients send them."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.kinds.builtin_kinds import BUILT_IN, REVIEWS
from stromboli.embedded.protobuf.protobuf_reader import MEDIA, BadMessage, read
from tests.embedded.api_requests import running


def field(number: int, value: bytes | int, fixed: bool = False) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if fixed:
        return varint(number << 3 | 1) + value
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def envelope(version: str, kind: str, message: bytes) -> bytes:
    head = field(1, version.encode()) + field(2, kind.encode())
    return b"k8s\x00" + field(1, head) + field(2, message)


LABELS = field(11, field(1, b"app") + field(2, b"web"))
META = field(1, b"a") + field(3, b"") + LABELS + field(8, b"")
CONTAINER = (
    field(1, b"main") + field(2, b"busybox") + field(8, field(2, field(1, b"cpu") + field(2, field(1, b"2"))))
)


def test_a_pod_reads_as_its_json_does() -> None:
    spec = field(2, CONTAINER) + field(4, 30) + field(25, -5)
    assert read(envelope("v1", "Pod", field(1, META) + field(2, spec) + field(3, b""))) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "2"}}}],
            "terminationGracePeriodSeconds": 30,
            "priority": -5,
        },
    }


def test_zeroes_stay_where_they_mean_something() -> None:
    message = field(1, field(1, b"a")) + field(2, 0) + field(3, 0) + field(4, b"")
    assert read(envelope("scheduling.k8s.io/v1", "PriorityClass", message)) == {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "a"},
        "value": 0,
    }


def test_an_empty_message_says_which_policy_a_group_has() -> None:
    message = field(1, field(1, b"a")) + field(2, field(2, field(1, b"")) + field(7, 0))
    assert read(envelope("scheduling.k8s.io/v1alpha2", "PodGroup", message)) == {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "a"},
        "spec": {"schedulingPolicy": {"basic": {}}, "priority": 0},
    }


def test_every_kind_that_is_served_is_read() -> None:
    for kind in (*BUILT_IN, *REVIEWS):
        message = read(envelope(kind.api_version, kind.kind, field(1, field(1, b"a"))))
        assert message == {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": {"name": "a"},
        }


def test_empty_messages_stay_where_they_mean_something() -> None:
    volume = field(1, b"scratch") + field(2, field(2, b""))
    pod = read(envelope("v1", "Pod", field(2, field(1, volume))))
    assert pod["spec"] == {"volumes": [{"name": "scratch", "emptyDir": {}}]}
    term = field(1, 1) + field(2, b"")
    pod = read(envelope("v1", "Pod", field(2, field(18, field(1, field(2, term))))))
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    assert pod["spec"]["affinity"]["nodeAffinity"] == {preferred: [{"weight": 1, "preference": {}}]}
    policy = read(envelope("networking.k8s.io/v1", "NetworkPolicy", field(2, field(1, b""))))
    assert policy["spec"] == {"podSelector": {}}
    opaque = field(1, field(1, field(1, b"a.example.com") + field(2, field(1, b"{}"))))
    device_class = read(envelope("resource.k8s.io/v1", "DeviceClass", field(2, field(2, opaque))))
    assert device_class["spec"] == {"config": [{"opaque": {"driver": "a.example.com", "parameters": {}}}]}
    budget = field(2, field(2, b"") + field(3, field(1, 0) + field(2, 0) + field(3, b"")))
    assert read(envelope("policy/v1", "PodDisruptionBudget", budget))["spec"] == {
        "selector": {},
        "maxUnavailable": 0,
    }


def test_schemas_read_as_their_json_does() -> None:
    allowed, text = field(1, 1), field(5, b"string")
    schema = (
        field(11, struct.pack("<d", 0.0), fixed=True)
        + field(8, field(1, b'{"a": [1]}'))
        + field(24, field(1, text))
        + field(30, allowed)
        + field(33, field(1, 0))
        + field(29, field(1, b"b") + field(2, field(30, field(1, 1) + field(2, text))))
    )
    message = field(2, field(7, field(1, b"v1") + field(2, 1) + field(4, field(1, schema))))
    (version,) = read(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message))["spec"][
        "versions"
    ]
    assert version == {
        "name": "v1",
        "served": True,
        "schema": {
            "openAPIV3Schema": {
                "minimum": 0,
                "default": {"a": [1]},
                "items": {"type": "string"},
                "additionalProperties": True,
                "additionalItems": False,
                "properties": {"b": {"additionalProperties": {"type": "string"}}},
            }
        },
    }


@given(st.binary(max_size=200))
def test_bytes_that_are_no_message_are_refused_and_nothing_worse(data: bytes) -> None:
    for body in (data, b"k8s\x00" + data, envelope("v1", "Pod", data), envelope("v1", "Event", data)):
        try:
            read(body)
        except BadMessage:
            continue
        except struct.error:
            pytest.fail("a number of another size")


def test_the_server_takes_protobuf_and_names_kinds_that_it_cannot_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            body = envelope("v1", "Namespace", field(1, field(1, b"team")))
            status, answer = await api.request("POST", "/api/v1/namespaces", body, MEDIA)
            assert (status, answer["status"]["phase"]) == (201, "Active")
            pool = field(1, b"p") + field(2, 1) + field(3, 1)
            attributes = field(2, field(1, b"index") + field(2, field(2, 0)))
            spec = (
                field(1, b"a.example.com")
                + field(2, pool)
                + field(5, 1)
                + field(6, field(1, b"gpu") + attributes)
            )
            body = envelope("resource.k8s.io/v1", "ResourceSlice", field(1, field(1, b"s")) + field(2, spec))
            status, answer = await api.request("POST", "/apis/resource.k8s.io/v1/resourceslices", body, MEDIA)
            assert (status, answer["spec"]["devices"]) == (
                201,
                [{"name": "gpu", "attributes": {"index": {"int": 0}}}],
            )
            body = envelope("v1", "Nonsense", b"")
            status, answer = await api.request("POST", "/api/v1/namespaces", body, MEDIA)
            assert (status, "send JSON" in answer["message"]) == (400, True)

    asyncio.run(scenario())
