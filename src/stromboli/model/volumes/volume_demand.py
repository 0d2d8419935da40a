"""What a pod asks of a node by its volumes, as a value: tasks with equal ones fit the same nodes."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.model.volumes.claim_kind import ClaimKind


class DelayedClaim(NamedTuple):
    """A claim that is bound when its pod is placed."""

    kind: ClaimKind
    volume: str = ""
    """The volume that is promised to it already, by its own object or for another pod; empty: none is."""
    node: str = ""
    """The node on which it is to be provisioned already; empty: on none."""


class AttachmentDemand(NamedTuple):
    """Volumes of one CSI driver that a node must attach."""

    driver: str
    plugin: str
    """The in-tree plugin that the driver took over; they count on nodes that left it to the driver."""
    required: bool
    """Whether a node without the driver cannot have them."""
    fresh: int
    """How many of them no node has attached."""
    handles: tuple[str, ...]
    """Those that some node has attached."""


class VolumeDemand(NamedTuple):
    """All that filters read of a task's volumes; its own disks are part of its shape."""

    bound: tuple[str, ...] = ()
    """The volumes of its bound claims that some nodes cannot reach."""
    lost: bool = False
    """Whether a claim is bound to a volume that does not exist."""
    delayed: tuple[DelayedClaim, ...] = ()
    """Its claims that wait for it, the smallest first."""
    attachments: tuple[AttachmentDemand, ...] = ()
    rivals: tuple[str, ...] = ()
    """Its claims for a single pod that another pod uses, as `namespace/name`."""


NO_VOLUMES = VolumeDemand()
