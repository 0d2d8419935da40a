"""OpenAPI documents of whatever kinds the server has at the moment."""

from __future__ import annotations

from stromboli.embedded.kinds import object_schemas
from stromboli.embedded.kinds.kind_registry import Registry
from stromboli.embedded.patching.patch_request import accepted_patch_types
from stromboli.embedded.schemas import openapi
from stromboli.embedded.schemas.openapi import Resource

ROOT = "/openapi/"
_V3 = f"{ROOT}v3"


class Documents:
    """Answers below /openapi, kept until a kind comes or goes."""

    def __init__(self, registry: Registry):
        self._registry = registry
        self._resources: tuple[Resource, ...] = ()
        self._generation = -1

    def document(self, path: str, accept: str) -> tuple[bytes, str] | None:
        """What is asked for and its content type; None where there is nothing."""
        if self._generation != self._registry.generation:
            self._resources = tuple(self._known())
            self._generation = self._registry.generation
        if path == f"{ROOT}v2":
            if any(one in accept for one in openapi.PROTOBUF_ACCEPTED):
                return openapi.v2_protobuf(self._resources), openapi.PROTOBUF
            return openapi.v2(self._resources), "application/json"
        if path == _V3:
            return openapi.index(self._resources), "application/json"
        found = openapi.document(self._resources, path.removeprefix(f"{_V3}/"))
        return None if found is None else (found, "application/json")

    def _known(self) -> list[Resource]:
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
