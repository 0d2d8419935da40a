"""What ConfigMaps and Secrets share: their keys, the bytes of all values, and what may not change."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from stromboli.api.schemas.schema_problems import Problem, forbidden, invalid
from stromboli.embedded.kinds.strategy import Content

MAX_DATA = 1024 * 1024
"""Bytes of all values of a ConfigMap or Secret together, decoded."""
_MAX_KEY = 253
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME', "
    " or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def key_problems(field: str, key: str) -> Iterator[Problem]:
    """Keys are names of files."""
    path = f"{field}[{key}]"
    if len(key) > _MAX_KEY:
        yield invalid(path, key, f"must be no more than {_MAX_KEY} characters")
    if not _KEY.fullmatch(key):
        yield invalid(path, key, _KEY_RULE)
    if key in (".", ".."):
        yield invalid(path, key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield invalid(path, key, "must not start with '..'")


def text_size(text: Any) -> int:
    return len(text.encode(errors="surrogatepass")) if isinstance(text, str) else 0


def decoded_size(encoded: Any) -> int:
    return len(base64.b64decode(encoded)) if isinstance(encoded, str) else 0


def immutable_problems(content: Content, old: Content, fields: tuple[str, ...]) -> Iterator[Problem]:
    if not old.get("immutable"):
        return
    for field in ("immutable", *fields):
        if (content.get(field) or None) != (old.get(field) or None):
            yield forbidden(field, "field is immutable when `immutable` is set")
