"""Volumes: a claim gets its volume, or a node on which one is provisioned, and the pod is bound once the claim is.

When a gang is given up, a volume that is not bound to its claim yet gets back the `claimRef` that it had, and a
claim whose provisioning has not begun loses its `selected-node`. What a controller has taken up already stays as it
is: the claim will be bound, and the pod placed where its volume is. (kube-scheduler takes nothing back.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from stromboli.api import names
from stromboli.api.selectors import matches_node_term
from stromboli.api.types.storage import PersistentVolume, PersistentVolumeClaim
from stromboli.engine.decisions import Bind
from stromboli.model.volumes.volume_grant import VolumeGrant
from stromboli.scheduler.writes.prebind.grant_writer import (
    LOOK_AGAIN,
    AwaitedObjects,
    GrantObjects,
    Json,
    annotations_of,
    uid_of,
)
from stromboli.scheduler.writes.write_orders import GangMember, PreBindFailed

_PROVISIONERS = (names.STORAGE_PROVISIONER, names.OLD_STORAGE_PROVISIONER)
"""Annotations by which a controller hands a claim over to its provisioner."""

REPORTED_AFTER = 5.0
"""Seconds after which an event of a pod reports what it waits for."""


class VolumeWrites:
    """Writes `VolumeGrant`s."""

    doing = "binding volumes: "

    def __init__(
        self,
        objects: GrantObjects,
        awaited: AwaitedObjects,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[Bind, str], None] = lambda bind, text: None,
    ):
        """`report` writes an event of a pod that waits for a volume."""
        self._report = report
        self._objects = objects
        self._awaited = awaited
        self._clock = clock

    async def write(self, member: GangMember, bind: Bind, grant: VolumeGrant) -> None:
        if grant.volume:
            await self._reserve_volume(member, grant)
        else:
            await self._select_node(member, bind, grant)

    # -- a volume that exists

    async def _reserve_volume(self, member: GangMember, grant: VolumeGrant) -> None:
        if _is_bound(await self._claim(grant)):
            return  # perhaps to another volume: what matters is whether the node can reach that one
        volume = await self._objects.read(PersistentVolume, "", grant.volume)
        if volume is None:
            raise PreBindFailed(f'pv "{grant.volume}" is gone')
        before = volume["spec"].get("claimRef")
        if _is_reserved(before, grant):
            return
        if before and not _is_pre_bound(before, grant):
            holder = f"{before.get('namespace')}/{before.get('name')}"
            raise PreBindFailed(f'pv "{grant.volume}" was claimed by {holder} meanwhile')
        reference = {"namespace": grant.namespace, "name": grant.claim, "uid": grant.claim_uid}
        changes: Json = {
            "spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}}
        }
        if not before:
            changes["metadata"] = {"annotations": {names.BOUND_BY_CONTROLLER: "yes"}}
        member.take_back.append(partial(self._give_back_volume, grant, before))
        await self._objects.patch(PersistentVolume, volume, changes)

    async def _give_back_volume(self, grant: VolumeGrant, before: Json | None) -> None:
        volume = await self._objects.read(PersistentVolume, "", grant.volume)
        if volume is None or not _is_reserved(volume["spec"].get("claimRef"), grant):
            return
        claim = await self._find_claim(grant)
        bound_to = claim["spec"].get("volumeName") if claim is not None else None
        if volume.get("status", {}).get("phase") == "Bound" or bound_to == grant.volume:
            return
        if before:
            reference: Json | None = dict.fromkeys(volume["spec"]["claimRef"]) | before
            await self._objects.patch(PersistentVolume, volume, {"spec": {"claimRef": reference}})
            return
        annotations = {names.BOUND_BY_CONTROLLER: None}
        changes: Json = {"metadata": {"annotations": annotations}, "spec": {"claimRef": None}}
        await self._objects.patch(PersistentVolume, volume, changes)

    # -- a volume that is to be provisioned

    async def _select_node(self, member: GangMember, bind: Bind, grant: VolumeGrant) -> None:
        claim = await self._claim(grant)
        selected = annotations_of(claim).get(names.SELECTED_NODE, "")
        if selected == bind.node or _is_bound(claim):
            return
        if selected:
            raise PreBindFailed(f'PVC "{grant.claim}" was given node {selected} meanwhile')
        member.take_back.append(partial(self._deselect_node, bind.node, grant))
        changes = {"metadata": {"annotations": {names.SELECTED_NODE: bind.node}}}
        await self._objects.patch(PersistentVolumeClaim, claim, changes)

    async def _deselect_node(self, node: str, grant: VolumeGrant) -> None:
        claim = await self._find_claim(grant)
        if claim is None or claim["spec"].get("volumeName"):
            return
        annotations = annotations_of(claim)
        begun = any(key in annotations for key in _PROVISIONERS)
        if annotations.get(names.SELECTED_NODE) == node and not begun:
            changes = {"metadata": {"annotations": {names.SELECTED_NODE: None}}}
            await self._objects.patch(PersistentVolumeClaim, claim, changes)

    async def _claim(self, grant: VolumeGrant) -> Json:
        claim = await self._find_claim(grant)
        if claim is None:
            raise PreBindFailed(f'persistentvolumeclaim "{grant.claim}" is gone')
        return claim

    async def _find_claim(self, grant: VolumeGrant) -> Json | None:
        claim = await self._objects.read(PersistentVolumeClaim, grant.namespace, grant.claim)
        return claim if claim is not None and uid_of(claim) == grant.claim_uid else None

    # -- what has to come

    async def time_to_wait(self, member: GangMember, bind: Bind, grant: VolumeGrant) -> float:
        self._expect(member, bind, grant)
        claim = await self._claim(grant)
        look_again = LOOK_AGAIN
        if _is_bound(claim):
            if await self._is_reachable(member, bind, claim["spec"]["volumeName"]):
                return 0.0
            look_again = 1.0
        else:
            await self._check_progress(claim, bind, grant)
            look_again = self._report_late(member, bind, grant, claim)
        left = member.waiting_since + grant.timeout - self._clock()
        if left <= 0:
            raise PreBindFailed(f'PVC "{grant.claim}" was not bound within {grant.timeout} seconds')
        return min(left, look_again)

    def _report_late(self, member: GangMember, bind: Bind, grant: VolumeGrant, claim: Json) -> float:
        """Report once what a pod waits for if that takes long; return the seconds after which to look again."""
        if member.reported:
            return LOOK_AGAIN
        left = member.waiting_since + REPORTED_AFTER - self._clock()
        if left > 0:
            return left
        member.reported = True
        self._report(bind, _what_is_awaited(bind, grant, claim))
        return LOOK_AGAIN

    async def _check_progress(self, claim: Json, bind: Bind, grant: VolumeGrant) -> None:
        """Whether what was written is still there, so that the claim will be bound."""
        if grant.volume:
            volume = await self._objects.read(PersistentVolume, "", grant.volume)
            if volume is None or not _is_reserved(volume["spec"].get("claimRef"), grant):
                raise PreBindFailed(f'ClaimRef got reset for pv "{grant.volume}"')
        elif annotations_of(claim).get(names.SELECTED_NODE) != bind.node:
            raise PreBindFailed(f'provisioning failed for PVC "{grant.claim}"')

    def _expect(self, member: GangMember, bind: Bind, grant: VolumeGrant) -> None:
        def is_of_interest(claim: PersistentVolumeClaim, gone: bool) -> bool:
            annotations = claim.metadata.annotations
            waits = bool(grant.volume) or annotations.get(names.SELECTED_NODE) == bind.node
            return gone or not waits or (bool(claim.spec.volume_name) and names.BIND_COMPLETED in annotations)

        self._awaited.expect(
            member.key, PersistentVolumeClaim, f"{grant.namespace}/{grant.claim}", is_of_interest
        )
        if grant.volume:
            self._awaited.expect(
                member.key,
                PersistentVolume,
                grant.volume,
                lambda volume, gone: gone or volume.spec.claim_ref is None,
            )

    async def _is_reachable(self, member: GangMember, bind: Bind, name: str) -> bool:
        """Whether the volume of a bound claim is there; it must be reachable from the node."""
        volume = await self._objects.decoded(PersistentVolume, "", name)
        node = member.node
        if volume is None or node is None:
            return volume is not None
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return True
        labels = node.metadata.labels
        if any(matches_node_term(term, labels, "") for term in affinity.required.node_selector_terms):
            return True
        raise PreBindFailed(
            f'pv "{name}" cannot be reached from node {bind.node}: its node affinity does not match'
        )


def _what_is_awaited(bind: Bind, grant: VolumeGrant, claim: Json) -> str:
    """`waits for PersistentVolumeClaim data of class fast to be provisioned by disk.example.com on node n1`."""
    awaited = f"waits for PersistentVolumeClaim {grant.claim}"
    if grant.volume:
        return f"{awaited} to be bound to PersistentVolume {grant.volume}"
    if name := claim["spec"].get("storageClassName"):
        awaited += f" of class {name}"
    annotations = annotations_of(claim)
    provisioner = next((annotations[key] for key in _PROVISIONERS if key in annotations), "")
    by = f" by {provisioner}" if provisioner else ""
    return f"{awaited} to be provisioned{by} on node {bind.node}"


def _is_reserved(reference: Json | None, grant: VolumeGrant) -> bool:
    return reference is not None and _is_pre_bound(reference, grant) and bool(reference.get("uid"))


def _is_pre_bound(reference: Json | None, grant: VolumeGrant) -> bool:
    """Whether a volume is meant for the claim, by name and, if it is said, by uid."""
    if not reference:
        return False
    names_claim = (reference.get("namespace"), reference.get("name")) == (grant.namespace, grant.claim)
    return names_claim and reference.get("uid", "") in ("", grant.claim_uid)


def _is_bound(claim: Json) -> bool:
    return bool(claim["spec"].get("volumeName")) and names.BIND_COMPLETED in annotations_of(claim)
