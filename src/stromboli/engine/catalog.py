"""Which actions and plugins there are, by the names that the configuration file uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stromboli.engine.plugin import SWITCHES, NoArguments, Plugin
from stromboli.engine.rules import own_points

if TYPE_CHECKING:
    from stromboli.engine.session import Session

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
) -> Callable[[Run], Action]:
    """Make an action of a function: `@action("allocate", Arguments)`.

    One that evicts says at which extension point plugins vote on its victims: `evicts_by="preemptable"`.
    """

    def make(run: Run) -> Action:
        doc = (run.__doc__ or "").strip()
        return Action(name, run, arguments, doc, initialise, uninitialise, evicts_by, preempts)

    return make


@dataclass(frozen=True, slots=True)
class Catalog:
    """The actions and plugins that a policy may name."""

    actions: Mapping[str, Action] = field(default_factory=dict)
    plugins: Mapping[str, type[Plugin]] = field(default_factory=dict)

    @property
    def switches(self) -> dict[str, bool]:
        """Every switch that a plugin entry may have, with its default; own extension points bring their own."""
        points = [point for plugin in self.plugins.values() for point in own_points(plugin).values()]
        return {switch: True for point in points for switch in point.switches} | SWITCHES
