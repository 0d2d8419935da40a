"""Logging in to a real API server, each way there is; what it has; what it refuses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.types.native_group import NativePodGroup
from stromboli.api.types.pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES, discover, plurals
from stromboli.kube.cluster_access import find_access
from stromboli.kube.request import ApiError, NoResponse, Request
from tests.kubernetes.controlplane import ControlPlane
from tests.manifests import pod
from tests.serving import CERTIFICATE

WHOAMI = Request(
    "POST",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}',
)


def recognized_user(plane: ControlPlane, folder: Path, user: dict[str, Any], **cluster: Any) -> str:
    """As whom the server knows somebody with such a kubeconfig."""
    config = plane.config_for("")
    config["users"][0]["user"] = user
    config["clusters"][0]["cluster"] |= cluster
    path = folder / "config"
    path.write_text(json.dumps(config))

    async def user_name() -> str:
        async with Client(find_access(str(path))) as client:
            name: str = json.loads(await client.send(WHOAMI))["status"]["userInfo"]["username"]
            return name

    return asyncio.run(user_name())


def test_a_token_a_certificate_and_a_program_all_let_us_in(plane: ControlPlane, tmp_path: Path) -> None:
    pki = plane.folder / "pki"
    assert recognized_user(plane, tmp_path, {"token": plane.token}) == "admin"
    certificate = {"client-certificate": str(pki / "admin.crt"), "client-key": str(pki / "admin.key")}
    assert recognized_user(plane, tmp_path, certificate) == "admin"
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": plane.token}}
    program = {"apiVersion": version, "command": "echo", "args": [json.dumps(credential)]}
    assert recognized_user(plane, tmp_path, {"exec": program}) == "admin"
    assert recognized_user(plane, tmp_path, certificate | {"as": "somebody-else"}) == "somebody-else"


def test_a_wrong_token_is_refused_and_a_wrong_authority_not_believed(
    plane: ControlPlane, tmp_path: Path
) -> None:
    with pytest.raises(ApiError) as refused:
        recognized_user(plane, tmp_path, {"token": "wrong"})
    assert refused.value.status == 401
    with pytest.raises(NoResponse, match="not believed to be the API server"):
        recognized_user(
            plane, tmp_path, {"token": plane.token}, **{"certificate-authority": str(CERTIFICATE)}
        )


def test_what_the_server_has_is_discovered(plane: ControlPlane) -> None:
    async def story() -> None:
        async with Client(find_access(str(plane.kubeconfig))) as client:
            behind_a_gate = {NativePodGroup}
            assert set(await discover(client)) | behind_a_gate == set(RESOURCES)
            assert "pods/binding" in await plurals(client, RESOURCES[Pod].root)
            volcano = await plurals(client, RESOURCES[Queue].root)
            assert "queues/status" in volcano
            assert "podgroups/status" not in volcano

    asyncio.run(story())


@pytest.mark.smoke
def test_objects_are_created_read_patched_and_deleted(plane: ControlPlane, namespace: str) -> None:
    groups = RESOURCES[PodGroup]

    async def story() -> None:
        async with Client(find_access(str(plane.kubeconfig))) as client:
            body = {"apiVersion": groups.api_version, "kind": "PodGroup", "metadata": {"name": "g"}}
            await client.create(groups, body, namespace)
            await client.patch(groups, "g", {"spec": {"minMember": 3}}, namespace)
            read = json.loads(await client.get(groups, "g", namespace))
            assert read["spec"]["minMember"] == 3
            assert json.loads(await client.list(groups, namespace))["items"] == [read]
            with pytest.raises(ApiError) as refused:
                await client.create(groups, body, namespace)
            assert (refused.value.status, refused.value.reason) == (409, "AlreadyExists")
            await client.delete(groups, "g", namespace)
            with pytest.raises(ApiError) as refused:
                await client.get(groups, "g", namespace)
            assert refused.value.status == 404

    asyncio.run(story())


def test_a_service_account_may_do_only_what_it_is_given(plane: ControlPlane, namespace: str) -> None:
    plane.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    token = plane.token_for(namespace, "reader")
    path = plane.folder / f"{namespace}.config"
    path.write_text(json.dumps(plane.config_for(token)))

    async def story() -> None:
        async with Client(find_access(str(path))) as client:
            with pytest.raises(ApiError, match="cannot list resource") as refused:
                await client.list(RESOURCES[Pod])
            assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
            with pytest.raises(ApiError):
                await client.create(RESOURCES[Pod], pod("a", namespace=namespace), namespace)

    asyncio.run(story())


ONE_NAME = [
    ("GET", "?fieldSelector=metadata.name%3Dmine", 200),
    ("GET", "?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dmine", 200),
    ("GET", "?fieldSelector=metadata.name%3Dmine,metadata.namespace!%3Dx", 200),
    ("GET", "", 403),
    ("GET", "?fieldSelector=metadata.name%3Dother", 403),
    ("GET", "?fieldSelector=metadata.name!%3Dmine", 403),
    ("GET", "?fieldSelector=metadata.name", 403),
    ("POST", "?fieldSelector=metadata.name%3Dmine", 403),
    ("DELETE", "?fieldSelector=metadata.name%3Dmine", 403),
]


def test_a_right_on_one_name_is_a_right_to_list_and_watch_that_name(
    plane: ControlPlane, tmp_path: Path, namespace: str
) -> None:
    rbac = "rbac.authorization.k8s.io"
    verbs = ["list", "watch", "create", "deletecollection"]
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": verbs}
    meta = {"name": "reader", "namespace": namespace}
    plane.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": meta, "rules": [rule]},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
    )
    path = tmp_path / "config"
    path.write_text(json.dumps(plane.config_for(plane.token_for(namespace, "reader"))))

    async def status(client: Client, method: str, query: str) -> int:
        body = b'{"metadata":{"name":"mine"}}' if method == "POST" else None
        try:
            await client.send(Request(method, f"/api/v1/namespaces/{namespace}/configmaps{query}", body))
        except ApiError as error:
            return error.status
        return 200

    async def statuses() -> list[tuple[str, str, int]]:
        async with Client(find_access(str(path))) as client:
            return [(method, query, await status(client, method, query)) for method, query, _ in ONE_NAME]

    assert asyncio.run(statuses()) == ONE_NAME
