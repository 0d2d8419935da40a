"""The environment and the command of a container, from what its pod says. Pure functions of plain objects."""

from __future__ import annotations

import base64
import binascii
import math
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from stromboli.api.resources.quantity import QuantityError, exact
from stromboli.embedded.nodes.node_types import Content, NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV")
"""What containers take over from us; everything else of ours is none of their business."""
NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_REFERENCE = re.compile(r"\$(?:\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

Fetch = Callable[[str, str], Content | None]
"""A ConfigMap or Secret of the pod's namespace, by kind and name; None if there is none."""


class ContainerError(Exception):
    """A container cannot be made as its pod asks; the reason is one of Kubernetes' words."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.reason = reason


def environment(pod: NodePod, container: Content, fetch: Fetch, own: Mapping[str, str]) -> dict[str, str]:
    """All variables: a few of ours, `own`, then `envFrom`, then `env`, each may use those before it."""
    made = {name: os.environ[name] for name in INHERITED if name in os.environ}
    made |= {"HOSTNAME": pod.name, **own}
    for source in container.get("envFrom") or ():
        made |= _all_of(source, fetch)
    for variable in container.get("env") or ():
        name = variable.get("name", "")
        if variable.get("valueFrom"):
            value = _from(variable["valueFrom"], pod, container, fetch)
            if value is None:
                continue
        else:
            value = expand(str(variable.get("value") or ""), made)
        if name and "=" not in name and "\0" not in name + value:
            made[name] = value
    return made


def command(container: Content, variables: Mapping[str, str]) -> list[str]:
    """What to run; there is no image that would know."""
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not container.get("command"):
        raise ContainerError(
            "no command: a real node runs no images, so spec.containers[].command must say what to run",
            "RunContainerError",
        )
    expanded = [expand(str(word), variables) for word in words]
    if any("\0" in word for word in expanded):
        raise ContainerError("a zero byte in the command", "RunContainerError")
    return expanded


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` is the variable's value where there is one; `$$(NAME)` is `$(NAME)`."""

    def value(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


def content(kind: str, thing: Content) -> dict[str, bytes]:
    """What is in a ConfigMap or Secret."""
    plain, coded = ("data", "binaryData") if kind == "ConfigMap" else ("stringData", "data")
    found = {key: str(value).encode() for key, value in (thing.get(plain) or {}).items()}
    for key, value in (thing.get(coded) or {}).items():
        try:
            found[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            raise ContainerError(f"{kind} {thing['metadata']['name']}: {key} is not base64") from None
    return found


def fetched(kind: str, reference: Content, fetch: Fetch, name_field: str = "name") -> dict[str, bytes] | None:
    """The content of what a reference names; None if it is missing and need not be there."""
    name = str(reference.get(name_field) or "")
    thing = fetch(kind, name)
    if thing is not None:
        return content(kind, thing)
    if reference.get("optional"):
        return None
    raise ContainerError(f'{kind.lower()} "{name}" not found')


def _all_of(source: Content, fetch: Fetch) -> dict[str, str]:
    prefix = str(source.get("prefix") or "")
    found: dict[str, bytes] = {}
    for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
        if source.get(field):
            found |= fetched(kind, source[field], fetch) or {}
    texts = {f"{prefix}{key}": value.decode(errors="replace") for key, value in found.items()}
    return {key: text for key, text in texts.items() if NAME.fullmatch(key) and "\0" not in text}


def _from(source: Content, pod: NodePod, container: Content, fetch: Fetch) -> str | None:
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if source.get(field):
            return _key(kind, source[field], fetch)
    if source.get("fieldRef"):
        return field_value(pod, str(source["fieldRef"].get("fieldPath", "")))
    if source.get("resourceFieldRef"):
        return resource_value(container, source["resourceFieldRef"])
    return None


def _key(kind: str, reference: Content, fetch: Fetch) -> str | None:
    found = fetched(kind, reference, fetch)
    key = str(reference.get("key", ""))
    if found is not None and key in found:
        return found[key].decode(errors="replace")
    if reference.get("optional"):
        return None
    raise ContainerError(f"couldn't find key {key} in {kind} {reference.get('name', '')}")


def field_value(pod: NodePod, path: str) -> str:
    """A field of the pod, as `fieldRef` names it."""
    meta, spec = pod.metadata, pod.spec
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        marks = meta.labels if keyed[1] == "labels" else meta.annotations
        return marks.get(keyed[2], "")
    fields: dict[str, Any] = {
        "metadata.name": meta.name,
        "metadata.namespace": meta.namespace,
        "metadata.uid": meta.uid,
        "metadata.labels": _lines(meta.labels),
        "metadata.annotations": _lines(meta.annotations),
        "spec.nodeName": spec.node_name,
        "spec.serviceAccountName": spec.service_account_name or "default",
        "status.podIP": LOCAL,
        "status.podIPs": LOCAL,
        "status.hostIP": LOCAL,
        "status.hostIPs": LOCAL,
    }
    if path not in fields:
        raise ContainerError(f"unsupported fieldPath: {path}")
    return str(fields[path])


def _lines(marks: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(marks.items()))


def resource_value(container: Content, reference: Content) -> str:
    """An amount that the container asks for, in units of the divisor; 0 where it asks for nothing."""
    where, _, resource = str(reference.get("resource", "")).partition(".")
    sizes = container.get("resources") or {}
    amounts = sizes.get(where) or (sizes.get("requests") if where == "limits" else None) or {}
    try:
        divisor = exact(reference.get("divisor") or "1") or 1
        return str(math.ceil(exact(amounts.get(resource, "0")) / divisor))
    except QuantityError as error:
        raise ContainerError(str(error)) from None
