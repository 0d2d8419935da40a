"""How long a DaemonSet waits before it replaces a failed pod: longer each time that pods fail on the same node."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_DELAY, FULL_DELAY = 1.0, 900.0
"""Seconds between two replacements on a node; a node without failures for twice the longest begins anew."""


@dataclass(slots=True)
class _Failure:
    delay: float
    at: float


class FailedPods:
    """The last failure on each node of each DaemonSet, for the generation in which it was."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, int, str], _Failure] = {}

    def delay(self, uid: str, generation: int, node: str, now: float) -> float:
        """Seconds until a pod that failed on the node may be replaced; 0 if it may be now, which is remembered."""
        key = (uid, generation, node)
        failure = self._failures.get(key)
        if failure is None or now - failure.at > 2 * FULL_DELAY:
            self._failures[key] = _Failure(FIRST_DELAY, now)
            return 0.0
        if now < failure.at + failure.delay:
            return failure.at + failure.delay - now
        self._failures[key] = _Failure(min(2 * failure.delay, FULL_DELAY), now)
        return 0.0

    def forget(self, uid: str, but_generation: int | None = None) -> None:
        """Drop the failures of a DaemonSet that is gone, or has another generation."""
        if any(key[0] == uid and key[1] != but_generation for key in self._failures):
            self._failures = {
                key: failure
                for key, failure in self._failures.items()
                if key[0] != uid or key[1] == but_generation
            }
