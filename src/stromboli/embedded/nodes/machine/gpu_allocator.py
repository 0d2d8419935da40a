"""Which pod has which cards: no card is ever given to two pods, and none is lost. Pure bookkeeping, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from stromboli.api import names
from stromboli.api.resources.quantity import whole
from stromboli.embedded.nodes.node_types import Content, NodePod

Division = dict[str, tuple[str, ...]]
"""The UUIDs of cards, by the name of the container."""


class GpusUnavailable(Exception):
    """A pod cannot have its cards; `temporary` if it may have them later: their holders are about to end, say."""

    def __init__(self, message: str, temporary: bool) -> None:
        super().__init__(message)
        self.temporary = temporary


@dataclass(slots=True, eq=False)
class GpuGrant:
    """The cards of a pod, until it is released."""

    uid: str
    pod: str
    containers: Division = field(default_factory=dict)
    leaving: bool = False
    """The pod is gone or from a former run, but its processes may still be there."""

    @property
    def cards(self) -> frozenset[str]:
        return frozenset(card for cards in self.containers.values() for card in cards)


class GpuAllocator:
    """Gives the cards of this machine to pods."""

    def __init__(self, cards: Iterable[str] = ()) -> None:
        self.cards = tuple(cards)
        """Those that work, in the order in which they are given out. Cards of grants may be missing."""
        self.grants: list[GpuGrant] = []

    def allocate(self, pod: NodePod, elsewhere: Collection[str] = ()) -> GpuGrant:
        """`GpusUnavailable` if there are not enough; cards that are used `elsewhere` are waited for."""
        free = [card for card in self._free(self.grants) if card not in elsewhere]
        division = divide(pod, free)
        if division is None:
            soon = self._free(grant for grant in self.grants if not grant.leaving)
            if divide(pod, soon) is None:
                raise GpusUnavailable(_shortage(pod, len(free)), temporary=False)
            raise GpusUnavailable(self._holders(elsewhere), temporary=True)
        grant = GpuGrant(pod.uid, pod.key, division)
        self.grants.append(grant)
        return grant

    def release(self, grant: GpuGrant) -> None:
        """No process of the pod is left."""
        if grant in self.grants:
            self.grants.remove(grant)

    def _holders(self, elsewhere: Collection[str]) -> str:
        leaving = ", ".join(grant.pod for grant in self.grants if grant.leaving)
        reasons = [f"processes of {leaving} hold {names.NVIDIA_GPU} and are ending"] if leaving else []
        if elsewhere:
            reasons.append(f"pods of another cluster of yours have {', '.join(sorted(elsewhere))}")
        return "; ".join(reasons)

    def _free(self, grants: Iterable[GpuGrant]) -> list[str]:
        held = {card for grant in grants for card in grant.cards}
        return [card for card in self.cards if card not in held]


def gpu_count(container: Content) -> int:
    """The cards that a container asks for."""
    resources = container.get("resources") or {}
    for amounts in (resources.get("limits"), resources.get("requests")):
        if amounts and amounts.get(names.NVIDIA_GPU):
            return int(whole(amounts[names.NVIDIA_GPU]))
    return 0


def asks_for_gpus(pod: NodePod) -> bool:
    return any(count for count, _ in _requests(pod))


def divide(pod: NodePod, free: list[str]) -> Division | None:
    """The cards of each container, as a kubelet gives them; None if they are too few.

    Cards of an init container are used again by those that start after its end. A sidecar and a container of the pod
    keep theirs for themselves.
    """
    if needed_gpus(pod) > len(free):
        return None
    fresh, reusable = list(free), list[str]()
    division: Division = {}
    specs = [*(pod.spec.init_containers or ()), *pod.spec.containers]
    for spec, (count, ends) in zip(specs, _requests(pod), strict=True):
        reused, reusable = reusable[:count], reusable[count:]
        new, fresh = fresh[: count - len(reused)], fresh[count - len(reused) :]
        cards = reused + new
        if ends:
            reusable = cards + reusable
        if cards:
            division[str(spec.get("name", ""))] = tuple(cards)
    return division


def needed_gpus(pod: NodePod) -> int:
    """How many cards make `divide` succeed."""
    needed = reusable = 0
    for count, ends in _requests(pod):
        reused = min(count, reusable)
        needed += count - reused
        reusable += (count if ends else 0) - reused
    return needed


def _requests(pod: NodePod) -> list[tuple[int, bool]]:
    """What containers ask for in the order of their start, and whether they end before the next starts."""
    inits = pod.spec.init_containers or ()
    return [
        *((gpu_count(spec), spec.get("restartPolicy") != names.RESTART_ALWAYS) for spec in inits),
        *((gpu_count(spec), False) for spec in pod.spec.containers),
    ]


def _shortage(pod: NodePod, free: int) -> str:
    """In the words of a kubelet."""
    return (
        f"Allocate failed due to requested number of devices unavailable for {names.NVIDIA_GPU}. "
        f"Requested: {needed_gpus(pod)}, Available: {free}, which is unexpected"
    )


# -- the variables of containers


def gpu_variables(cards: tuple[str, ...]) -> Mapping[str, str]:
    """What shows a container its cards and hides all others from CUDA; -1 is no card, and is not taken for unset."""
    return {
        "CUDA_VISIBLE_DEVICES": ",".join(cards) or "-1",
        "NVIDIA_VISIBLE_DEVICES": ",".join(cards) or "void",
    }
