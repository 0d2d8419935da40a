"""What clients learn of groups and kinds."""

import json

import pytest

from stromboli.api.schemas.volcano_definitions import volcano_definitions
from stromboli.embedded.http.discovery import AGGREGATED, discovery_document
from stromboli.embedded.kinds.kind_registry import KindRegistry


@pytest.mark.parametrize("accept", ["application/json", AGGREGATED])
def test_podgroups_without_a_group_are_volcanos(accept: str) -> None:
    """kubectl takes the first group that has such a resource."""
    registry = KindRegistry()
    for definition in volcano_definitions():
        registry.register_definition(definition)
    document = discovery_document(registry, "/apis", accept)
    assert document is not None
    listed = json.loads(document[0])
    groups = [
        group.get("name") or group["metadata"]["name"] for group in listed.get("groups") or listed["items"]
    ]
    assert groups.index("scheduling.volcano.sh") < groups.index("scheduling.k8s.io")
