"""The Service `default/kubernetes`, which leads to the API server, with its endpoints."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from stromboli.embedded.admission.write_request import WriteRequest
from stromboli.embedded.auth.identity import APISERVER_USER
from stromboli.embedded.kinds import object_metadata
from stromboli.embedded.kinds.kind import Content, Kind
from stromboli.embedded.objects.object_verbs import Objects
from stromboli.embedded.objects.service_addresses import SERVICES
from stromboli.embedded.store.records import Key

NAME, NAMESPACE = "kubernetes", "default"
_LABELS = {"component": "apiserver", "provider": "kubernetes"}
_SLICES = "endpointslices.discovery.k8s.io"


def is_published(key: Key) -> bool:
    """Whether an object is made here."""
    return key[1:] == (NAMESPACE, NAME) and key.resource in (SERVICES, "endpoints", _SLICES)


async def publish_api_server(objects: Objects, url: str) -> None:
    """Make the Service and its endpoints show where the server listens."""
    address, port = _listens_at(url)
    await _ensure_service(objects, port)
    _put_endpoints(objects, address, port)
    _put_slice(objects, address, port)


def _listens_at(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    host = parts.hostname or "127.0.0.1"
    try:
        ip_address(host)
    except ValueError:
        host = "127.0.0.1"
    return host, parts.port or 443


async def _ensure_service(objects: Objects, port: int) -> None:
    record = objects.store.get(SERVICES, NAMESPACE, NAME)
    if record is None:
        first = objects.service_addresses.first
        spec: Content = {"ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]}
        if objects.service_addresses.is_free(first):
            spec["clusterIP"] = first
        kind = _kind(objects, SERVICES)
        service = {**_object(kind, dict(_LABELS)), "spec": spec}
        await objects.create(WriteRequest(kind, NAMESPACE, "", APISERVER_USER, manager="stromboli"), service)
        return

    def update(content: Content) -> None:
        for entry in content["spec"].get("ports") or ():
            if entry.get("name") == "https":
                entry["targetPort"] = port

    objects.system_update(record, update)


def _put_endpoints(objects: Objects, address: str, port: int) -> None:
    kind = _kind(objects, "endpoints")
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    subsets = [{"addresses": [{"ip": address}], "ports": ports}]
    _put(objects, {**_object(kind, labels), "subsets": subsets}, kind)


def _put_slice(objects: Objects, address: str, port: int) -> None:
    kind = _kind(objects, _SLICES)
    content = {
        **_object(kind, {"kubernetes.io/service-name": NAME}),
        "addressType": "IPv6" if ":" in address else "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    _put(objects, content, kind)


def _put(objects: Objects, content: Content, kind: Kind) -> None:
    """Not by a request: a real server takes no endpoints on this machine alone."""
    key = Key(kind.id, NAMESPACE, NAME)
    record = objects.store.get(*key)
    if record is None:
        object_metadata.fill_system_fields(kind, NAMESPACE, content["metadata"])
        objects.store.put(key, content)
        return

    def update(stored: Content) -> None:
        stored.update({field: value for field, value in content.items() if field != "metadata"})

    objects.system_update(record, update)


def _object(kind: Kind, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


def _kind(objects: Objects, resource: str) -> Kind:
    kind = objects.registry.by_id(resource)
    assert kind is not None, resource
    return kind
