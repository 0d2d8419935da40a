"""What the rules may know besides the object itself."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from stromboli.admission.rules.resource_groups import ResourceGroup
from stromboli.api import names
from stromboli.api.types.scheduling import Queue

JOB_PLUGINS = ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")


class QueueIndex:
    """The queues that exist, by name and by parent."""

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._by_name: dict[str, Queue] = {}
        self._by_parent: dict[str, dict[str, Queue]] = {}
        for queue in queues:
            self.put(queue)

    def put(self, queue: Queue) -> None:
        self.drop(queue.name)
        self._by_name[queue.name] = queue
        self._by_parent.setdefault(queue.spec.parent, {})[queue.name] = queue

    def drop(self, name: str) -> None:
        old = self._by_name.pop(name, None)
        if old is not None:
            siblings = self._by_parent[old.spec.parent]
            del siblings[name]
            if not siblings:
                del self._by_parent[old.spec.parent]

    def get(self, name: str) -> Queue | None:
        return self._by_name.get(name)

    def children(self, parent: str) -> list[Queue]:
        """Queues that name this one as their parent, by name."""
        children = self._by_parent.get(parent, {})
        return [children[name] for name in sorted(children)]

    def all(self) -> Iterable[Queue]:
        return self._by_name.values()


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags of the admission server that change the rules."""

    scheduler_names: tuple[str, ...] = (names.SCHEDULER_NAME,)
    job_plugins: tuple[str, ...] = JOB_PLUGINS
    max_queue_depth: int = 5
    root_queue_protection: bool = True
    queue_allocated_pods_check: bool = False
    scheduling_gates: bool = False
    resource_groups: tuple[ResourceGroup, ...] = ()
    """Groups of the admission configuration."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules know besides the object. Without queues (None), queues are not checked."""

    queues: QueueIndex | None = None
    namespace_queue: str | None = None
    """The queue that the object's namespace names for its groups."""
    settings: Settings = field(default_factory=Settings)
    unfinished_job: str = ""
    """A job that needs the queue that is being deleted, as `Job default/train`; with `queue_allocated_pods_check`."""
