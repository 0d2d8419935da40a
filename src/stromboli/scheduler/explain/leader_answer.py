"""The response of the leader to a question about an object: plain data, as JSON."""

from __future__ import annotations

from msgspec import Struct, field

from stromboli.engine.explanation.diagnosis import Diagnosis
from stromboli.engine.explanation.event_history import History
from stromboli.engine.plugin import Promise


class LeaderAnswer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the leader knows about an object after its last cycle."""

    resource: str
    """The resource in the path of the request, such as `podgroups`."""
    namespace: str
    name: str
    leader: str = ""
    """The identity of the leader, as its Lease has it."""
    time: float = 0.0
    """When the last cycle started, in seconds since 1970."""
    policy: str = ""
    """The preset or file of the active policy."""
    known: bool = False
    """Whether the scheduler knows the object."""
    job: str = ""
    """The name of the PodGroup, if the object belongs to one."""
    phase: str = ""
    queue: str = ""
    explanation: Diagnosis | None = None
    """Why the job waits; None if it does not."""
    pod: str = ""
    """Why a pod waits, in a sentence."""
    promise: Promise | None = None
    remembered: dict[str, dict[str, str]] = {}
    """The texts of plugins about the object, by plugin."""
    history: History = field(default_factory=History)
    """The history of the job and of the policy since this leader started."""
    since: float = 0.0
    """When the leader started, in seconds since 1970; the history starts then."""
    lost: str = ""
    """Why the last cycle was lost, if it was."""

    @property
    def is_empty(self) -> bool:
        """Whether neither the object nor a history of it is known."""
        return not self.known and not self.history.entries
