"""Which actions and plugins there are, by the names that the configuration file uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.engine.plugin import SWITCHES, NoArguments, Plugin
from stromboli.engine.rules import own_points

if TYPE_CHECKING:
    from stromboli.engine.session import Session

UNIFIED_EVICTABLE = "unified_evictable"
"""Where plugins vote on victims of actions that evict for a gang as a whole."""
Run = Callable[["Session"], None]
Hook = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Action:
    """One step of a cycle. `initialise` is called when it enters the policy, `uninitialise` when it leaves."""

    name: str
    run: Run
    Arguments: type = NoArguments
    doc: str = ""
    initialise: Hook | None = None
    uninitialise: Hook | None = None
    evicts_by: str = ""
    """The extension point at which plugins vote on its victims, such as `preemptable`; empty if it evicts no pods."""
    preempts: bool = False
    """Whether victims leave for jobs of their own queue, which counts as preemption in metrics."""
    reclaims: bool = False
    """Whether victims leave for jobs of other queues."""
    for_waiting: bool = False
    """Whether it does nothing where no job waits."""

    @property
    def evicts_for_jobs(self) -> bool:
        """Whether it evicts pods for jobs that wait, in whichever queues."""
        return self.preempts or self.reclaims

    def __call__(self, session: Session) -> None:
        self.run(session)


def action(
    name: str,
    arguments: type = NoArguments,
    *,
    initialise: Hook | None = None,
    uninitialise: Hook | None = None,
    evicts_by: str = "",
    preempts: bool = False,
    reclaims: bool = False,
    for_waiting: bool = False,
) -> Callable[[Run], Action]:
    """Make an action of a function: `@action("allocate", Arguments)`.

    One that evicts says at which extension point plugins vote on its victims: `evicts_by="preemptable"`. All that is
    declared here is for code that must not know actions by their names.
    """

    def make(run: Run) -> Action:
        doc = (run.__doc__ or "").strip()
        hooks = (initialise, uninitialise)
        return Action(name, run, arguments, doc, *hooks, evicts_by, preempts, reclaims, for_waiting)

    return make


@dataclass(frozen=True, slots=True)
class Catalog:
    """The actions and plugins that a policy may name."""

    actions: Mapping[str, Action] = field(default_factory=dict)
    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict)

    @property
    def preempting(self) -> list[Action]:
        """The actions that evict pods for jobs of their own queue; those that evict for single tasks come first."""
        return _simplest_first(action for action in self.actions.values() if action.preempts)

    @property
    def reclaiming(self) -> list[Action]:
        """The actions that evict pods for jobs of other queues; those that evict for single tasks come first."""
        return _simplest_first(action for action in self.actions.values() if action.reclaims)

    @property
    def freeing_domains(self) -> list[Action]:
        """The actions that free a domain for a gang whichever queues are over their share; those that preempt first."""
        by_gang = (action for action in self.actions.values() if action.evicts_by == UNIFIED_EVICTABLE)
        whatever_shares = (action for action in by_gang if action.preempts or not action.reclaims)
        return sorted(whatever_shares, key=lambda action: (not action.preempts, action.name))

    @property
    def switches(self) -> dict[str, bool]:
        """Every switch that a plugin entry may have, with its default; own extension points bring their own."""
        points = [point for plugin in self.plugins.values() for point in own_points(plugin).values()]
        return {switch: True for point in points for switch in point.switches} | SWITCHES


def _simplest_first(actions: Iterable[Action]) -> list[Action]:
    return sorted(actions, key=lambda action: (action.evicts_by == UNIFIED_EVICTABLE, action.name))
