"""Which action is due: one that the user asks for, or one that policies ask for when something happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.volcano_job import Command
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.job_phases import TARGETED, Action, row_of, usual
from stromboli.controllers.job.job_status import spoken
from stromboli.controllers.job.lifecycle_policies import Order, Signal, order_for
from stromboli.controllers.job.observed_events import partition_of, task_of
from stromboli.controllers.job.observed_state import Scene, Tell


class Decided(NamedTuple):
    """An action that is to be carried out now, and why; `targets` are the pods it is about."""

    action: str
    why: str = ""
    targets: frozenset[str] | None = None
    """None: it is about the whole job, or about nothing that anybody named."""


@dataclass(slots=True)
class Waiting:
    """Actions that are to come if nothing changes."""

    again: datetime | None = None
    told: list[Tell] = field(default_factory=list)
    losses: dict[str, Signal] = field(default_factory=dict)

    def add(self, signal: Signal, order: Order, due: datetime) -> None:
        self.again = due if self.again is None else min(self.again, due)
        text = names.ACTION_WAITS.format(action=order.action, delay=spoken(order.delay))
        event = Tell(names.NORMAL, names.EXECUTE_ACTION, text)
        if event not in self.told:
            self.told.append(event)
        if signal.event == lifecycle_policies.POD_EVICTED:
            self.losses[signal.pod] = signal


def commanded(scene: Scene) -> Decided | None:
    """What the user asks for; each order once, also if we were stopped before it could be deleted."""
    command = scene.command
    if command is None or _is_for_another(scene):
        return None
    why = order_of(command)
    return None if scene.job.status.state.message == why else Decided(command.action, why)


def order_of(command: Command) -> str:
    """How the status of a job names the command that was carried out last."""
    return f"asked for by command {command.name} {command.metadata.uid}".rstrip()


def _is_for_another(scene: Scene) -> bool:
    """Whether a command was meant for an earlier job of the same name."""
    target = scene.command.target if scene.command is not None else None
    return target is not None and bool(target.uid) and target.uid != scene.job.metadata.uid


def decided(scene: Scene, shown: Iterable[Signal], waiting: Waiting) -> Decided | None:
    """The first action that policies ask for, is due, and would change something; pods it strikes come together."""
    phase = scene.job.status.state.phase
    found: Decided | None = None
    for signal in shown:
        order = order_for(scene.job, signal)
        if order is None or row_of(phase, order.action) == usual(phase):
            continue
        due = signal.since + timedelta(seconds=order.delay)
        if order.delay > 0 and due > scene.now:
            waiting.add(signal, order, due)
            continue
        targets = _targets(scene, order.action, signal)
        if order.action in TARGETED and targets is None:
            continue
        if found is None:
            found = Decided(order.action, signal.why, targets)
        elif found.action == order.action and targets is not None:
            found = found._replace(targets=(found.targets or frozenset()) | targets)
    return found


def _targets(scene: Scene, action: str, signal: Signal) -> frozenset[str] | None:
    """The pods that are left of the part of a job that an action is about; None if it is about no part."""
    pods = scene.pods.values()
    if action == Action.RESTART_TASK and signal.task:
        return frozenset(pod.name for pod in pods if task_of(pod) == signal.task)
    if action == Action.RESTART_POD and signal.pod:
        return frozenset({signal.pod} & scene.pods.keys())
    if action == Action.RESTART_PARTITION and signal.partition:
        own = (pod for pod in pods if task_of(pod) == signal.task)
        return frozenset(pod.name for pod in own if partition_of(pod) == signal.partition) or None
    return None
