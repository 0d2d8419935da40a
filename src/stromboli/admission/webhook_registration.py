"""Writes the CA bundle of our certificate into the webhook configurations that name us."""

from __future__ import annotations

import base64
import logging

import msgspec

from stromboli.api.patches import JSON_PATCH
from stromboli.api.types.meta import Object, Value
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import Resource
from stromboli.kube.request import ApiError

log = logging.getLogger(__name__)

_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False),
    Resource(_GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False),
)


class _ClientConfig(Value, frozen=True):
    ca_bundle: str = ""


class _Webhook(Value, frozen=True):
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(Object):
    webhooks: tuple[_Webhook, ...] = ()


async def write_ca_bundle(client: Client, names: tuple[str, ...], authority: bytes) -> list[str]:
    """Write it wherever it differs; returns the configurations that do not exist (yet)."""
    bundle = base64.b64encode(authority).decode()
    missing = []
    for name in names:
        exists = [await _write(client, resource, name, bundle) for resource in CONFIGURATIONS]
        if not any(exists):
            missing.append(name)
    return missing


async def _write(client: Client, resource: Resource, name: str, bundle: str) -> bool:
    """Whether there is such a configuration."""
    try:
        answer = await client.get(resource, name)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    configuration = msgspec.json.decode(answer, type=_Configuration)
    changes = [
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle}
        for index, webhook in enumerate(configuration.webhooks)
        if webhook.client_config.ca_bundle != bundle
    ]
    if changes:
        version = {
            "op": "test",
            "path": "/metadata/resourceVersion",
            "value": configuration.metadata.resource_version,
        }
        await client.patch(resource, name, [version, *changes], content_type=JSON_PATCH)
        log.info("wrote the CA bundle into %s %s", resource.kind, name)
    return True
