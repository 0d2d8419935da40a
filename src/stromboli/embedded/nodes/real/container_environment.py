"""The environment and the command of a container, from its pod. Pure functions of plain objects."""

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

INHERITED = ("PATH", "LD_LIBRARY_PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV")
"""Variables that containers inherit from our environment; they get no others."""
LARGEST_EXPANSION = 2 * 1024 * 1024
"""Characters of all variables of a container, and of its command, with the values in them: no system takes more."""
NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
REFERENCE = re.compile(r"\$(?:\$|\(([-._a-zA-Z][-._a-zA-Z0-9]*)\))")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")

Fetch = Callable[[str, str], Content | None]
"""A ConfigMap or Secret of the pod's namespace, by kind and name; None if there is none."""


class ContainerError(Exception):
    """A container cannot be created as its pod asks; `reason` is one that kubelets report."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.reason = reason


def environment(pod: NodePod, container: Content, fetch: Fetch, runtime: Mapping[str, str]) -> dict[str, str]:
    """Inherited variables, those of the runtime, then `envFrom`, then `env`; each may use those before it."""
    variables = {name: os.environ[name] for name in INHERITED if name in os.environ}
    variables |= {"HOSTNAME": (pod.spec.hostname or pod.name)[:63], **runtime}
    for source in container.get("envFrom") or ():
        variables |= _env_from(source, fetch)
    room = LARGEST_EXPANSION - sum(map(len, variables.values()))
    for variable in container.get("env") or ():
        name = variable.get("name", "")
        if variable.get("valueFrom"):
            value = _value_from(variable["valueFrom"], pod, container, fetch)
            if value is None:
                continue
        else:
            value = expand(str(variable.get("value") or ""), variables, room)
        if name and "=" not in name and "\0" not in name + value:
            variables[name] = value
            room -= len(value)
    return variables


def command(container: Content, variables: Mapping[str, str]) -> list[str]:
    """The command line. Without an image nothing comes before the arguments: they may be all of it (`kubectl run`)."""
    arguments = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not arguments:
        raise ContainerError(
            "no command: a real node runs no images, so spec.containers[].command must say what to run",
            "RunContainerError",
        )
    expanded: list[str] = []
    room = LARGEST_EXPANSION
    for argument in arguments:
        expanded.append(expand(str(argument), variables, room))
        room -= len(expanded[-1])
    if any("\0" in argument for argument in expanded):
        raise ContainerError("a zero byte in the command", "RunContainerError")
    return expanded


def expand(text: str, variables: Mapping[str, str], longest: int) -> str:
    """`$(NAME)` is the variable's value where there is one; `$$(NAME)` is `$(NAME)`.

    `ContainerError` if values make it longer than `longest`: a few variables that use each other may say very much.
    """
    room = longest

    def value(match: re.Match[str]) -> str:
        nonlocal room
        if match[1] is None:
            return "$"
        known = variables.get(match[1], match[0])
        room -= len(known)
        if room < 0:
            raise ContainerError(
                f"$({match[1][:80]}): variables and commands may have {LARGEST_EXPANSION} characters, with the values"
                " of variables in them; shorten them",
                "RunContainerError",
            )
        return known

    return REFERENCE.sub(value, text)


def data_of(kind: str, source: Content) -> dict[str, bytes]:
    """The data of a ConfigMap or Secret, decoded."""
    plain, coded = ("data", "binaryData") if kind == "ConfigMap" else ("stringData", "data")
    data = {key: str(value).encode() for key, value in (source.get(plain) or {}).items()}
    for key, value in (source.get(coded) or {}).items():
        try:
            data[key] = base64.b64decode(value or "", validate=True)
        except (binascii.Error, ValueError):
            raise ContainerError(f"{kind} {source['metadata']['name']}: {key} is not base64") from None
    return data


def referenced_data(
    kind: str, reference: Content, fetch: Fetch, name_field: str = "name"
) -> dict[str, bytes] | None:
    """The data that a reference names; None if it is missing and optional."""
    name = str(reference.get(name_field) or "")
    source = fetch(kind, name)
    if source is not None:
        return data_of(kind, source)
    if reference.get("optional"):
        return None
    raise ContainerError(f'{kind.lower()} "{name}" not found')


def _env_from(source: Content, fetch: Fetch) -> dict[str, str]:
    prefix = str(source.get("prefix") or "")
    data: dict[str, bytes] = {}
    for kind, field in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
        if source.get(field):
            data |= referenced_data(kind, source[field], fetch) or {}
    texts = {f"{prefix}{key}": value.decode(errors="replace") for key, value in data.items()}
    return {key: text for key, text in texts.items() if NAME.fullmatch(key) and "\0" not in text}


def _value_from(source: Content, pod: NodePod, container: Content, fetch: Fetch) -> str | None:
    for kind, field in (("ConfigMap", "configMapKeyRef"), ("Secret", "secretKeyRef")):
        if source.get(field):
            return _key_reference(kind, source[field], fetch)
    if source.get("fieldRef"):
        return field_value(pod, str(source["fieldRef"].get("fieldPath", "")))
    if source.get("resourceFieldRef"):
        return resource_value(container, source["resourceFieldRef"])
    return None


def _key_reference(kind: str, reference: Content, fetch: Fetch) -> str | None:
    data = referenced_data(kind, reference, fetch)
    key = str(reference.get("key", ""))
    if data is not None and key in data:
        return data[key].decode(errors="replace")
    if reference.get("optional"):
        return None
    raise ContainerError(f"couldn't find key {key} in {kind} {reference.get('name', '')}")


def field_value(pod: NodePod, path: str) -> str:
    """A field of the pod, as `fieldRef` names it."""
    meta, spec = pod.metadata, pod.spec
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        entries = meta.labels if keyed[1] == "labels" else meta.annotations
        return entries.get(keyed[2], "")
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


def _lines(entries: Mapping[str, str]) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))


def resource_value(container: Content, reference: Content) -> str:
    """A request or limit of the container in units of the divisor; 0 where it has none."""
    field, _, resource = str(reference.get("resource", "")).partition(".")
    sizes = container.get("resources") or {}
    amounts = sizes.get(field) or (sizes.get("requests") if field == "limits" else None) or {}
    try:
        divisor = exact(reference.get("divisor") or "1") or 1
        return str(math.ceil(exact(amounts.get(resource, "0")) / divisor))
    except QuantityError as error:
        raise ContainerError(str(error)) from None
