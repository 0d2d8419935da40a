"""HyperNodes as a source discovered them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stromboli.api.types.scheduling import ExactMatch, HyperNodeMember, MemberSelector

MAX_HYPER_NODES = 20_000
"""Of one source."""


class DiscoveryFailed(Exception):
    """A source did not say what the network looks like, or not in a way that can be used; nothing is changed."""


@dataclass(frozen=True, slots=True)
class DiscoveredHyperNode:
    """What a HyperNode should be."""

    name: str
    tier: int
    members: tuple[HyperNodeMember, ...]
    tier_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def spec(self) -> dict[str, Any]:
        """As JSON, for a creation or a merge patch."""
        members = [
            {"type": member.type, "selector": {"exactMatch": {"name": member.selector.exact_name}}}
            for member in self.members
        ]
        return {"tier": self.tier, "tierName": self.tier_name or None, "members": members}


def exact_members(type: Literal["Node", "HyperNode"], names: Iterable[str]) -> tuple[HyperNodeMember, ...]:
    """Members by name, each once, in order."""
    return tuple(
        HyperNodeMember(type, MemberSelector(exact_match=ExactMatch(name))) for name in sorted(set(names))
    )


def member_names(members: Iterable[HyperNodeMember]) -> set[str]:
    """The names of those members that are given by name."""
    return {member.selector.exact_name for member in members if member.selector.exact_match is not None}


def check_count(count: int) -> None:
    if count > MAX_HYPER_NODES:
        raise DiscoveryFailed(f"{count} HyperNodes, and at most {MAX_HYPER_NODES} of a source are kept")
