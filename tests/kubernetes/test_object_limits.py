"""What an API server refuses: keys and sizes of data, too large objects, versions that are missing or yet to come."""

from __future__ import annotations

import base64
import json
import urllib.error
from typing import Any

import pytest

from stromboli.controllers.api_writer import is_final
from stromboli.kube.request import api_error
from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.servers import EMBEDDED, chosen

MERGE = "application/merge-patch+json"
MIB = 1024 * 1024
FUTURE = 99_999_999
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
VERSION_REQUIRED = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"


def answer(
    plane: ControlPlane, method: str, path: str, body: Any = None, media: str = "application/json"
) -> tuple[int, dict[str, Any]]:
    """The status and body of a response, refused or not."""
    try:
        return 200, json.loads(plane.request(method, path, body, media))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def encoded(size: int) -> str:
    return base64.b64encode(b"x" * size).decode()


def secret(type: str, *keys: str) -> dict[str, Any]:
    return {"type": f"kubernetes.io/{type}", "data": dict.fromkeys(keys, "")}


KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',"
    "  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
LONG = "x" * 254
TOO_LONG = f"Too long: may not be more than {MIB} bytes"
REFUSED_MAPS = [
    ({"data": {"a b": "x"}}, f'data[a b]: Invalid value: "a b": {KEY_RULE}'),
    ({"data": {"": "x"}}, f'data[]: Invalid value: "": {KEY_RULE}'),
    ({"data": {".": "x"}}, "data[.]: Invalid value: \".\": must not be '.'"),
    ({"data": {"..": "x"}}, "data[..]: Invalid value: \"..\": must not be '..'"),
    ({"data": {"..a": "x"}}, "data[..a]: Invalid value: \"..a\": must not start with '..'"),
    ({"binaryData": {"a/b": "eA=="}}, f'binaryData[a/b]: Invalid value: "a/b": {KEY_RULE}'),
    (
        {"data": {"a": "x"}, "binaryData": {"a": "eA=="}},
        'data[a]: Invalid value: "a": duplicate of key present in binaryData',
    ),
    ({"data": {"a": "x" * (MIB + 1)}}, f"[]: {TOO_LONG}"),
    ({"binaryData": {"a": encoded(MIB + 1)}}, f"[]: {TOO_LONG}"),
    ({"data": {"a": "x" * (MIB // 2)}, "binaryData": {"b": encoded(MIB // 2 + 1)}}, f"[]: {TOO_LONG}"),
]
REFUSED_SECRETS = [
    ({"data": {"a b": ""}}, f'data[a b]: Invalid value: "a b": {KEY_RULE}'),
    ({"stringData": {"..": ""}}, "data[..]: Invalid value: \"..\": must not be '..'"),
    ({"data": {"a": encoded(MIB + 1)}}, f"data: {TOO_LONG}"),
    ({"stringData": {"a": "x" * (MIB + 1)}}, f"data: {TOO_LONG}"),
    (secret("tls"), "[data[tls.crt]: Required value, data[tls.key]: Required value]"),
    (secret("dockercfg"), "data[.dockercfg]: Required value"),
    (secret("basic-auth"), "[data[username]: Required value, data[password]: Required value]"),
    (secret("ssh-auth"), "data[ssh-privatekey]: Required value"),
    (
        secret("service-account-token"),
        "metadata.annotations[kubernetes.io/service-account.name]: Required value",
    ),
]


@pytest.mark.parametrize(
    ("kind", "content", "problem"),
    [
        *(("ConfigMap", *case) for case in REFUSED_MAPS),
        *(("Secret", *case) for case in REFUSED_SECRETS),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_what_cannot_be_in_a_config_map_or_secret_is_refused(
    plane: ControlPlane, namespace: str, kind: str, content: dict[str, Any], problem: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/{kind.lower()}s"
    status, refusal = answer(plane, "POST", path, {"metadata": {"name": "a"}, **content})
    assert (status, refusal["message"]) == (422, f'{kind} "a" is invalid: {problem}')


def test_what_just_fits_into_a_config_map_or_secret_is_accepted(plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    for plural, content in (
        ("configmaps", {"data": {LONG[1:]: "x" * MIB}}),
        ("configmaps", {"data": {"a": "x" * (MIB // 2)}, "binaryData": {"b": encoded(MIB // 2)}}),
        ("configmaps", {"data": None, "binaryData": None}),
        ("secrets", {"data": {"-": encoded(MIB)}}),
        ("secrets", secret("tls", "tls.crt", "tls.key")),
        ("secrets", secret("basic-auth", "password")),
    ):
        status, created = answer(
            plane, "POST", f"{path}/{plural}", {"metadata": {"generateName": "a"}, **content}
        )
        assert status == 200, created["message"]


@pytest.mark.smoke
def test_what_is_immutable_is_named_when_it_is_changed(plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    for plural, field, other in (
        ("configmaps", "data", {"a": "b"}),
        ("configmaps", "binaryData", {"b": "eA=="}),
        ("configmaps", "immutable", False),
        ("secrets", "data", {"a": "eA=="}),
        ("secrets", "immutable", None),
    ):
        name = f"{field}-{plural}".lower()
        answer(plane, "POST", f"{path}/{plural}", {"metadata": {"name": name}, "immutable": True})
        status, refusal = answer(plane, "PATCH", f"{path}/{plural}/{name}", {field: other}, MERGE)
        expected = f"{field}: Forbidden: field is immutable when `immutable` is set"
        assert (status, refusal["details"]["causes"][0]["field"]) == (422, field)
        assert refusal["message"].endswith(expected)
    answer(plane, "POST", f"{path}/secrets", {"metadata": {"name": "typed"}, "type": "a"})
    status, refusal = answer(plane, "PATCH", f"{path}/secrets/typed", {"type": "b"}, MERGE)
    assert (status, refusal["message"]) == (
        422,
        'Secret "typed" is invalid: type: Invalid value: "b": field is immutable',
    )


def test_an_object_that_is_too_large_for_etcd_is_refused(plane: ControlPlane, namespace: str) -> None:
    """kube-apiserver answers 500; a refusal that trying again does not mend is 413 on ours."""
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def pod(name: str, size: int) -> dict[str, Any]:
        container = {"name": "a", "image": "i", "env": [{"name": "E", "value": "x" * size}]}
        return {"metadata": {"name": name}, "spec": {"containers": [container]}}

    status, created = answer(plane, "POST", pods, pod("fits", 1_500_000))
    assert status == 200, created["message"]
    for method, path, body in (
        ("POST", pods, pod("large", 1_600_000)),
        ("PATCH", f"{pods}/fits/status", {"status": {"message": "x" * 100_000}}),
        ("PATCH", f"{pods}/fits", {"metadata": {"annotations": {"a": "x" * 100_000}}}),
    ):
        media = MERGE if method == "PATCH" else "application/json"
        status, refusal = answer(plane, method, path, body, media)
        expected = 413 if chosen() == EMBEDDED else 500
        assert (status, refusal["message"]) == (expected, "etcdserver: request is too large"), path
        error = api_error(status, json.dumps(refusal).encode())
        assert (error.status, is_final(error)) == (413, True)


def test_our_controllers_know_that_an_object_is_too_large_for_a_message_to_etcd(
    plane: ControlPlane, namespace: str
) -> None:
    container = {"name": "a", "image": "i", "env": [{"name": "E", "value": "x" * 2_200_000}]}
    body = {"metadata": {"name": "large"}, "spec": {"containers": [container]}}
    status, refusal = answer(plane, "POST", f"/api/v1/namespaces/{namespace}/pods", body)
    error = api_error(status, json.dumps(refusal).encode())
    assert (error.status, is_final(error)) == (413, True), refusal


@pytest.mark.parametrize(
    ("path", "kind", "spec"),
    [
        (QUEUES, "Queue", {"spec": {"weight": 1}}),
        (LEASES, "Lease", {"spec": {}}),
        (WEBHOOKS, "ValidatingWebhookConfiguration", {}),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isalpha() else "",
)
def test_an_update_names_the_version_that_it_is_based_on(
    plane: ControlPlane, namespace: str, path: str, kind: str, spec: dict[str, Any]
) -> None:
    path = path.format(namespace=namespace)
    group_version, resource = path.split("/apis/")[1].split("/namespaces/")[0], path.rsplit("/", 1)[1]
    api_version = "/".join(group_version.split("/")[:2])
    name = f"{namespace}-versioned"
    typed = {"apiVersion": api_version, "kind": kind, **spec}
    status, created = answer(plane, "POST", path, {**typed, "metadata": {"name": name}})
    assert status == 200, created
    expected = f'{resource}.{api_version.split("/")[0]} "{name}" is invalid: {VERSION_REQUIRED}'
    try:
        for version in (None, "", "0"):
            labelled = {"name": name, "labels": {"a": "b"}, "resourceVersion": version}
            for method, media in (("PUT", "application/json"), ("PATCH", MERGE)):
                if (method, version) == ("PATCH", ""):
                    continue
                body = {**typed, "metadata": labelled} if method == "PUT" else {"metadata": labelled}
                status, refusal = answer(plane, method, f"{path}/{name}", body, media)
                assert (status, refusal.get("message")) == (422, expected), (method, version)
        current = {
            "name": name,
            "labels": {"a": "b"},
            "resourceVersion": created["metadata"]["resourceVersion"],
        }
        status, updated = answer(plane, "PUT", f"{path}/{name}", {**typed, "metadata": current})
        assert status == 200, updated
    finally:
        answer(plane, "DELETE", f"{path}/{name}")


def test_other_updates_need_no_version(plane: ControlPlane, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    answer(plane, "POST", path, {"metadata": {"name": "a"}})
    for version in (None, "0"):
        meta = {"name": "a", "resourceVersion": version, "labels": {"version": str(version)}}
        assert answer(plane, "PUT", f"{path}/a", {"metadata": meta})[0] == 200


def test_a_version_that_is_yet_to_come_is_refused(plane: ControlPlane, namespace: str) -> None:
    """kube-apiserver lets a plain watch wait for it; a watch that begins with a list is refused as ours is."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    answer(plane, "POST", path, {"metadata": {"name": "a"}})
    for asked in (f"{path}?resourceVersion={FUTURE}", f"{path}/a?resourceVersion={FUTURE}"):
        status, refusal = answer(plane, "GET", asked)
        assert (status, refusal["reason"]) == (504, "Timeout")
        assert refusal["message"].startswith(f"Timeout: Too large resource version: {FUTURE}, current: ")
        assert refusal["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
