"""ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.schemas.schema_problems import Problem, invalid, too_long
from stromboli.embedded.kinds.config_data import (
    MAX_DATA,
    decoded_size,
    immutable_problems,
    key_problems,
    text_size,
)
from stromboli.embedded.kinds.kind import Content, builtin
from stromboli.embedded.kinds.strategy import Strategy
from stromboli.embedded.tables.table_printer import cell_printer


def _problems(content: Content, old: Content | None) -> Iterator[Problem]:
    data, binary = content.get("data") or {}, content.get("binaryData") or {}
    for key in data:
        yield from key_problems("data", key)
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from key_problems("binaryData", key)
    if sum(map(text_size, data.values())) + sum(map(decoded_size, binary.values())) > MAX_DATA:
        yield too_long("[]", MAX_DATA)
    yield from immutable_problems(content, old or {}, ("data", "binaryData"))


_PRINTER = cell_printer(
    "Name | Data# | Age",
    lambda content: len(content.get("data") or ()) + len(content.get("binaryData") or ()),
)
KIND = builtin(
    "",
    "configmaps",
    "ConfigMap",
    "cm",
    strategy=Strategy(counted_by_name=True, printer=_PRINTER, stored_problems=_problems),
)
