"""OpenAPI documents of all registered kinds."""

from __future__ import annotations

from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind_registry import KindRegistry
from stromboli.embedded.patching.patch_request import accepted_patch_types
from stromboli.embedded.schemas import openapi
from stromboli.embedded.schemas.openapi import Resource

ROOT = "/openapi/"
_V3 = f"{ROOT}v3"


class OpenApiDocuments:
    """The documents below /openapi, cached until a kind is registered or unregistered."""

    def __init__(self, registry: KindRegistry):
        self._registry = registry
        self._resources: tuple[Resource, ...] = ()
        self._generation = -1

    def document(self, path: str, accept: str) -> tuple[bytes, str] | None:
        """A document and its content type; None if there is no such path."""
        if self._generation != self._registry.generation:
            self._resources = tuple(self._served_resources())
            self._generation = self._registry.generation
        if path == f"{ROOT}v2":
            if any(media_type in accept for media_type in openapi.PROTOBUF_ACCEPTED):
                return openapi.v2_protobuf(self._resources), openapi.PROTOBUF
            return openapi.v2(self._resources), "application/json"
        if path == _V3:
            return openapi.index(self._resources), "application/json"
        document = openapi.document(self._resources, path.removeprefix(f"{_V3}/"))
        return None if document is None else (document, "application/json")

    def _served_resources(self) -> list[Resource]:
        return [
            Resource(
                api_version=kind.api_version,
                kind=kind.kind,
                plural=kind.plural,
                namespaced=kind.namespaced,
                schema=object_schemas.schema(kind),
                patch_types=accepted_patch_types(kind.definition is None),
            )
            for kind in self._registry
        ]
