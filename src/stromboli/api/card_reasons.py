"""Why the cards of a node do not serve a pod, and what would help, in the words that users read."""

from __future__ import annotations

from typing import NamedTuple


class CardReason(NamedTuple):
    """A reason, with what is asked for in place of `{}`, and its remedy."""

    text: str
    remedy: str
    curable: bool = False
    """Whether evicting pods could change it."""

    def of(self, asked: object = "") -> str:
        return self.text.format(asked)


NO_CARDS = CardReason(
    "node(s) had registered no {} cards",
    "see that the device plugin of the cards runs on a node that has some",
)
UNREADABLE = CardReason(
    "node(s) had registered cards in a way that cannot be read",
    "kubectl describe node shows what is wrong: repair the device plugin",
)
OTHER_MODE = CardReason(
    "node(s) shared their cards in another mode than {}",
    "change the annotation volcano.sh/vgpu-mode of the pod, or the mode of the device plugin",
)
OTHER_CARD = CardReason(
    "node(s) had no card that the lists of uuids allow",
    "change volcano.sh/vgpu-use-gpuuuid or volcano.sh/vgpu-nouse-gpuuuid",
)
UNHEALTHY = CardReason(
    "node(s) had unhealthy cards",
    "kubectl describe node shows which: repair them, or restart the device plugin",
)
OTHER_TYPE = CardReason(
    "node(s) had no card of the type {}",
    "change nvidia.com/use-gputype or nvidia.com/nouse-gputype of the pod",
)
CARD_TOO_SMALL = CardReason(
    "node(s) had no card as large as {}", "request less of a card, or add nodes with larger cards"
)
FEW_CARDS = CardReason(
    "node(s) had fewer cards than {}", "request fewer cards per container, or add nodes with more"
)
EXCLUSIVE = CardReason(
    "node(s) had no card free of pods of the same deviceshare.GPUExclusiveRules",
    "wait until one of these pods ends, or add nodes with cards",
    True,
)
SHARERS = CardReason(
    "node(s) had no card with a share left",
    "wait until a pod ends, or let the device plugin split cards further",
    True,
)
SAME_GROUP = CardReason(
    "node(s) had no card without a pod of the same PodGroup",
    "add cards, or take volcano.sh/vgpu-podgroup-policy off the pods",
    True,
)
MEMORY = CardReason(
    "node(s) had no card with {} free", "wait until a pod on a card ends, or request less memory", True
)
CORES = CardReason(
    "node(s) had no card with free cores for {}",
    "wait until a pod on a card ends, or request fewer cores",
    True,
)
SLOTS = CardReason(
    "node(s) had no free MIG slot with {}", "wait until a pod on a card ends, or request less memory", True
)
IDLE_CARDS = CardReason(
    "node(s) had fewer idle cards than {}", "wait until pods with cards end, or request fewer", True
)
HELD = CardReason(
    "node(s) had no card with enough beside what is held for other pods",
    "wait until those pods have started, or until holdFor of the evicting actions is over",
    True,
)
PARTS_OF_SEVERAL = CardReason(
    "node(s) had NPUs, of which only whole ones can be given out several at a time",
    "request one NPU per container, or for all memory of each",
)
LOCKED = CardReason(
    "node(s) have been locked within 5 minutes",
    "wait until the device plugin has served the pod before: it takes the lock off",
)

NODE_LOCKED = "node {node} has been locked within 5 minutes"
NOT_SHARED = "{resource} is not shared out: the policy does not switch it on at deviceshare"
SHARE_IT = "switch it on among the arguments of deviceshare, as docs/plugins.md says"
"""Helps where NOT_SHARED."""
NO_CARD_ASKED = "{resource} asks for no card: a container must limit {count} or {memory}, too"
LIMIT_CARDS = "add that limit to the container"
"""Helps where NO_CARD_ASKED."""
LONG_LISTS = "annotations list {count} uuids and types of cards, more than {most}: list fewer or select nodes"
GONE = "no {model} cards are registered on node {node} any more"
EVENT_BAD_CARDS = "BadCards"
"""The reason of events about cards that cannot be read."""

REASONS = (
    NO_CARDS,
    UNREADABLE,
    OTHER_MODE,
    OTHER_CARD,
    UNHEALTHY,
    OTHER_TYPE,
    CARD_TOO_SMALL,
    FEW_CARDS,
    EXCLUSIVE,
    SHARERS,
    SAME_GROUP,
    MEMORY,
    CORES,
    SLOTS,
    IDLE_CARDS,
    HELD,
    PARTS_OF_SEVERAL,
    LOCKED,
)
