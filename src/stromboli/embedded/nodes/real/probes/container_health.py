"""Whether a running container has started, is ready, or is to be killed: Kubernetes' rules, as a pure state machine.

A new run of the container has a health of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stromboli.embedded.nodes.real.probes.probe_spec import Probe, ProbeType

_INITIAL_RESULTS = {ProbeType.STARTUP: None, ProbeType.LIVENESS: True, ProbeType.READINESS: False}
"""Before a probe has met a threshold; None is unknown."""


@dataclass(slots=True)
class _ProbeResult:
    """A result holds until as many probes in a row as its threshold say the opposite."""

    probe: Probe
    result: bool | None
    last: bool | None = None
    in_a_row: int = 0

    def observe(self, success: bool) -> None:
        self.in_a_row = self.in_a_row + 1 if success == self.last else 1
        self.last = success
        threshold = self.probe.success_threshold if success else self.probe.failure_threshold
        if self.in_a_row >= threshold:
            self.result = success


class ContainerHealth:
    """Results of the probes of a running container."""

    def __init__(self, probes: Mapping[ProbeType, Probe]) -> None:
        self._results = {type: _ProbeResult(probe, _INITIAL_RESULTS[type]) for type, probe in probes.items()}

    @property
    def started(self) -> bool:
        """Without a startup probe it has started as soon as it runs."""
        return self._result(ProbeType.STARTUP) is True

    @property
    def ready(self) -> bool:
        return self.started and self._result(ProbeType.READINESS) is True

    @property
    def failed(self) -> ProbeType | None:
        """The probe because of which the container is to be killed."""
        for type in (ProbeType.LIVENESS, ProbeType.STARTUP):
            if self._result(type) is False:
                return type
        return None

    def is_probed(self, type: ProbeType, stopping: bool) -> bool:
        """Whether a probe goes on: a startup probe until it succeeded, the others from then on.

        A container that is to be killed is not probed; one of a pod that is deleted, for its readiness alone.
        """
        if self.failed is not None or (stopping and type is not ProbeType.READINESS):
            return False
        return self.started != (type is ProbeType.STARTUP)

    def observe(self, type: ProbeType, success: bool | None) -> None:
        """Count the outcome of a probe; None is one that could not run, which says nothing."""
        if success is not None:
            self._results[type].observe(success)

    def _result(self, type: ProbeType) -> bool | None:
        result = self._results.get(type)
        return True if result is None else result.result
