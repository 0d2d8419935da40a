"""Which extended resources of a task devices have to serve: on each node those that the node does not list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.types.devices import DeviceClaim, ResourceClaimSpec
from stromboli.model.devices.extended_resources import ExtendedRequests, asked_resources, extended_requests

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Bools
    from stromboli.model.cluster import Cluster
    from stromboli.model.devices.claim_use import ClaimContent
    from stromboli.model.node_columns import Node
    from stromboli.model.shape import Shape
    from stromboli.model.task import Task


class ExtendedResources:
    """The requests of shapes, made once in a cycle."""

    def __init__(self, cluster: Cluster):
        self._cluster = cluster
        self._asked: dict[Shape, tuple[str, ...]] = {}
        self._requests: dict[tuple[Shape, tuple[str, ...]], ExtendedRequests] = {}
        self._contents: dict[ExtendedRequests, ClaimContent] = {}
        self._listed: dict[tuple[str, ...], tuple[tuple[int, int], dict[tuple[bool, ...], Bools]]] = {}

    def asked(self, task: Task) -> tuple[str, ...]:
        """The extended resources of a task that devices may serve, by name."""
        served = self._cluster.devices.extended
        if not served:
            return ()
        known = self._asked.get(task.shape)
        if known is None:
            known = self._asked[task.shape] = tuple(asked_resources(task.shape.spec, served))
        return known

    def requests(self, task: Task, node: Node) -> ExtendedRequests | None:
        """What devices of a node have to serve; none if the node lists all that is asked for."""
        return self._requests_for(task, [self._is_listed(node, name) for name in self.asked(task)])

    def _is_listed(self, node: Node, name: str) -> bool:
        dim = self._cluster.dims.index.get(name)
        return dim is not None and node.allocatable.get(dim, 0) > 0

    def _requests_for(self, task: Task, listed: list[bool]) -> ExtendedRequests | None:
        missing = tuple(name for name, has in zip(self.asked(task), listed, strict=True) if not has)
        if not missing:
            return None
        known = self._requests.get((task.shape, missing))
        if known is None:
            known = extended_requests(task.shape.spec, missing, self._cluster.devices.extended)
            self._requests[task.shape, missing] = known
        return known

    def variants(self, task: Task) -> Iterator[tuple[Bools, ExtendedRequests | None]]:
        """Nodes that list the same of what a task asks for, and what devices have to serve there."""
        for listed, rows in self._groups(self.asked(task)).items():
            yield rows, self._requests_for(task, list(listed))

    def _groups(self, asked: tuple[str, ...]) -> dict[tuple[bool, ...], Bools]:
        """Nodes by which of these resources they list."""
        columns = self._cluster.columns
        state = (columns.layout, columns.objects)
        known = self._listed.get(asked)
        if known is None or known[0] != state:
            groups: dict[tuple[bool, ...], Bools] = {}
            for row, node in enumerate(columns.nodes):
                listed = tuple([self._is_listed(node, name) for name in asked])
                if listed not in groups:
                    groups[listed] = np.zeros(len(columns), dtype=bool)
                groups[listed][row] = True
            known = self._listed[asked] = (state, groups)
        return known[1]

    def content(self, requests: ExtendedRequests) -> ClaimContent:
        """The content of a claim with these requests."""
        known = self._contents.get(requests)
        if known is None:
            spec = ResourceClaimSpec(DeviceClaim(requests.requests))
            known = self._contents[requests] = self._cluster.devices.content(spec)
        return known
