"""What a URL means: a kind, a namespace, a name, a part, and what is to be done with it."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.kinds.status_errors import method_not_allowed, no_such_resource
from stromboli.embedded.rbac import Attributes

_ONE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OF_NAMESPACES = ("status", "finalize")


class Target(NamedTuple):
    """Objects that a request is about."""

    kind: Kind
    namespace: str
    name: str
    part: str
    verb: str

    @property
    def attributes(self) -> Attributes:
        """What the authorizer is asked."""
        kind = self.kind
        return Attributes(self.verb, kind.group, kind.plural, self.part, self.name, self.namespace)


def target(path: str, method: str, watching: bool, registry: Registry) -> Target:
    """Of a path below /api or /apis; a refusal if there is nothing there, or that cannot be done."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and not (len(rest) == 3 and rest[2] in _OF_NAMESPACES):
        namespace, rest = rest[1], rest[2:]
    plural, name, part = (*rest, "", "", "")[:3]
    kind = registry.find(group, version, plural)
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced) or not all(rest):
        raise no_such_resource()
    if part and kind.part(part) is None:
        raise no_such_resource()
    return Target(kind, namespace, name, part, _verb(kind, namespace, name, part, method, watching))


def _verb(kind: Kind, namespace: str, name: str, part: str, method: str, watching: bool) -> str:
    verb = (_ONE if name else _MANY).get("GET" if method == "HEAD" else method, "")
    if verb == "list" and watching:
        verb = "watch"
    held = kind.part(part) if part else None
    allowed = held.verbs if held else kind.verbs
    placeless = kind.namespaced and not namespace and (name or verb in ("create", "deletecollection"))
    if verb not in allowed or placeless or (verb == "create" and name and not part):
        raise method_not_allowed()
    return verb
