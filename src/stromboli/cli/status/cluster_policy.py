"""The policy that is in force in a running cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stromboli.api import names
from stromboli.cli.leader.leader_query import ask_policy
from stromboli.embedded.running_clusters import RunningCluster
from stromboli.engine.catalog import Catalog
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError
from stromboli.policy.policy import Policy, PolicyError, default_policy, load_policy
from stromboli.policy.policy_file import PolicyFile
from stromboli.policy.presets import PRESETS
from stromboli.scheduler.explain.policy_document import PolicyDocument

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CONFIG_MAP = (names.VOLCANO_NAMESPACE, names.SCHEDULER_CONFIG_MAP, names.SCHEDULER_CONFIG_KEY)
"""Namespace and name of the ConfigMap in which Volcano's installation keeps the policy, and the key there."""


class PolicyInForce(NamedTuple):
    """A policy, and where it comes from."""

    policy: Policy
    origin: str
    is_known: bool = True
    """Whether it is that of the cluster; the built-in one otherwise."""
    refused: str = ""
    """Why a newer version of it is not in force."""


async def policy_in_force(client: Client, running: RunningCluster | None, catalog: Catalog) -> PolicyInForce:
    """The policy in force in a cluster, as far as it can be read; else the built-in one."""
    namespace, name, key = CONFIG_MAP
    origin, local = f"{namespace}/{name}", running.policy if running is not None else ""
    try:
        if local:
            leader = await ask_policy(_Connection(client))
            if isinstance(leader, PolicyDocument) and not leader.text_left_out:
                policy = load_policy(leader.text, catalog, leader.source, lenient=True)
                return PolicyInForce(policy, leader.source, refused=_refused(leader))
        text = await _config_map_text(client, may_be_missing=bool(local))
        if isinstance(text, str) and (text.strip() or not local):
            return PolicyInForce(load_policy(text, catalog, origin, lenient=True), origin)
        if local:
            return PolicyInForce(_of_local_cluster(local, catalog), local)
        why = f"{origin} has no {key}"
    except (ApiError, PolicyError, OSError) as error:
        why = str(error).partition("\n")[0]
    return PolicyInForce(
        default_policy(catalog), f"the built-in policy, as the cluster's is not known: {why}", is_known=False
    )


async def _config_map_text(client: Client, may_be_missing: bool) -> Any:
    namespace, name, key = CONFIG_MAP
    try:
        answer = await client.get(CONFIG_MAPS, name, namespace)
    except ApiError as error:
        if error.status == 404 and may_be_missing:
            return None
        raise
    return (msgspec.json.decode(answer).get("data") or {}).get(key)


class _Connection(NamedTuple):
    client: Client


def _refused(policy: PolicyDocument) -> str:
    refused = policy.refused
    if refused is None or not refused.is_latest or not refused.errors:
        return ""
    first = refused.errors[0]
    return f"{refused.source}{f':{first.line}' if first.line else ''}: {first.text}"


def _of_local_cluster(name: str, catalog: Catalog) -> Policy:
    """A preset, or a file that the cluster reads itself."""
    preset = name.removeprefix("preset ")
    if preset in PRESETS and preset != name:
        return load_policy(PRESETS[preset], catalog, name, lenient=True)
    return PolicyFile(Path(name), catalog, lenient=True).current
