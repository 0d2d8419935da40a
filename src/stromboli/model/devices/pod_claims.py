"""The ResourceClaims that a pod names: directly, or made for it from a template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from stromboli.api.types.pod import Pod, PodResourceClaim


class PodClaim(NamedTuple):
    """An entry of `spec.resourceClaims` with the claim that it stands for."""

    name: str
    """The name of the entry in the pod."""
    claim: str
    """The name of the ResourceClaim; empty if it was not created yet."""
    template: str = ""
    """The template that it is made from; empty if the pod names the claim itself."""

    def is_entry(self, entry: PodResourceClaim) -> bool:
        """Whether a PodGroup has the same entry, so that the claim is the group's."""
        return (
            entry.name == self.name
            and (entry.resource_claim_template_name or "") == self.template
            and (bool(self.template) or entry.resource_claim_name == self.claim)
        )


def pod_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """The claims of a pod in its order, without those of which its status says that none is needed."""
    return tuple(_claims(pod)) if pod.spec.resource_claims else ()


def _claims(pod: Pod) -> Iterator[PodClaim]:
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        if entry.resource_claim_name is not None:
            yield PodClaim(entry.name, entry.resource_claim_name)
            continue
        made = generated.get(entry.name, "")
        if made is not None:
            yield PodClaim(entry.name, made, entry.resource_claim_template_name or "")
