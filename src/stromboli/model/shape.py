"""What equal tasks share: their shape (all that filters and scores read) and their label set (what selectors match)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stromboli.api.types.pod import PodSpec
from stromboli.model.amounts import Amounts, is_empty
from stromboli.model.dimensions import CPU, MEMORY
from stromboli.model.requirements.pod_demands import spec_demands

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stromboli.model.ledgers import Ledger
    from stromboli.model.requirements.placement_requirement import Demand
    from stromboli.model.status import Weight

# The rows of the pod view: a node's sums as kube-scheduler computes them, beside Volcano's (spec 04 0.1).
VIEW_PODS, VIEW_NONZERO_CPU, VIEW_NONZERO_MEMORY, VIEW_CPU, VIEW_MEMORY, VIEW_GPU = range(6)
VIEW_ROWS = 6
HUGE = 2**46
"""Smaller amounts cannot overflow the sum of a node: it would take tens of thousands of them."""


class Shape:
    """Everything that a filter or a score may read of a task, interned: all replicas share one."""

    __slots__ = (
        "__weakref__",
        "added",
        "best_effort",
        "demands",
        "dims",
        "huge",
        "id",
        "incoming",
        "ledgers",
        "request",
        "spec",
        "vector",
        "view",
    )

    def __init__(
        self, id: int, spec: PodSpec, request: Amounts, view: tuple[int, ...], incoming: tuple[int, ...]
    ):
        self.id = id
        self.spec = spec
        """The pod's spec, without what distinguishes replicas: node name, priority, scheduling group, claims."""
        self.request = request
        """What the pod requests, with every resource that it names, even at zero."""
        self.dims: tuple[int, ...] = tuple(sorted({CPU, MEMORY, *request}))
        """The dimensions of a fit test: cpu and memory always, scalars only when named."""
        self.best_effort: bool = is_empty(request)
        """Whether the pod requests nothing."""
        self.huge: bool = any(amount > HUGE for amount in request.values())
        """Whether the sum of a node could overflow with it."""
        self.ledgers: tuple[int, tuple[Ledger, ...]] | None = None
        """The ledgers that count what its tasks hold, as of a version; None until `Cluster.ledgers_of` is called."""
        self.demands: tuple[Demand, ...] = spec_demands(spec)
        """What its spec requires of its placement and only a plugin can honour."""
        self.view: NDArray[np.int64] = np.array(view, dtype=np.int64)
        """What the pod adds to the pod view of its node."""
        self.incoming: NDArray[np.int64] = np.array(incoming, dtype=np.int64)
        """What scores add for it before it is on a node, in the rows of the pod view."""
        self.vector: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.added: dict[tuple[Weight, bool], NDArray[np.int64]] = {}
        """What a task adds to the numbers of its node, by the weight of its status and whether the pod view has it."""

    def dense(self, rows: int) -> NDArray[np.int64]:
        """The request as one column of the node columns."""
        if len(self.vector) != rows:
            self.vector = np.zeros(rows, dtype=np.int64)
            for dim, amount in self.request.items():
                self.vector[dim] = int(amount)
        return self.vector

    def __repr__(self) -> str:
        return f"Shape({self.id})"


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class LabelSet:
    """Namespace and labels, interned: what selectors of other pods match."""

    id: int
    namespace: str
    """The namespace of the pods."""
    labels: dict[str, str]
    """The labels of the pods; never change them."""

    def __repr__(self) -> str:
        return f"LabelSet({self.namespace}, {self.labels})"


class Annotations(dict[str, str]):
    """The annotations of a pod, shared by all pods with equal ones; never changed."""

    __slots__ = ("__weakref__",)
