"""Secrets."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stromboli.api.schemas.schema_problems import Problem, invalid, required, too_long
from stromboli.embedded.kinds.config_data import MAX_DATA, decoded_size, immutable_problems, key_problems
from stromboli.embedded.kinds.kind import Content, builtin, fields
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.age_text import age
from stromboli.embedded.tables.table_printer import Cells, name_of, printer

_ACCOUNT = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
    "tls": ("tls.crt", "tls.key"),
    "ssh-auth": ("ssh-privatekey",),
    "dockercfg": (".dockercfg",),
    "dockerconfigjson": (".dockerconfigjson",),
}
"""By type of Secret, without its prefix."""


def _row(secret: Content, now: float) -> Cells:
    return [name_of(secret), secret.get("type") or "Opaque", len(secret.get("data") or ()), age(secret, now)]


class SecretStrategy(Strategy):
    counted_by_name = True
    printer = printer("Name | Type | Data# | Age", _row)

    def initialise(self, content: Content) -> None:
        """`stringData` is write-only: it is encoded into `data`."""
        plain = content.pop("stringData", None)
        if isinstance(plain, dict) and plain:
            encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in plain.items()}
            content["data"] = {**(content.get("data") or {}), **encoded}
        content.setdefault("type", "Opaque")

    def restore(self, content: Content, old: Content, subresource: str) -> None:
        self.initialise(content)

    def stored_problems(self, content: Content, old: Content | None) -> Iterable[Problem]:
        return _problems(content, old or {})


def _problems(content: Content, old: Content) -> Iterator[Problem]:
    data = content.get("data") or {}
    for key in data:
        yield from key_problems("data", key)
    if sum(map(decoded_size, data.values())) > MAX_DATA:
        yield too_long("data", MAX_DATA)
    if old and content.get("type") != old.get("type"):
        yield invalid("type", content.get("type"), "field is immutable")
    yield from _type_problems(content, data)
    yield from immutable_problems(content, old, ("data",))


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


KIND = builtin("", "secrets", "Secret", selectable_fields=fields("type"), strategy=SecretStrategy())
