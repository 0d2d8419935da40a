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
    required: bool
    """Whether a node without the driver cannot have them."""
    fresh: int
    """How many of them no node has attached."""
    handles: tuple[str, ...]
    """Those that some node has attached."""


class VolumeDemand(NamedTuple):
    """All that filters read of a task's volumes; its own disks are part of its shape."""

    bound: tuple[str, ...] = ()
    """The volumes of its bound claims that have a node affinity."""
    zoned: tuple[str, ...] = ()
    """The volumes that its claims name and that lie in zones; those of ephemeral volumes are not looked at."""
    lost: bool = False
    """Whether a claim is bound to a volume that does not exist."""
    missing: str = ""
    """Which of its claims does not exist, as users read it; empty: all do."""
    delayed: tuple[DelayedClaim, ...] = ()
    """Its claims that wait for it, the smallest first."""
    attachments: tuple[AttachmentDemand, ...] = ()
    rivals: tuple[str, ...] = ()
    """Its claims for a single pod that another pod uses, as `namespace/name`."""


NO_VOLUMES = VolumeDemand()
