"""The gates that a job has to pass, in the order in which it meets them: passed, holding it, or not known yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stromboli.engine.explanation.subjects.explanation_document import GateState

if TYPE_CHECKING:
    from stromboli.engine.explanation.wait_explanation import WaitExplanation
    from stromboli.model.job import Job

_PLACE = {
    "pod-group": 0,
    "queue": 1,
    "enqueue": 2,
    "validity": 3,
    "scheduling-gates": 3,
    "gang": 3,
    "requirements": 4,
    "policy": 4,
    "backfill": 4,
    "cycle": 4,
    "queue-limits": 5,
    "topology": 6,
    "nodes": 6,
    "pipeline": 6,
}
"""Which of the gates below holds a job by the gate that the engine names."""
_NAMES = ("PodGroup", "queue", "admission", "gang", "rules", "share", "room")


def gate_states(job: Job, wait: WaitExplanation) -> list[GateState]:
    """All gates; those behind the one that holds it, or that it has not reached, are unknown."""
    holding = _PLACE.get(wait.gate, 6)
    told = [_group(job), _queue(job), _admission(job), _gang(job)]
    states: list[GateState] = []
    reached = True
    for place, name in enumerate(_NAMES):
        if place == holding:
            states.append(GateState(name, "holds", wait.summary or wait.message))
            reached = False
        elif place < len(told):
            passed, text = told[place]
            reached = reached and passed
            states.append(GateState(name, "passed" if passed else "unknown", text))
        else:
            states.append(GateState(name, "passed" if reached else "unknown", _LATER[name][reached]))
    return states


_UNKNOWN = "not checked yet"
_LATER = {
    "rules": (_UNKNOWN, "no plugin rejects it"),
    "share": (_UNKNOWN, "below its limit"),
    "room": (_UNKNOWN, "sufficient"),
}


def _group(job: Job) -> tuple[bool, str]:
    return job.group is not None, f"{job.name} {'exists' if job.group else 'does not exist'}"


def _queue(job: Job) -> tuple[bool, str]:
    queue = job.queue
    if queue is None or queue.object is None:
        return False, f'queue "{queue.name if queue else ""}" does not exist'
    state = "open" if queue.open else queue.object.status.state.lower()
    return queue.open, f'queue "{queue.name}" is {state}'


def _admission(job: Job) -> tuple[bool, str]:
    let_in = not job.waits_for_queue
    return let_in, f"{'admitted' if let_in else 'not admitted yet'} (phase {job.phase or 'none'})"


def _gang(job: Job) -> tuple[bool, str]:
    if job.complete:
        return True, f"{job.minimum} of its {job.valid_count} pods must start together"
    return False, f"{job.valid_count} of the {job.minimum} pods that must start together exist"
