"""Objects in protobuf, as Go clients send them."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.embedded.protobuf.protobuf_reader import MEDIA, BadMessage, read
from tests.embedded.api_requests import running


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
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
            body = envelope("v1", "Nonsense", b"")
            status, answer = await api.request("POST", "/api/v1/namespaces", body, MEDIA)
            assert (status, "send JSON" in answer["message"]) == (400, True)

    asyncio.run(scenario())
