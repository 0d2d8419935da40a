"""Objects of `resource.k8s.io/v1beta1` in files, read as `v1`: an API server that knows both does the same."""

from __future__ import annotations

from typing import Any

import msgspec

from stromboli.api.decoding import Raw

V1, V1BETA1 = "resource.k8s.io/v1", "resource.k8s.io/v1beta1"
_EXACTLY = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
"""Fields of a request that `v1` keeps in `exactly`."""


def as_v1(raw: Raw, api_version: str) -> Raw:
    """An object with fields where `v1` has them; all other versions as they are."""
    if api_version != V1BETA1:
        return raw
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return raw  # told when it is decoded
    return msgspec.json.encode(content_as_v1(content))


def content_as_v1(content: dict[str, Any]) -> dict[str, Any]:
    """The same for an object that is decoded; what is malformed stays as it is, to be told as what it is."""
    if content.get("apiVersion") != V1BETA1:
        return content
    content = {**content, "apiVersion": V1}
    match content:
        case {"kind": "ResourceClaim", "spec": {"devices": {"requests": list()}} as spec}:
            content["spec"] = _claim_spec(spec)
        case {"kind": "ResourceClaimTemplate", "spec": {"spec": {"devices": {"requests": list()}} as spec}}:
            content["spec"] = {**content["spec"], "spec": _claim_spec(spec)}
        case {"kind": "ResourceSlice", "spec": {"devices": list(devices)}}:
            content["spec"] = {**content["spec"], "devices": [_device(each) for each in devices]}
    return content


def _claim_spec(spec: dict[str, Any]) -> dict[str, Any]:
    devices = spec["devices"]
    return {**spec, "devices": {**devices, "requests": [_request(each) for each in devices["requests"]]}}


def _request(request: Any) -> Any:
    """A request for one class; alternatives (`firstAvailable`) are the same in both versions."""
    if not isinstance(request, dict) or not any(request.get(key) for key in _EXACTLY):
        return request
    kept = {key: value for key, value in request.items() if key not in _EXACTLY}
    return {**kept, "exactly": {key: request[key] for key in _EXACTLY if key in request}}


def _device(device: Any) -> Any:
    if not isinstance(device, dict) or not isinstance(basic := device.get("basic"), dict):
        return device
    return {**basic, **{key: value for key, value in device.items() if key != "basic"}}
