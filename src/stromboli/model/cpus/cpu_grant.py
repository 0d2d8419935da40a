"""The CPUs that a task was given on its node, as they are told to the node by an annotation of the pod.

The kubelet gives a pod its CPUs when the pod starts, and the Numatopology of the node lists them some seconds later.
Until then those of the grant count as taken. The annotation goes with the bind, so that a scheduler that starts anew
counts the same.
"""

from __future__ import annotations

import msgspec

from stromboli.api import names
from stromboli.model.cpus.cpu_set import parse_cpu_set
from stromboli.model.ledgers import Grant

LONGEST_DECISION = 131_072
"""The longest annotation of a decision that is read, in characters."""


class CpuGrant(Grant, frozen=True, tag="cpus"):
    """CPUs of a node for one task."""

    cpus: str
    """The CPUs by number, such as `0-3,8`."""
    numa: tuple[tuple[int, int], ...]
    """NUMA nodes and how many of the CPUs belong to each, by the number of the NUMA node."""

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations that the pod gets with its bind (spec 05 6.1).

        Volcano's decision has the counts of each NUMA node; the CPUs are ours, and its readers skip them.
        """
        counts = {str(numa): {"cpu": str(count)} for numa, count in self.numa}
        return {names.TOPOLOGY_DECISION: msgspec.json.encode({"numa": counts, "cpus": self.cpus}).decode()}


class _Decision(msgspec.Struct):
    """What is read of the annotation."""

    cpus: str = ""
    numa: dict[int, dict[str, str]] = {}


_decoder = msgspec.json.Decoder(_Decision)


def granted_cpus(annotations: dict[str, str]) -> CpuGrant | None:
    """The CPUs that a scheduler wrote into the annotations of a pod; None where there are none that can be read."""
    text = annotations.get(names.TOPOLOGY_DECISION)
    if text is None or len(text) > LONGEST_DECISION:
        return None
    try:
        decision = _decoder.decode(text)
        if not parse_cpu_set(decision.cpus):
            return None
        counts = sorted((numa, int(amounts.get("cpu", "0"))) for numa, amounts in decision.numa.items())
    except ValueError:  # msgspec's errors are ValueErrors too
        return None
    return CpuGrant(decision.cpus, tuple(counts))
