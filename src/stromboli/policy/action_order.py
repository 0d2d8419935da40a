"""Orders of actions that make little sense: allowed, as in Volcano, but worth a word."""

from collections.abc import Sequence

_MAKE_ROOM = ("consolidate", "preempt", "reclaim", "gangpreempt", "gangreclaim")
_AFTER_ALLOCATE = {
    "backfill": "best-effort pods take places before the jobs that asked for room",
    **dict.fromkeys(_MAKE_ROOM, "pods are evicted for jobs that might find free room"),
}


def order_warnings(actions: Sequence[str]) -> list[str]:
    """What looks like a mistake in the order of actions, in users' words."""
    warnings = [
        f"{name} is listed {actions.count(name)} times and will run as often"
        for name in dict.fromkeys(actions)
        if actions.count(name) > 1
    ]
    if "enqueue" in actions and "allocate" in actions and _before(actions, "allocate", "enqueue"):
        warnings.append("allocate runs before enqueue: a new job waits one cycle longer than it has to")
    if "allocate" in actions:
        for name, effect in _AFTER_ALLOCATE.items():
            if name in actions and _before(actions, name, "allocate"):
                warnings.append(f"{name} runs before allocate: {effect}")
    return warnings


def _before(actions: Sequence[str], first: str, second: str) -> bool:
    return actions.index(first) < actions.index(second)
