"""Arguments of `consolidate`: those of every evicting action, and limits on moves."""

from __future__ import annotations

from dataclasses import dataclass

from stromboli.api.go_scalars import duration
from stromboli.engine.eviction.eviction_options import EvictionOptions
from stromboli.policy.argument_checks import at_least, duration_like
from stromboli.policy.arguments import arg

_ALWAYS = (
    "Accepted, as all evicting actions have it; consolidate always behaves like this, whatever the value."
)


@dataclass(frozen=True, slots=True)
class ConsolidationOptions(EvictionOptions):
    """Arguments of the consolidate action."""

    fewest_victims: bool = arg("fewestVictims", True, _ALWAYS)
    no_harm: bool = arg("doNoHarm", True, _ALWAYS)
    hold_for: str = arg(
        "holdFor",
        "5m",
        "How long capacity is reserved: for the gang until it starts, for moved pods until their new pods exist.",
        check=duration_like("5m", above_zero=True),
    )
    min_run_time: str = arg(
        "minRunTime",
        "0s",
        "How long a task runs before it may be moved; a PodGroup's or else a queue's annotation "
        "`stromboli.sh/min-run-time` overrules it. Empty: neither counts.",
        check=duration_like("5m or 0s"),
    )
    move_interval: str = arg(
        "moveInterval",
        "1h",
        "How long after a move a job may not be moved again.",
        check=duration_like("1h or 0s"),
    )
    max_moves: int = arg("maxMoves", 8, "How many pods are moved for one gang at most.", check=at_least(1))
    max_domains: int = arg(
        "maxDomains",
        8,
        "How many HyperNodes are compared for one gang with a network topology at most.",
        check=at_least(1),
    )

    @property
    def rest_seconds(self) -> float:
        return duration(self.move_interval) or 0.0
