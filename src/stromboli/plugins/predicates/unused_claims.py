"""Allocations that nobody uses and nobody else would take back: of pods that were not placed after all.

A claim may be left allocated when a scheduler dies between claim and bind, or when the rest of a gang found no room
on the node of the claim. Kubernetes' scheduler gives such claims up one by one when a pod of theirs fails (PostFilter).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stromboli.api import device_messages as messages
from stromboli.engine.decisions import ReleaseClaim
from stromboli.model.devices.task_claims import task_claims
from stromboli.model.job import JobId
from stromboli.model.status import Status

if TYPE_CHECKING:
    from stromboli.api.types.devices import ConsumerReference, ResourceClaim
    from stromboli.engine.session import Session
    from stromboli.model.devices.claim_use import ClaimUse

PAUSE = 30.0
"""Seconds after which a release is decided once more, if the claim still is as it was."""


class UnusedClaims:
    """Decides which claims are to lose their devices."""

    def __init__(self) -> None:
        self._decided: dict[str, tuple[str, float]] = {}
        """The version of claims whose release was decided, and when, by their keys."""

    def release(self, session: Session) -> None:
        """Release what was allocated for pods that have no place when the cycle ends."""
        unused = session.cluster.devices.unused
        if not unused:
            self._decided.clear()
            return
        unreachable = set(_unreachable(session))
        for use in list(unused):
            if use.object is not None and _is_abandoned(session, use, use.object, use in unreachable):
                self._decide(session, use, use.object)
        self._decided = {
            key: known for key, known in self._decided.items() if key in session.cluster.devices.claims
        }

    def _decide(self, session: Session, use: ClaimUse, claim: ResourceClaim) -> None:
        meta = claim.metadata
        version, at = self._decided.get(use.key, ("", 0.0))
        if version == meta.resource_version and session.now < at + PAUSE:
            return
        self._decided[use.key] = (meta.resource_version, session.now)
        session.decisions.append(
            ReleaseClaim(meta.namespace, meta.name, meta.uid, meta.resource_version, delete=use.is_extended)
        )


def _is_abandoned(session: Session, use: ClaimUse, claim: ResourceClaim, unreachable: bool) -> bool:
    """Whether all who reserved a claim wait without a place; if nobody did, whether it keeps a pod from its nodes."""
    if claim.metadata.deletion_timestamp is not None:
        return False
    if use.is_extended:
        return _waits(session, use.controller)
    reserved = claim.status.reserved_for
    if not reserved:
        return unreachable
    return all(_consumer_waits(session, claim.namespace, consumer) for consumer in reserved)


def _consumer_waits(session: Session, namespace: str, consumer: ConsumerReference) -> bool:
    if consumer.resource == "pods":
        return _waits(session, consumer.uid)
    job = session.cluster.jobs.get(JobId("NativePodGroup", namespace, consumer.name))
    return (
        job is not None
        and bool(job.tasks)
        and job.group is not None
        and job.group.metadata.uid == consumer.uid
        and all(task.status is Status.PENDING for task in job.tasks.values())
    )


def _waits(session: Session, uid: str) -> bool:
    """Whether a pod of ours has no place; pods of other schedulers are not known to us while they wait."""
    task = session.cluster.tasks.get(uid)
    return task is not None and task.ours and task.status is Status.PENDING


def _unreachable(session: Session) -> Iterator[ClaimUse]:
    """Allocated claims that kept a pod from nodes in this cycle."""
    for verdicts in session.attempts.verdicts.values():
        for task, verdict in verdicts.items():
            if task.claims and any(reason.text == messages.NOT_AVAILABLE for reason in verdict.reasons):
                yield from task_claims(session.cluster.devices, task)
