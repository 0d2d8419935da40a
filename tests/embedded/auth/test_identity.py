"""Who is let in, and as whom."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.api.patches import APPLY
from stromboli.embedded.auth.identity import Tokens
from tests.embedded.api_requests import PODS, ApiCaller, running

KEY, ADMIN = b"the key that signs tokens", "the-administrators-token"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"


def test_a_token_ends_and_belongs_to_one_account() -> None:
    now = [1000.0]
    tokens = Tokens(KEY, ADMIN, lambda: now[0])
    token, expires = tokens.issue("team", "bob", "uid-1", 600)
    verified = tokens.verify(token)
    assert verified is not None
    user, uid = verified
    assert (user.name, uid, expires) == ("system:serviceaccount:team:bob", "uid-1", 1600)
    assert "system:serviceaccounts:team" in user.groups
    now[0] = 1601.0
    assert tokens.verify(token) is None
    assert Tokens(b"another key, and a long one", ADMIN).verify(token) is None
    elsewhere, _ = tokens.issue("team", "bob", "uid-1", 600, ("vault",))
    assert tokens.verify(elsewhere) is None, "a token for others is none for us"


@given(st.text(max_size=60), st.integers(0, 2))
def test_no_other_text_is_a_token(text: str, part: int) -> None:
    tokens = Tokens(KEY, ADMIN)
    token, _ = tokens.issue("team", "bob", "uid-1", 600)
    parts = token.split(".")
    if parts[part] != text:
        parts[part] = text
        assert tokens.verify(".".join(parts)) is None
    assert (tokens.verify(text) is None) == (text != ADMIN)


def test_claims_without_a_signature_are_nothing() -> None:
    claims = base64.urlsafe_b64encode(
        json.dumps({"sub": "system:serviceaccount:a:b", "exp": 1 << 40}).encode()
    )
    assert Tokens(KEY, ADMIN).verify(f"e30.{claims.decode().rstrip('=')}.") is None


def test_an_account_may_do_what_roles_say_until_it_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            await api.post(ACCOUNTS, {"metadata": {"name": "reader"}})
            created = await api.post(f"{ACCOUNTS}/reader/token", {"spec": {"expirationSeconds": 600}})
            token = created["status"]["token"]
            status, answer = await api.request("GET", PODS, token=token)
            assert (status, answer["reason"]) == (403, "Forbidden")
            assert (
                'User "system:serviceaccount:default:reader" cannot list resource "pods"' in answer["message"]
            )
            rule = {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}
            await api.post(f"{ROLES}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
            binding = {
                "metadata": {"name": "r"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
            }
            await api.post(f"{ROLES}/rolebindings", binding)
            assert (await api.request("GET", PODS, token=token))[0] == 200
            assert (await api.request("GET", "/api/v1/pods", token=token))[0] == 403
            assert (await api.request("POST", f"{ROLES}/roles", {"metadata": {"name": "x"}}, token=token))[
                0
            ] == 403
            assert (
                await api.request("POST", f"{ACCOUNTS}/reader/token", {"spec": {"expirationSeconds": 5}})
            )[0] == 400
            await api.delete(f"{ACCOUNTS}/reader")
            assert (await api.request("GET", PODS, token=token))[0] == 401

    asyncio.run(scenario())


def test_a_certificate_of_ours_says_who_and_one_of_others_does_not_get_in(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "a") as api:
            chain, key = api.server.authority.issue("ann", "ann", ("team",))
            context = ssl.create_default_context(cafile=str(api.server.ca))
            context.load_cert_chain(chain, key)
            url = f"{api.server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews"
            async with aiohttp.ClientSession() as session:
                async with session.post(url, json={}, ssl=context) as answer:
                    user_info = (await answer.json())["status"]["userInfo"]
                assert (user_info["username"], "team" in user_info["groups"]) == ("ann", True)
                headers = {"Impersonate-User": "somebody"}
                async with session.post(url, json={}, ssl=context, headers=headers) as answer:
                    assert answer.status == 403

    asyncio.run(scenario())


def test_secrets_are_for_their_owner_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path / "data") as api:
            api.server.write_kubeconfig(tmp_path / "data" / "kubeconfig")
            files = [tmp_path / "data" / "kubeconfig", *(tmp_path / "data" / "pki").iterdir()]
            private = [file for file in files if file.suffix != ".crt"]
            assert len(private) >= 4
            assert {oct(file.stat().st_mode & 0o777) for file in private} == {"0o600"}
            assert oct((tmp_path / "data").stat().st_mode & 0o777) == "0o700"

    asyncio.run(scenario())


def test_to_apply_what_is_not_there_is_to_create_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            token = await _account(api, ["get", "patch"])
            maps = "/api/v1/namespaces/default/configmaps"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}}
            path = f"{maps}/a?fieldManager=m&force=true"
            status, answer = await api.request("PATCH", path, body, APPLY, token=token)
            assert (status, 'cannot create resource "configmaps"' in answer["message"]) == (403, True)
            assert (await api.request("PATCH", path, body, APPLY))[0] == 201
            assert (await api.request("PATCH", path, body, APPLY, token=token))[0] == 200

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        ({"name": "other"}, 400, "the name of the object (other) does not match the name on the URL (mine)"),
        ({"generateName": "other-"}, 400, "(mine based on URL) was undeterminable: name must be provided"),
        ({"name": "", "generateName": "other-"}, 400, "name must be provided"),
        ({}, 400, "name must be provided"),
        (
            {"name": "mine", "uid": "1-2"},
            409,
            "the provided object specified uid 1-2, and no existing object",
        ),
        ({"name": "mine"}, 201, ""),
    ],
)
def test_apply_creates_only_the_object_of_the_url(
    metadata: dict[str, str], code: int, message: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            token = await _account(api, ["create", "patch"], names=["mine"])
            maps = "/api/v1/namespaces/default/configmaps"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            path = f"{maps}/mine?fieldManager=m"
            status, answer = await api.request("PATCH", path, body, APPLY, token=token)
            assert (status, message in answer.get("message", "")) == (code, True), answer
            names = [item["metadata"]["name"] for item in (await api.get(maps))["items"]]
            assert [name for name in names if "other" in name] == []

    asyncio.run(scenario())


@pytest.mark.parametrize("metadata", [{"name": "mine"}, {"name": "other"}, {"generateName": "other-"}])
def test_a_role_for_certain_names_does_not_allow_to_create(metadata: dict[str, str], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api:
            token = await _account(api, ["create"], names=["mine"])
            maps = "/api/v1/namespaces/default/configmaps"
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
            status, answer = await api.request("POST", maps, body, token=token)
            assert (status, answer["reason"]) == (403, "Forbidden")

    asyncio.run(scenario())


async def _account(api: ApiCaller, verbs: list[str], names: Sequence[str] = ()) -> str:
    """The token of an account that may do this with ConfigMaps, or with those of these names."""
    await api.post(ACCOUNTS, {"metadata": {"name": "someone"}})
    rule = {"verbs": verbs, "apiGroups": [""], "resources": ["configmaps"], "resourceNames": list(names)}
    await api.post(f"{ROLES}/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    group = {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Group",
        "name": "system:serviceaccounts:default",
    }
    await api.post(f"{ROLES}/rolebindings", {"metadata": {"name": "r"}, "roleRef": role, "subjects": [group]})
    created = await api.post(f"{ACCOUNTS}/someone/token", {"spec": {}})
    return str(created["status"]["token"])


def test_whoever_speaks_for_an_account_speaks_for_its_groups(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as api, aiohttp.ClientSession() as session:
            await _account(api, ["list"])
            url = f"{api.server.url}/api/v1/namespaces/default/configmaps"
            trust = ssl.create_default_context(cafile=str(api.server.ca))
            admin = {"Authorization": f"Bearer {api.server.token}"}
            for headers, expected in (
                ({"Impersonate-User": "system:serviceaccount:default:someone"}, 200),
                ({"Impersonate-User": "system:serviceaccount:other:someone"}, 403),
                ({"Impersonate-User": "someone"}, 403),
                ({"Impersonate-Group": "system:serviceaccounts:default"}, 400),
                ({"Authorization": "Bearer \u00e4\udcff"}, 401),
            ):
                async with session.get(url, headers={**admin, **headers}, ssl=trust) as answer:
                    assert answer.status == expected, headers

    asyncio.run(scenario())


def test_objects_are_for_their_owner_alone_even_in_a_folder_that_was_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        tmp_path.chmod(0o755)
        async with running(tmp_path) as api:
            await api.post(ACCOUNTS, {"metadata": {"name": "a"}})
            files = list(tmp_path.glob("objects.db*"))
            assert {file.name for file in files} >= {"objects.db", "objects.db-wal"}
            assert {oct(file.stat().st_mode & 0o077) for file in files if file.suffix != ".lock"} == {"0o0"}

    asyncio.run(scenario())
