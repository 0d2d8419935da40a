"""What the server checks in ConfigMaps and Secrets: keys, the bytes of all values, and what may not change."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid, required, too_long
from stromboli.embedded.kinds.kind import Content

CONFIG_MAPS, SECRETS = "configmaps", "secrets"
LARGEST_DATA = 1024 * 1024
"""Bytes of all values of a ConfigMap or Secret together, decoded."""
_LONGEST_KEY = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', "
    " or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ACCOUNT = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
    "tls": ("tls.crt", "tls.key"),
    "ssh-auth": ("ssh-privatekey",),
    "dockercfg": (".dockercfg",),
    "dockerconfigjson": (".dockerconfigjson",),
}
"""By type of Secret, without its prefix."""


def config_map_problems(content: Content, old: Content) -> Iterator[Problem]:
    data, binary = content.get("data") or {}, content.get("binaryData") or {}
    for key in data:
        yield from _key_problems("data", key)
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from _key_problems("binaryData", key)
    if sum(map(_text_size, data.values())) + sum(map(_decoded_size, binary.values())) > LARGEST_DATA:
        yield too_long("[]", LARGEST_DATA)
    yield from _immutable_problems(content, old, ("data", "binaryData"))


def secret_problems(content: Content, old: Content) -> Iterator[Problem]:
    data = content.get("data") or {}
    for key in data:
        yield from _key_problems("data", key)
    if sum(map(_decoded_size, data.values())) > LARGEST_DATA:
        yield too_long("data", LARGEST_DATA)
    if old and content.get("type") != old.get("type"):
        yield invalid("type", content.get("type"), "field is immutable")
    yield from _type_problems(content, data)
    yield from _immutable_problems(content, old, ("data",))


def _key_problems(field: str, key: str) -> Iterator[Problem]:
    """Keys are names of files."""
    path = f"{field}[{key}]"
    if len(key) > _LONGEST_KEY:
        yield invalid(path, key, f"must be no more than {_LONGEST_KEY} characters")
    if not _KEY.fullmatch(key):
        yield invalid(path, key, _KEY_RULE)
    if key in (".", ".."):
        yield invalid(path, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid(path, key, "must not start with '..'")


def _text_size(text: Any) -> int:
    return len(text.encode(errors="surrogatepass")) if isinstance(text, str) else 0


def _decoded_size(encoded: Any) -> int:
    return len(base64.b64decode(encoded)) if isinstance(encoded, str) else 0


def _immutable_problems(content: Content, old: Content, fields: tuple[str, ...]) -> Iterator[Problem]:
    if not old.get("immutable"):
        return
    for field in ("immutable", *fields):
        if (content.get(field) or None) != (old.get(field) or None):
            yield forbidden(field, "field is immutable when `immutable` is set")


def _type_problems(content: Content, data: Content) -> Iterator[Problem]:
    """Types that Kubernetes knows have keys of their own."""
    prefix, _, kind = str(content.get("type", "")).rpartition("/")
    if prefix != "kubernetes.io":
        return
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif kind.startswith("docker") and (why := _json_problem(data[key])):
            yield invalid(f"data[{key}]", "<secret contents redacted>", why)
    if kind == "basic-auth" and not {"username", "password"} & set(data):
        yield required("data[username]")
        yield required("data[password]")
    if kind == "service-account-token" and not (content["metadata"].get("annotations") or {}).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")


def _json_problem(encoded: Any) -> str:
    """Why a docker configuration is no object of JSON; empty if it is."""
    try:
        msgspec.json.decode(base64.b64decode(encoded or ""), type=dict[str, Any])
    except (ValueError, RecursionError) as error:
        return str(error)
    return ""
