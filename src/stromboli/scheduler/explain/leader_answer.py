"""The response of the leader to a question about an object: plain data, as JSON."""

from __future__ import annotations

from msgspec import Struct, field

from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.explanation.event_history import History
from stromboli.engine.plugin import Promise


class LeaderAnswer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the leader knows about an object after its last cycle."""

    resource: str
    """As in the path of the request, such as `podgroups`."""
    namespace: str
    name: str
    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    time: float = 0.0
    """Of the cycle that this follows from, in seconds since 1970."""
    policy: str = ""
    """The preset or file of the policy in force."""
    known: bool = False
    """Whether the object is there, as the scheduler sees the cluster."""
    job: str = ""
    """The name of the PodGroup, if the object belongs to one."""
    phase: str = ""
    queue: str = ""
    explanation: Diagnosis | None = None
    """Why the job waits; none if it does not."""
    pod: str = ""
    """Of a pod that waits: why, in a sentence."""
    promise: Promise | None = None
    remembered: dict[str, dict[str, str]] = {}
    """What plugins remember of it, by plugin."""
    history: History = field(default_factory=History)
    """What happened to the job, or to the cluster as a whole, since this leader started."""
    since: float = 0.0
    """When the leader started, in seconds since 1970; nothing before is known."""
    lost: str = ""
    """Why the last cycle came to nothing, if it did."""
