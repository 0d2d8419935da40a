"""The namespaces of the soak and who may do what in them."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

from tests.soak import mutations, workloads
from tests.soak.api_user import ApiUser, NoAnswer

OWNS = "owns"
WORK_NAMESPACES = (workloads.NAMESPACE, "probe")
_DEFINITIONS = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
_WORKLOADS = ["pods", "configmaps", "jobs", "podgroups"]
ROLES = {
    "works": [{"apiGroups": ["*"], "resources": _WORKLOADS, "verbs": ["*"]}],
    "definitions": [
        _DEFINITIONS | {"verbs": ["create"]},
        _DEFINITIONS | {"resourceNames": ["toys.example.com"], "verbs": ["get", "update", "patch", "delete"]},
    ],
}
GRANT_INTERVAL = 2.0
RBAC = "/apis/rbac.authorization.k8s.io/v1"
QUOTA = {"pods": "40", "requests.cpu": "8", "requests.memory": "16Gi", "count/jobs.batch.volcano.sh": "40"}
"""For who sends mutated requests: as much as an operator would grant."""


class Tokens(NamedTuple):
    """Of the users beside the administrator."""

    works: str
    """Creates pods, jobs and ConfigMaps."""
    looks: str
    """May only look, everywhere."""
    owns: str
    """Does what they like in a namespace, and with a definition of their own."""


async def prepare(administrator: ApiUser) -> Tokens:
    """Make the namespaces, a queue, a quota and the users."""
    for namespace in (*WORK_NAMESPACES, mutations.NAMESPACE):
        await administrator.must("POST", "/api/v1/namespaces", _object("v1", "Namespace", namespace))
    queue = _object("scheduling.volcano.sh/v1beta1", "Queue", workloads.QUEUE, spec={"weight": 1})
    await administrator.must("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", queue)
    quota = _object("v1", "ResourceQuota", "granted", spec={"hard": QUOTA})
    await administrator.must("POST", f"{mutations.CORE}/resourcequotas", quota)
    for name, rules in ROLES.items():
        role = _object("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules=rules)
        await administrator.must("POST", f"{RBAC}/clusterroles", role)
    return Tokens(
        await _account(administrator, "works", [("works", namespace) for namespace in WORK_NAMESPACES]),
        await _account(administrator, "looks", [("view", "")]),
        await _account(
            administrator, OWNS, [("admin", mutations.NAMESPACE), ("view", ""), ("definitions", "")]
        ),
    )


async def grant_again(administrator: ApiUser) -> None:
    """Now and then: a mutated request may delete the binding by which its user sends it."""
    while True:
        await asyncio.sleep(GRANT_INTERVAL)
        await administrator.up.wait()
        with suppress(NoAnswer):
            await _grant(administrator, OWNS, [("admin", mutations.NAMESPACE)])


async def _account(administrator: ApiUser, name: str, roles: list[tuple[str, str]]) -> str:
    """A service account with roles, each in a namespace or everywhere, and its token.

    It has a namespace of its own, since accounts of one namespace share what a user may have.
    """
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    await administrator.must("POST", "/api/v1/namespaces", _object("v1", "Namespace", name))
    await administrator.must("POST", accounts, _object("v1", "ServiceAccount", name))
    await _grant(administrator, name, roles)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 36000},
    }
    token: str = (await administrator.must("POST", f"{accounts}/{name}/token", request))["status"]["token"]
    return token


async def _grant(administrator: ApiUser, name: str, roles: list[tuple[str, str]]) -> None:
    for role, namespace in roles:
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        path = f"{RBAC}/namespaces/{namespace}/rolebindings" if namespace else f"{RBAC}/clusterrolebindings"
        binding = _object(
            "rbac.authorization.k8s.io/v1",
            kind,
            f"{name}-{role}",
            roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            subjects=[{"kind": "ServiceAccount", "name": name, "namespace": name}],
        )
        await administrator.must("POST", path, binding)


def _object(version: str, kind: str, name: str, **fields: Any) -> Any:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
