"""What a task is given for a claim that waits for its first pod: a volume, or a new one on its node."""

from __future__ import annotations

from stromboli.model.ledgers import Grant

BIND_TIMEOUT = 600
"""Default seconds until a claim must be bound."""


class VolumeGrant(Grant, frozen=True):
    """How one unbound claim of a task gets its volume; a task has a grant for each of its claims.

    Before the pod is bound, either the volume gets this claim as its `claimRef`, or the claim gets the node of the
    bind as its `selected-node`; the pod is bound once the claim is. Pods that share a claim hold equal grants, so
    writing one that is written already changes nothing.
    """

    namespace: str
    """The namespace of the claim."""
    claim: str
    """The name of the claim."""
    claim_uid: str
    """The uid of the claim, to exclude another claim of the same name."""
    volume: str = ""
    """The name of the PersistentVolume that it is bound to; empty: one is provisioned on the node."""
    timeout: int = BIND_TIMEOUT
    """How many seconds it may take until the claim is bound (`volumebinding.bindTimeoutSeconds`)."""

    @property
    def needs_write(self) -> bool:
        return True
