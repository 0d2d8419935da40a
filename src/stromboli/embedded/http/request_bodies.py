"""How the body of a request becomes an object, and how a patch changes one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any, ParamSpec, TypeVar

import msgspec

from stromboli.api.errors import Unreadable
from stromboli.api.manifests.yaml_documents import documents
from stromboli.embedded import protobuf
from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.field_managers import writer
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.status_errors import Refusal, bad_request
from stromboli.embedded.patching.patch_errors import PatchError, check_depth
from stromboli.embedded.patching.patch_request import APPLY, JSON, MERGE, STRATEGIC, check_media, patched
from stromboli.embedded.patching.server_side_apply import apply

P = ParamSpec("P")
T = TypeVar("T")
Content = dict[str, Any]
Change = Callable[[Content], Content]
_YAML = ("application/yaml", APPLY)


def body(data: bytes, content_type: str) -> Any:
    """What was sent, decoded."""
    try:
        if content_type == protobuf.MEDIA:
            return protobuf.read(data)
        if content_type in _YAML and not data.lstrip().startswith(b"{"):
            return _checked(_only(list(islice(documents(data.decode()), 2))))
        if content_type in ("", "application/json", *_YAML, MERGE, STRATEGIC, JSON):
            return _checked(msgspec.json.decode(data))
    except (ValueError, RecursionError, Unreadable) as error:
        raise bad_request(f"error decoding the body: {str(error)[:500]}") from None
    raise Refusal(415, f"the body of the request was in an unknown format: {content_type[:100]}")


def _only(found: list[Any]) -> Any:
    if len(found) != 1:
        raise bad_request(f"the body must hold one document, not {len(found) or 'none'}")
    return found[0]


def _checked(content: Any) -> Any:
    try:
        check_depth(content, "body")
    except PatchError as error:
        raise bad_request(error.message) from None
    return content


def change(kind: Kind, data: bytes, content_type: str) -> Change:
    """What a patch makes of an object."""
    with_refusals(check_media)(content_type, kind.definition is None)
    patch = body(data, content_type)
    return lambda content: with_refusals(patched)(content, patch, content_type, object_schemas.schema(kind))


def applied(
    kind: Kind, data: bytes, manager: str, force: bool, part: str
) -> Callable[[Content | None], Content]:
    """What applying a configuration makes of an object, or of nothing."""
    config = body(data, APPLY)
    _check_fields(kind, config)
    who = writer(kind, manager, part)
    return lambda content: with_refusals(apply)(content, config, object_schemas.schema(kind), who, force)


def _check_fields(kind: Kind, config: Any) -> None:
    """What is applied has an owner for each field, so each must exist."""
    unknown = object_schemas.unknown(kind, config)
    if unknown:
        given = config.get("metadata")
        meta = given if isinstance(given, dict) else {}
        what = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {kind.group}/{kind.version}, Kind={kind.kind}"
        listed = ", ".join(f".{path}: field not declared in schema" for path in unknown[:20])
        raise bad_request(f"failed to create typed patch object ({what}): {listed}")


def with_refusals(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, whose complaints about a patch are answers to a request."""

    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except PatchError as error:
            details = {"causes": error.causes} if error.causes else None
            raise Refusal(error.code, error.message, error.reason, details) from None

    return called
