"""One look at a job: from what the cluster shows to what is to be done (spec 06 2.3 to 2.8).

Everything follows from the scene, so a look may be taken at any time and any number of times. What changes the course
of a job is written into its status before anything is done about it: whoever looks next, after a crash too, goes on
from there. A look that makes or deletes pods leaves the counts to the next one, which follows at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api import names
from stromboli.api.types.volcano_job import JobPod, JobStatus
from stromboli.controllers.job import lifecycle_policies
from stromboli.controllers.job.job_phases import (
    COMMANDS,
    KNOWN,
    RESTING,
    Action,
    Does,
    Phase,
    Row,
    is_live,
    next_phase,
    row_of,
)
from stromboli.controllers.job.job_pods import members
from stromboli.controllers.job.job_status import moved, recounted
from stromboli.controllers.job.lifecycle_policies import Signal
from stromboli.controllers.job.observed_events import (
    Memory,
    glimpses,
    losses,
    signals,
    version_of,
)
from stromboli.controllers.job.observed_state import (
    DeleteCommand,
    DeleteGroup,
    Detach,
    Outcome,
    Scene,
    SetStatus,
    Tell,
    Write,
)
from stromboli.controllers.job.pod_counts import ENDED, count
from stromboli.controllers.job.policy_actions import Decided, Waiting, commanded, decided, order_of
from stromboli.controllers.job.sync_job import Draft, attachments, bring_up

LONGEST_CAUSE = 500
MOST_PODS = 100_000
"""Of one job; what asks for more is a mistake, and must not stop the others."""


def look(scene: Scene) -> Outcome:
    """What is to be done about a job now."""
    if scene.job.metadata.deletion_timestamp is not None:
        return Outcome(_clean_up(scene))
    pods = sum(task.replicas for task in scene.job.spec.tasks)
    if pods > MOST_PODS:
        text = f"the job asks for {pods} pods, at most {MOST_PODS} are made for one job; split it"
        return Outcome(_clean_up(scene), (Tell(names.WARNING, names.FAILED_CREATE, text),))
    wanted = {member.name for member in members(scene.job)}
    lost = losses(scene.job, scene.pods, wanted, scene.memory, scene.now)
    own = {name: pod for name, pod in scene.pods.items() if name in wanted}
    shown = list(signals(scene.job, own, scene.group, scene.memory, scene.now))
    waiting = Waiting()
    action = commanded(scene) or decided(scene, [*lost.values(), *shown], waiting)
    draft = Draft(scene, waiting.losses, attached=scene.memory.attached)
    if action is None or not _act(draft, action):
        _carry_on(draft)
    return _outcome(draft, waiting, shown, action)


def _outcome(draft: Draft, waiting: Waiting, shown: list[Signal], action: Decided | None) -> Outcome:
    scene = draft.scene
    steady = {
        (signal.event, signal.task): signal.since
        for signal in shown
        if signal.event in (lifecycle_policies.TASK_FAILED, lifecycle_policies.UNKNOWN)
    }
    events = [*draft.events, *(waiting.told if action is None else ())]
    news = [event for event in events if (event.reason, event.message) not in scene.memory.told]
    memory = Memory(
        pods=glimpses(scene.job, scene.pods.values(), frozenset(draft.going)),
        losses=waiting.losses if action is None else {},
        since=steady,
        told=frozenset((event.reason, event.message) for event in events),
        attached=draft.attached,
        version=scene.job.status.version,
        agreed=draft.agreed,
    )
    times = [time for time in (draft.again, waiting.again) if time is not None]
    return Outcome(tuple(draft.writes), tuple(news), min(times, default=None), memory)


def _clean_up(scene: Scene) -> tuple[Write, ...]:
    return () if scene.command is None else (DeleteCommand(scene.command),)


def _act(draft: Draft, action: Decided) -> bool:
    """Carry out an action: first the status that says so, then the rest. False if there is nothing to it."""
    scene = draft.scene
    _announce(draft, action)
    row = row_of(scene.job.status.state.phase, action.action)
    if row.does == Does.SYNC or (row.does == Does.KILL_TARGET and action.targets is None):
        return False
    if row.counts and scene.job.status.retry_count >= scene.job.spec.max_retry:
        why = f"no retry is left of {scene.job.spec.max_retry}: {action.why}"
        row, action = Row(Does.KILL, Phase.FAILED), action._replace(why=why)
    victims = list(_victims(scene, row, action))
    status = _changed(draft, row, action, victims)
    if status == scene.job.status and not victims:
        return False
    said, cleaned = (SetStatus(status),), _clean_up(scene)
    # The status names the command until that is deleted: one carried out before goes before the status forgets it.
    draft.writes += (*said, *cleaned) if _is_obeying(scene, action) else (*cleaned, *said)
    for pod in victims:
        draft.delete(pod, mark=row.does == Does.KILL_TARGET)
    if row.does != Does.KILL_TARGET and scene.group is not None:
        draft.writes.append(DeleteGroup(scene.group))
    return True


def _changed(draft: Draft, row: Row, action: Decided, victims: list[JobPod]) -> JobStatus:
    """The status that says what is being done."""
    job = draft.scene.job
    status = job.status
    if row.to is not None:
        status = moved(job, row.to, draft.scene.now, action.action[:100], action.why[:LONGEST_CAUSE])
        status.retry_count += row.counts
        status.version += row.does != Does.KILL_TARGET
        status.controlled_resources = draft.controlled(status.controlled_resources)
    return recounted(status, job, count(draft.own(), frozenset(pod.name for pod in victims)))


def _is_obeying(scene: Scene, action: Decided) -> bool:
    return scene.command is not None and action.why == order_of(scene.command)


def _announce(draft: Draft, action: Decided) -> None:
    command = draft.scene.command
    if command is not None and _is_obeying(draft.scene, action):
        if command.action not in KNOWN:
            text = names.COMMAND_UNKNOWN.format(
                name=command.name, action=command.action[:100], valid=", ".join(COMMANDS)
            )
            draft.events.append(Tell(names.WARNING, names.UNKNOWN_COMMAND, text))
            return
        text = names.COMMAND_STARTS.format(action=command.action[:100])
        draft.events.append(Tell(names.NORMAL, names.COMMAND_ISSUED, text))
    text = names.ACTION_STARTS.format(action=action.action[:100])
    draft.events.append(Tell(names.NORMAL, names.EXECUTE_ACTION, text))


def _victims(scene: Scene, row: Row, action: Decided) -> Iterator[JobPod]:
    for _, pod in sorted(scene.pods.items()):
        if pod.metadata.deletion_timestamp is not None:
            continue
        if row.does == Does.KILL_TARGET:
            chosen = action.targets is not None and pod.name in action.targets
        else:
            chosen = row.does == Does.KILL_ALL or pod.status.phase not in ENDED
        if chosen:
            yield pod


def _carry_on(draft: Draft) -> None:
    """No action: bring up what lives, clear away what ends, and tell how far it is."""
    scene = draft.scene
    phase = scene.job.status.state.phase
    draft.writes += _clean_up(scene)
    if is_live(phase):
        _clear_old(draft)
        bring_up(draft)
    else:
        _clear_away(draft)
    if not draft.is_busy:
        _tell_status(draft)


def _clear_old(draft: Draft) -> None:
    """Pods of an earlier version that are still to go, because the status that says so came first."""
    scene = draft.scene
    state = scene.job.status.state
    keeps = state.phase != Phase.RESTARTING or state.reason != Action.RESTART_JOB
    for _, pod in sorted(scene.pods.items()):
        old = version_of(pod) < scene.job.status.version
        if old and pod.metadata.deletion_timestamp is None and not (keeps and pod.status.phase in ENDED):
            draft.delete(pod)


def _clear_away(draft: Draft) -> None:
    scene = draft.scene
    for pod in _victims(scene, Row(Does.KILL), Decided("")):
        draft.delete(pod)
    if scene.group is not None and scene.group.metadata.deletion_timestamp is None:
        draft.writes.append(DeleteGroup(scene.group))
    phase = scene.job.status.state.phase
    marked = any(key.startswith("plugin-") for key in scene.job.status.controlled_resources)
    if phase in RESTING and marked and not draft.is_busy:
        draft.writes.append(Detach(attachments(draft)))
        draft.leave_plugins, draft.attached = True, ""


def _tell_status(draft: Draft) -> None:
    """The counts as they are, and the phase that follows from them."""
    scene = draft.scene
    job = scene.job
    counts = count(draft.own())
    status = recounted(job.status, job, counts)
    phase = status.state.phase
    if not phase:
        status = recounted(moved(job, Phase.PENDING, scene.now), job, counts)
    elif (to := next_phase(phase, job, counts)) is not None:
        status = recounted(moved(job, to, scene.now), job, counts)
    status.controlled_resources = draft.controlled(status.controlled_resources)
    if status != job.status:
        draft.writes.append(SetStatus(status))
