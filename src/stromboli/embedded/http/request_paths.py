"""What a URL refers to: a kind, a namespace, a name, a subresource, and the verb."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

from stromboli.embedded.api_status import StatusError
from stromboli.embedded.kinds.builtin_kinds import strategy_of
from stromboli.embedded.kinds.kind import Kind
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.kinds.status_errors import no_such_resource
from stromboli.embedded.rbac.policy_rules import Attributes
from stromboli.embedded.store.query_selectors import parse_fields

_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "POST": "create"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")


class RequestInfo(NamedTuple):
    kind: Kind
    namespace: str
    name: str
    subresource: str
    verb: str

    def attributes(self, field_selector: str = "") -> Attributes:
        """What the authorizer is asked; a list or watch of one name needs the right on that name alone."""
        kind = self.kind
        name = _selected_name(field_selector) if self.verb in ("list", "watch") else self.name
        return Attributes(self.verb, kind.group, kind.plural, self.subresource, name, self.namespace)


def _selected_name(field_selector: str) -> str:
    """The one name that a field selector lets through; a selector that is malformed is refused later."""
    with suppress(StatusError):
        for term in parse_fields(field_selector):
            if term.path == "metadata.name" and term.equal:
                return term.value
    return ""


def parse_request(path: str, method: str, watch: bool, registry: KindRegistry) -> RequestInfo:
    """Of a path below /api or /apis; an error if there is no such resource, or not with this method."""
    segments = [unquote(segment) for segment in path.strip("/").split("/")]
    if segments[0] == "api":
        group, version, rest = "", segments[1], segments[2:]
    else:
        group, version, rest = segments[1], segments[2], segments[3:]
    namespace = ""
    of_namespace = len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES
    if len(rest) >= 3 and rest[0] == "namespaces" and not of_namespace:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    kind = registry.find(group, version, plural)
    if kind is None and method == "POST" and (refused := strategy_of(f"{plural}.{group}").refusal):
        raise StatusError(
            403, f"{plural}.{group} is forbidden: {refused}"
        )  # in versions that are not served, too
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced) or not all(rest):
        raise no_such_resource()
    if subresource and kind.subresource(subresource) is None:
        raise no_such_resource()
    verb = _verb(kind, namespace, name, subresource, method, watch)
    return RequestInfo(kind, namespace, name, subresource, verb)


def _verb(kind: Kind, namespace: str, name: str, subresource: str, method: str, watch: bool) -> str:
    verb = (_OBJECT_VERBS if name else _COLLECTION_VERBS).get("GET" if method == "HEAD" else method, "")
    if verb == "list" and watch:
        verb = "watch"
    entry = kind.subresource(subresource) if subresource else None
    allowed = entry.verbs if entry else kind.verbs
    needs_namespace = name or verb in ("create", "deletecollection")
    lacks_namespace = kind.namespaced and not namespace and needs_namespace
    if verb not in allowed or lacks_namespace or (verb == "create" and name and not subresource):
        raise StatusError(405, "the server does not allow this method on the requested resource", details={})
    return verb
