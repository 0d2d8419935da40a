"""The claims of pods: of volumes by name and for generic ephemeral volumes."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.embedded.kinds.kind import Content
from stromboli.embedded.store.records import Record


def ephemeral_claims(pod: Content) -> Iterator[tuple[str, Content]]:
    """Names of claims that are made for volumes of this pod alone, with their templates."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if (ephemeral := volume.get("ephemeral")) is not None:
            name = f"{pod['metadata']['name']}-{volume['name']}"
            yield name, ephemeral.get("volumeClaimTemplate") or {}


def is_shut_down(pod: Content) -> bool:
    """Whether its node is done with a pod that is being deleted, or it was deleted by force."""
    meta = pod["metadata"]
    return "deletionTimestamp" in meta and meta.get("deletionGracePeriodSeconds") == 0


def claims_in_use(pod: Content) -> Iterator[str]:
    """Names of the claims that a pod keeps from going.

    It may itself wait for the claims that were made for it: they go when it was shut down.
    """
    yield from _named_claims(pod)
    if not is_shut_down(pod):
        yield from (name for name, _ in ephemeral_claims(pod))


def claim_names(pod: Content) -> Iterator[str]:
    """Names of all PersistentVolumeClaims of a pod."""
    yield from _named_claims(pod)
    yield from (name for name, _ in ephemeral_claims(pod))


def _named_claims(pod: Content) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if (source := volume.get("persistentVolumeClaim")) is not None:
            yield source["claimName"]


def has_ephemeral(pod: Record) -> bool:
    """Whether a pod may have generic ephemeral volumes, without decoding it."""
    return b'"ephemeral"' in pod.data


def may_use(pod: Record, claim: str) -> bool:
    """Whether a pod may use a claim, without decoding it: most pods do not."""
    return claim.encode() in pod.data or has_ephemeral(pod)
