"""Which action is due: that of a command, or that of a policy for an observed event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from stromboli.api import names
from stromboli.api.types.volcano_job import Command, Job
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.job_phases import TARGETED, Action, default_transition, transition_of
from stromboli.controllers.job.job_status import go_duration
from stromboli.controllers.job.lifecycle_policies import LifecycleEvent, PolicyAction, PolicyActions
from stromboli.controllers.job.observed_state import ObservedState
from stromboli.controllers.job.pod_facts import partition_of, task_of
from stromboli.controllers.user_event import UserEvent


class DueAction(NamedTuple):
    """An action to execute now, and why."""

    action: str
    why: str = ""
    targets: frozenset[str] | None = None
    """Names of the pods that it is about; None for the whole job, or if the event names none."""


@dataclass(slots=True)
class DelayedActions:
    """Policy actions whose delay is not over."""

    requeue_at: datetime | None = None
    events: list[UserEvent] = field(default_factory=list)
    lost: dict[str, LifecycleEvent] = field(default_factory=dict)
    """The deleted pods among their triggers, by name."""

    def add(self, trigger: LifecycleEvent, policy: PolicyAction, due: datetime) -> None:
        self.requeue_at = due if self.requeue_at is None else min(self.requeue_at, due)
        text = names.ACTION_WAITS.format(action=policy.action, delay=go_duration(policy.delay))
        event = UserEvent(names.NORMAL, names.EXECUTE_ACTION, text)
        if event not in self.events:
            self.events.append(event)
        if trigger.event == lifecycle_policies.POD_EVICTED:
            self.lost[trigger.pod] = trigger


def commanded_action(observed: ObservedState) -> DueAction | None:
    """The action of a command; once, even if a crash kept the command from being deleted."""
    command = observed.command
    if command is None or _is_for_another(observed):
        return None
    why = command_message(command)
    return None if observed.job.status.state.message == why else DueAction(command.action, why)


def command_message(command: Command) -> str:
    """How the status of a job names the command that was executed last."""
    return f"asked for by command {command.name} {command.metadata.uid}".rstrip()


def _is_for_another(observed: ObservedState) -> bool:
    """Whether a command was meant for an earlier job of the same name."""
    target = observed.command.target if observed.command is not None else None
    return target is not None and bool(target.uid) and target.uid != observed.job.metadata.uid


class EffectivePolicies:
    """The policies of a job whose actions would change something in its phase."""

    def __init__(self, job: Job) -> None:
        self._phase = job.status.state.phase
        self._actions = PolicyActions(job)

    def action_for(self, event: str, task: str, exit_code: int) -> PolicyAction | None:
        policy = self._actions.action_for(event, task, exit_code)
        if policy is None or transition_of(self._phase, policy.action) == default_transition(self._phase):
            return None
        return policy

    def has_action(self, event: str, task: str, exit_code: int) -> bool:
        return self.action_for(event, task, exit_code) is not None


def due_action(
    observed: ObservedState,
    policies: EffectivePolicies,
    triggers: Iterable[LifecycleEvent],
    delayed: DelayedActions,
) -> DueAction | None:
    """The first policy action that is due and would change something, with the targets of all its triggers."""
    targeted = TargetedPods(observed)
    action: DueAction | None = None
    for trigger in triggers:
        policy = policies.action_for(trigger.event, trigger.task, trigger.exit_code)
        if policy is None:
            continue
        due = trigger.since + timedelta(seconds=policy.delay)
        if policy.delay > 0 and due > observed.now:
            delayed.add(trigger, policy, due)
            continue
        if policy.action in TARGETED and not targeted.names_any(policy.action, trigger):
            continue
        if action is None:
            action = DueAction(policy.action, trigger.why)
        if action.action == policy.action:
            targeted.add(policy.action, trigger)
    return action._replace(targets=targeted.names) if action is not None else None


class TargetedPods:
    """The existing pods of the tasks, pods or partitions that an action is about; each group is added once."""

    def __init__(self, observed: ObservedState) -> None:
        self._observed = observed
        self._groups: dict[tuple[str, str], list[str]] | None = None
        self._added: set[tuple[str, str]] = set()
        self._names: set[str] | None = None

    @property
    def names(self) -> frozenset[str] | None:
        """None if no event named any."""
        return frozenset(self._names) if self._names is not None else None

    def names_any(self, action: str, trigger: LifecycleEvent) -> bool:
        """Whether an event says which pods an action is about."""
        if action == Action.RESTART_TASK:
            return bool(trigger.task)
        if action == Action.RESTART_POD:
            return bool(trigger.pod)
        return bool(trigger.partition) and bool(self._of((trigger.task, trigger.partition)))

    def add(self, action: str, trigger: LifecycleEvent) -> None:
        if action not in TARGETED or not self.names_any(action, trigger):
            return
        self._names = self._names if self._names is not None else set()
        if action == Action.RESTART_POD:
            self._names |= {trigger.pod} & self._observed.pods.pods.keys()
            return
        group = (trigger.task, "" if action == Action.RESTART_TASK else trigger.partition)
        if group not in self._added:
            self._added.add(group)
            self._names.update(self._of(group))

    def _of(self, group: tuple[str, str]) -> list[str]:
        """The pods of a task, or of a partition of it, also those that succeeded and were deleted."""
        if self._groups is None:
            self._groups = {}
            pods = self._observed.pods
            existing = [(task_of(pod), partition_of(pod), pod.name) for pod in pods.pods.values()]
            lost = [(member.task.name, member.partition, member.name) for member in pods.lost_members()]
            for task, partition, name in existing + lost:
                for part in {"", partition}:
                    self._groups.setdefault((task, part), []).append(name)
        return self._groups.get(group, [])
