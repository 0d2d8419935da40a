"""The loop: sync the mirrored cluster, run a cycle, hand over decisions, reload the policy.

A world mirrors a cluster, executes decisions and has a clock: a real cluster, an embedded one, or a rehearsal in
memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from stromboli.api import names
from stromboli.api.errors import error_text
from stromboli.engine.catalog import Catalog
from stromboli.engine.cycle import Engine, Outcome
from stromboli.engine.decisions import Decision, Event
from stromboli.model.cluster import Cluster
from stromboli.policy.policy import Policy
from stromboli.policy.policy_file import PolicyFile, PolicyReading, first_reading
from stromboli.sources.usage_feed import UsageFeed
from stromboli.sources.usage_sources import LOCAL

log = logging.getLogger(__name__)

PERIOD = 1.0
"""Seconds from the end of a cycle to the start of the next, as in Volcano."""


class World(Protocol):
    """A cluster that is mirrored and scheduled."""

    @property
    def cluster(self) -> Cluster:
        """The model of the cluster."""

    def sync(self) -> None:
        """Bring the mirror up to date."""

    def execute(self, decisions: Sequence[Decision]) -> None:
        """Execute decisions, now or a little later; a later `sync` shows the result."""

    def now(self) -> float:
        """Seconds since 1970."""


def policy_event(reading: PolicyReading) -> Event:
    """The event about reading a policy: on the queue `root`, which stands for the whole cluster, the outcome first."""
    text = ": ".join(part for part in (reading.outcome, "; ".join(reading.problems)) if part)
    if reading.in_force and not reading.problems:
        return Event("Queue", "", names.ROOT_QUEUE, "Normal", names.EVENT_POLICY_LOADED, text)
    reason = names.EVENT_POLICY_WARNING if reading.in_force else names.EVENT_POLICY_REFUSED
    return Event("Queue", "", names.ROOT_QUEUE, "Warning", reason, text)


class RefusedPolicy(NamedTuple):
    """A version of the policy file that was not applied."""

    time: float
    """When it was read, in seconds since 1970."""
    source_name: str
    errors: tuple[str, ...]
    """As `FILE:LINE: message`."""
    is_latest: bool = True
    """Whether no version was applied since."""


class Scheduler:
    """A policy applied to a world, cycle after cycle."""

    def __init__(
        self,
        world: World,
        policy: Policy | PolicyFile,
        catalog: Catalog,
        period: float = PERIOD,
        warn: Callable[[str], None] = log.warning,
        usage: UsageFeed | None = None,
        services: Mapping[str, Any] | None = None,
        features: Iterable[str] = (),
        interruptible: bool = True,
        reports: bool = True,
    ) -> None:
        """Without `usage` and `services` no network is used: node usage comes from files only."""
        self.world = world
        self.period = period
        self._catalog = catalog
        self._warn = warn
        self._parts: dict[str, Any] = {
            "timer": perf_counter,
            "services": services,
            "features": frozenset(features),
            "interruptible": interruptible,
            "reports": reports,
        }
        self._usage = usage or UsageFeed(LOCAL, warn)
        self._file = policy if isinstance(policy, PolicyFile) else None
        self._cluster: Cluster | None = None
        """The model of the last cycle."""
        self._events: list[Event] = []
        """About the policy, to be written with the next cycle."""
        self.engine = Engine(self._policy_of(policy), catalog, **self._parts)
        self.policy_since = world.now()
        """When the policy was applied, in seconds since 1970."""
        self.refused: RefusedPolicy | None = None
        """The last version of the policy file that was refused."""
        if self._file is not None and not self._file.first.in_force:
            self._note_refusal(self._file, self._file.first)

    def cycle(self) -> Outcome:
        """Run one cycle; its decisions were handed over when this returns."""
        self.reload()
        self.world.sync()
        if self._events:
            events, self._events = self._events, []
            self.world.execute(events)
        cluster, now = self.world.cluster, self.world.now()
        self._follow(cluster)
        self._usage.refresh(cluster, self.engine.policy.metrics, now)
        outcome = self.engine.cycle(cluster, now)
        self.world.execute(outcome.decisions)
        return outcome

    def _follow(self, cluster: Cluster) -> None:
        """Make a new engine if the model was rebuilt: the old engine remembers the old model."""
        before, self._cluster = self._cluster, cluster
        if before is not None and before is not cluster:
            self._replace_engine(Engine(self.engine.policy, self._catalog, **self._parts))

    def _replace_engine(self, fresh: Engine) -> None:
        self.engine.close()
        self.engine = fresh

    def announce_policy(self) -> None:
        """Report problems of the first policy: in the log now, in an event with the first cycle."""
        first = self._file.first if self._file is not None else first_reading(self.engine.policy)
        if first.problems:
            self._announce(first)

    def reload(self) -> None:
        """Apply a changed policy file; if it is invalid, warn and keep the last valid one."""
        if self._file is None:
            return
        reading = self._file.refresh()
        if reading is None:
            return
        if reading.in_force and (problem := self._use(self._file.current)):
            self._file.current = self.engine.policy
            reading = PolicyReading(
                False, (problem,), f"{self._file.source_name}: the policy before stays in force"
            )
        if not reading.in_force:
            self._note_refusal(self._file, reading)
        self._announce(reading)

    def _note_refusal(self, file: PolicyFile, reading: PolicyReading) -> None:
        self.refused = RefusedPolicy(self.world.now(), file.source_name, reading.problems)

    def _use(self, policy: Policy) -> str:
        """Apply another policy; return why its plugins cannot be built, or an empty text."""
        try:
            fresh = Engine(policy, self._catalog, **self._parts)
        except Exception as error:
            return f"{policy.source_name}: {error_text(error)}"
        self._replace_engine(fresh)
        self.policy_since = self.world.now()
        if self.refused is not None:
            self.refused = self.refused._replace(is_latest=False)
        self.world.cluster.feed.note_everything()
        return ""

    def _announce(self, reading: PolicyReading) -> None:
        if reading.problems:
            for message in reading.messages:
                self._warn(message)
        else:
            log.info("%s", reading.outcome)
        self._events.append(policy_event(reading))

    @staticmethod
    def _policy_of(policy: Policy | PolicyFile) -> Policy:
        return policy.current if isinstance(policy, PolicyFile) else policy
