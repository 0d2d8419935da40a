"""Reconciles a job without I/O: from its observed state to what is to be done (spec 06 2.3 to 2.8).

Everything follows from the observed state, so a job may be reconciled at any time and any number of times. An action is
written into the status before it is executed, so that the next reconcile, after a crash too, goes on from there. A
reconcile that creates or deletes pods leaves the counts to the next one, which follows at once.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from stromboli.api import names
from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.volcano_job import JobStatus
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.job_phases import (
    COMMANDS,
    INACTIVE,
    KNOWN,
    Action,
    Effect,
    Phase,
    Transition,
    is_live,
    next_phase,
    transition_of,
)
from stromboli.controllers.job.job_size import size_problem
from stromboli.controllers.job.job_status import MAX_MESSAGE, with_counts, with_obstacle, with_phase
from stromboli.controllers.job.lifecycle_policies import LifecycleEvent
from stromboli.controllers.job.observed_events import (
    ReconcileCache,
    lifecycle_events,
    lost_pods,
)
from stromboli.controllers.job.observed_state import (
    CreateGroup,
    DeleteCommand,
    DeleteGroup,
    Detach,
    ObservedState,
    Outcome,
    SetStatus,
    Write,
)
from stromboli.controllers.job.order.job_order import Obstacle
from stromboli.controllers.job.pod_facts import Counts
from stromboli.controllers.job.policy_actions import (
    DelayedActions,
    DueAction,
    EffectivePolicies,
    command_message,
    commanded_action,
    due_action,
)
from stromboli.controllers.job.sync_job import PLUGIN_PREFIX, OutcomeBuilder, attachments, sync_job
from stromboli.controllers.user_event import UserEvent

LASTING = frozenset(
    {lifecycle_policies.TASK_FAILED, lifecycle_policies.TASK_COMPLETED, lifecycle_policies.UNKNOWN}
)
"""Events for which the next reconcile needs the time at which they began."""


def reconcile(observed: ObservedState) -> Outcome:
    """What is to be done about a job now."""
    if observed.job.metadata.deletion_timestamp is not None:
        return Outcome(_command_deletion(observed))
    if problem := _size_problem(observed):
        return _too_large(observed, Obstacle(names.TOO_LARGE, problem))
    job, cache, now, policies = observed.job, observed.cache, observed.now, EffectivePolicies(observed.job)
    lost = lost_pods(job, observed.pods, observed.gone, cache, now)
    triggers = list(lifecycle_events(job, observed.pods, observed.group, cache, now, policies.has_action))
    delayed = DelayedActions()
    due = [*lost.values(), *triggers]
    action = commanded_action(observed) or due_action(observed, policies, due, delayed)
    builder = OutcomeBuilder(observed, delayed, attached=cache.attached)
    if action is None and observed.order.failure and is_live(job.status.state.phase):
        _fail(builder, observed.order.failure)
    elif (action is None or not _execute_action(builder, action)) and not _record_succeeded(builder):
        _sync(builder)
    return _outcome(builder, triggers, action)


def _size_problem(observed: ObservedState) -> str:
    """What there is too much of in the job, looked for once for each spec."""
    if observed.cache.checked == observed.job.spec:
        return ""
    return size_problem(observed.job)


def _too_large(observed: ObservedState, obstacle: Obstacle) -> Outcome:
    """Nothing is made of a job that is too large; it says so."""
    job = observed.job
    status = job.status if job.status.state.phase else with_phase(job, Phase.PENDING, observed.now)
    status = with_obstacle(status, obstacle)
    written = (SetStatus(status),) if status != job.status else ()
    told = obstacle in observed.cache.recorded
    events = () if told else (UserEvent(names.WARNING, *obstacle),)
    cache = replace(observed.cache, recorded=frozenset({(obstacle.reason, obstacle.message)}))
    return Outcome((*_command_deletion(observed), *written), events, cache=cache)


def _outcome(builder: OutcomeBuilder, triggers: list[LifecycleEvent], action: DueAction | None) -> Outcome:
    observed, delayed = builder.observed, builder.delayed
    since = {(trigger.event, trigger.task): trigger.since for trigger in triggers if trigger.event in LASTING}
    events = [*builder.events, *(delayed.events if action is None else ())]
    new = [event for event in events if (event.reason, event.message) not in observed.cache.recorded]
    cache = ReconcileCache(
        lost=delayed.lost if action is None else {},
        since=since,
        recorded=frozenset((event.reason, event.message) for event in events),
        attached=builder.attached,
        version=observed.job.status.version,
        synced_group=builder.synced_group,
        checked=observed.job.spec,
    )
    times = [time for time in (builder.requeue_at, delayed.requeue_at) if time is not None]
    settled = action is None and builder.settled
    return Outcome(tuple(builder.writes), tuple(new), min(times, default=None), cache, settled)


def _command_deletion(observed: ObservedState) -> tuple[Write, ...]:
    return () if observed.command is None else (DeleteCommand(observed.command),)


def _record_succeeded(builder: OutcomeBuilder) -> bool:
    """Write which deleted pods had succeeded before anything else, as nothing else shows it; False if it is written."""
    if builder.observed.pods.is_recorded:
        return False
    _update_status(builder)
    builder.settled = False
    return bool(builder.writes)


def _execute_action(builder: OutcomeBuilder, action: DueAction) -> bool:
    """Write the status that an action leads to, then delete pods and group; False if it changes nothing."""
    observed = builder.observed
    _record_action(builder, action)
    transition = transition_of(observed.job.status.state.phase, action.action)
    aimless = transition.effect == Effect.KILL_TARGET and action.targets is None
    if transition.effect == Effect.SYNC or aimless:
        return False
    if transition.is_retry and observed.job.status.retry_count >= observed.job.spec.max_retry:
        why = f"no retry is left of {observed.job.spec.max_retry}: {action.why}"
        transition, action = Transition(Effect.KILL, Phase.FAILED), action._replace(why=why)
    victims = _victims(observed, transition, action)
    builder.succeeded = _still_succeeded(observed, transition, action)
    status = _new_status(builder, transition, action, victims)
    if status == observed.job.status and not victims:
        return False
    written, deletion = (SetStatus(status),), _command_deletion(observed)
    # The status names the command until that is deleted, so a command executed before is deleted before the status.
    builder.writes += (*written, *deletion) if _is_commanded(observed, action) else (*deletion, *written)
    for pod in victims:
        builder.delete(pod, out_of_sync=transition.effect == Effect.KILL_TARGET)
    if transition.effect != Effect.KILL_TARGET and observed.group is not None:
        builder.writes.append(DeleteGroup(observed.group))
    return True


def _fail(builder: OutcomeBuilder, why: str) -> None:
    """The job can never start, as one that it waited for has ended otherwise; its pods follow in the next reconcile."""
    observed = builder.observed
    status = with_phase(observed.job, Phase.FAILED, observed.now, names.AFTER_FAILED, why[:MAX_MESSAGE])
    status.version += 1
    builder.events.append(UserEvent(names.WARNING, names.AFTER_FAILED, why))
    builder.writes += (
        *_command_deletion(observed),
        SetStatus(with_counts(status, observed.job, observed.pods.counts())),
    )


def _new_status(
    builder: OutcomeBuilder, transition: Transition, action: DueAction, victims: list[Pod]
) -> JobStatus:
    """The status that an action leads to."""
    job = builder.observed.job
    status = job.status
    if transition.to is not None:
        status = with_phase(
            job, transition.to, builder.observed.now, action.action[:100], action.why[:MAX_MESSAGE]
        )
        status.retry_count += transition.is_retry
        status.version += transition.effect != Effect.KILL_TARGET
    resources = builder.controlled_resources(status.controlled_resources)
    status = msgspec.structs.replace(status, controlled_resources=resources)
    return with_counts(status, job, builder.observed.pods.counts(pod.name for pod in victims))


def _still_succeeded(observed: ObservedState, transition: Transition, action: DueAction) -> list[int]:
    """Return the indexes of pods that succeeded and are not restarted, by position of the task."""
    if transition.effect == Effect.KILL_ALL:
        return [0 for _ in observed.job.spec.tasks]
    restarted = action.targets if transition.effect == Effect.KILL_TARGET else None
    return observed.pods.succeeded_indexes(restarted or ())


def _is_commanded(observed: ObservedState, action: DueAction) -> bool:
    return observed.command is not None and action.why == command_message(observed.command)


def _record_action(builder: OutcomeBuilder, action: DueAction) -> None:
    command = builder.observed.command
    if command is not None and _is_commanded(builder.observed, action):
        if command.action not in KNOWN:
            text = names.COMMAND_UNKNOWN.format(
                name=command.name, action=command.action[:100], valid=", ".join(COMMANDS)
            )
            builder.events.append(UserEvent(names.WARNING, names.UNKNOWN_COMMAND, text))
            return
        text = names.COMMAND_STARTS.format(action=command.action[:100])
        builder.events.append(UserEvent(names.NORMAL, names.COMMAND_ISSUED, text))
    text = names.ACTION_STARTS.format(action=action.action[:100])
    builder.events.append(UserEvent(names.NORMAL, names.EXECUTE_ACTION, text))


def _victims(observed: ObservedState, transition: Transition, action: DueAction) -> list[Pod]:
    pods = observed.pods
    if transition.effect == Effect.KILL_TARGET:
        targets = action.targets or frozenset()
        return pods.named(name for name in targets if name in pods.live or name in pods.ended)
    return pods.named(pods.live | pods.ended if transition.effect == Effect.KILL_ALL else pods.live)


def _sync(builder: OutcomeBuilder) -> None:
    """No action: create what a live job lacks, delete what an ending job still has, and write the status."""
    observed = builder.observed
    phase = observed.job.status.state.phase
    builder.writes += _command_deletion(observed)
    if is_live(phase):
        _delete_old_pods(builder)
        sync_job(builder)
    else:
        _delete_all(builder)
    if not builder.changes_pods:
        _update_status(builder)


def _delete_old_pods(builder: OutcomeBuilder) -> None:
    """Pods of an earlier version: the new version is written into the status before they are deleted."""
    observed = builder.observed
    state = observed.job.status.state
    keeps_ended = state.phase != Phase.RESTARTING or state.reason != Action.RESTART_JOB
    old = observed.pods.old
    for pod in observed.pods.named(old & observed.pods.live if keeps_ended else old):
        builder.delete(pod)


def _delete_all(builder: OutcomeBuilder) -> None:
    """Pods that have not ended, the group and, once those are gone, what plugins attached."""
    observed = builder.observed
    for pod in _victims(observed, Transition(Effect.KILL), DueAction("")):
        builder.delete(pod)
    if observed.group is not None and observed.group.metadata.deletion_timestamp is None:
        builder.writes.append(DeleteGroup(observed.group))
    phase = observed.job.status.state.phase
    attached = any(key.startswith(PLUGIN_PREFIX) for key in observed.job.status.controlled_resources)
    if phase in INACTIVE and attached and not builder.changes_pods:
        builder.writes.append(Detach(attachments(builder)))
        builder.detaches, builder.attached = True, ""


def _update_status(builder: OutcomeBuilder) -> None:
    """The counts, and the phase that follows from them."""
    observed = builder.observed
    job = observed.job
    counts = observed.pods.counts()
    status = with_counts(job.status, job, counts)
    phase = status.state.phase
    if not phase:
        status = with_counts(with_phase(job, Phase.PENDING, observed.now), job, counts)
    elif (to := next_phase(phase, job, counts)) is not None:
        status = with_counts(with_phase(job, to, observed.now), job, counts)
    status = with_obstacle(status, observed.obstacle or observed.order.obstacle)
    status.controlled_resources = builder.controlled_resources(status.controlled_resources)
    builder.settled = _is_settled(builder, status, counts)
    if status != job.status:
        builder.writes.append(SetStatus(status))


def _is_settled(builder: OutcomeBuilder, status: JobStatus, counts: Counts) -> bool:
    """Whether the next reconcile would come to the same status, and find nothing else to do."""
    before, after = builder.observed.job.status.state.phase, status.state.phase
    if builder.observed.obstacle is not None or not is_live(after):
        return False
    if not all(isinstance(write, CreateGroup) for write in builder.writes):
        return False
    first = not before and next_phase(after, builder.observed.job, counts) is None
    return before == after or first
