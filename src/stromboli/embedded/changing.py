"""How the body of a PATCH changes an object. The one place that asks for patches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import yaml

from stromboli.embedded.errors import Refusal, bad_request
from stromboli.embedded.kinds import Kind

Content = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def body(data: bytes, content_type: str) -> Any:
    """What was sent, decoded."""
    try:
        if content_type in ("application/yaml", APPLY):
            return yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if content_type in ("", "application/json", MERGE, STRATEGIC, JSON_PATCH):
            return msgspec.json.decode(data)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise bad_request(f"error decoding the body: {str(error)[:500]}") from None
    raise Refusal(415, f"the body of the request was in an unknown format: {content_type[:100]}")


def change(
    kind: Kind, data: bytes, content_type: str, manager: str, force: bool
) -> Callable[[Content], Content]:
    """What a patch makes of an object."""
    patch = body(data, content_type)

    def changed(content: Content) -> Content:
        merged = _merged(content, patch)
        if not isinstance(merged, dict):
            raise bad_request("the patch leaves no object")
        return merged

    return changed


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
