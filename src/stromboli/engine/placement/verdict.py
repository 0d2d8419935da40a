"""Why a task was not placed: the nodes per reason, the plugin that refuses, and whether evicting could help."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stromboli.api import names
from stromboli.model.remedy import NO_REMEDY, Remedy, RemedyText, Why

if TYPE_CHECKING:
    from stromboli.engine.placement.node_functions import Refusal
    from stromboli.model.cluster import Refused

FIT = "resources"
"""The plugin name of the engine's own fit test."""
INSUFFICIENT = "Insufficient"
"""The code of its refusals; `Reason.dim` has the resource."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, and the number of nodes that gave it."""

    text: str
    """The text for users, such as `Insufficient cpu`."""
    nodes: int
    """The number of nodes that gave it."""
    plugin: str
    """The plugin that refused, or `resources` for the engine's own fit test."""
    curable: bool
    """Whether evicting pods could change it."""
    remedy: Remedy = field(default=NO_REMEDY, compare=False)
    """What would help the task."""
    dim: int | None = None
    """The resource of which the node has too little, if the engine's own fit test refused."""
    code: str = ""
    """One word for programs, if the plugin gave one."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a task was not placed: a sentence, or a count of reasons over nodes."""

    nodes: int = 0
    """The number of nodes that were evaluated."""
    reasons: tuple[Reason, ...] = ()
    """The reasons of the nodes; each node counts for its first reason."""
    hopeless: NDArray[np.bool_] | None = None
    """Nodes on which evicting would not help, by row."""
    why: Why | None = None
    """What refuses the task as a whole, instead of counts."""
    unmet: bool = False
    """Whether that is a requirement which cannot be met on any node."""
    dim: int | None = None
    """The resource that is short, if that is the answer."""
    hyper_node: str = ""
    """The HyperNode whose nodes were evaluated; empty if all nodes were."""

    @property
    def text(self) -> str:
        """A sentence instead of counts; empty if there are counts."""
        return self.why.message if self.why else ""

    @property
    def message(self) -> str:
        """The message in Kubernetes' format: `0/5 nodes are unavailable: 3 Insufficient cpu, ...`."""
        if self.text:
            return self.text
        base = names.NODES_UNAVAILABLE.format(count=self.nodes)
        if self.hyper_node:
            base = names.IN_HYPER_NODE.format(name=self.hyper_node, message=base)
        if not self.reasons:
            return base
        counts = self.histogram()
        listed = sorted(names.REASON_COUNT.format(count=counts[text], reason=text) for text in counts)
        return f"{base}: {', '.join(listed)}."

    @property
    def as_reasons(self) -> tuple[Reason, ...]:
        """The reasons of nodes, or the sentence as the only reason."""
        why = self.why or Why("")
        return self.reasons or (Reason(why.message, 0, "", False, why.remedy, self.dim, why.code),)

    def histogram(self) -> dict[str, int]:
        """Nodes per reason text."""
        counts: dict[str, int] = {}
        for reason in self.reasons:
            counts[reason.text] = counts.get(reason.text, 0) + reason.nodes
        return counts

    @property
    def dominant(self) -> Reason | None:
        """The reason of the most nodes."""
        return max(self.reasons, key=lambda reason: (reason.nodes, reason.text), default=None)


def verdict_everywhere(refusal: Refusal, nodes: int) -> Verdict:
    """The same refusal on every node."""
    reason = Reason(refusal.reason, nodes, refusal.plugin, refusal.curable, refusal.remedy, code=refusal.code)
    hopeless = None if refusal.curable else np.ones(nodes, dtype=bool)
    return Verdict(nodes, (reason,), hopeless=hopeless)


def verdict_text(text: str, remedy: RemedyText | Remedy = "") -> Verdict:
    """A verdict that is a plain sentence."""
    return Verdict(why=Why(text, remedy))


def verdict_of(refused: Refused) -> Verdict:
    """Why a task was not moved onto the node that was chosen for it."""
    return Verdict(why=Why(refused.why, refused.remedy, refused.code))
