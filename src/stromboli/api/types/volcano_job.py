"""Volcano's Job as its controller reads it. Pod templates and claims stay plain, so that nothing of them is lost."""

from typing import Any

from msgspec import field

from stromboli.api.types.meta import Count, Int32, Object, OwnerReference, Record, Time, Value
from stromboli.api.types.scheduling import NetworkTopology

Manifest = dict[str, Any]


class LifecyclePolicy(Value, frozen=True):
    """The action on an event or exit code, at once or after a timeout."""

    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: Int32 | None = None
    timeout: str = ""

    @property
    def all_events(self) -> frozenset[str]:
        return frozenset(self.events) | ({self.event} if self.event else set())


class DependsOn(Value, frozen=True):
    """Tasks that must be ready before pods of this one are created."""

    name: tuple[str, ...] = ()
    iteration: str = ""


class PartitionPolicy(Value, frozen=True):
    """How the pods of a task form partitions that start and restart together."""

    total_partitions: Count = 0
    partition_size: Count = 0
    min_partitions: Count = 0
    network_topology: NetworkTopology | None = None


class TaskSpec(Record):
    """One role of a job: so many pods of one template."""

    name: str = ""
    replicas: Count = 0
    min_available: Count | None = None
    template: Manifest = field(default_factory=dict)
    policies: tuple[LifecyclePolicy, ...] = ()
    max_retry: Int32 = 0
    topology_policy: str = ""
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class JobVolume(Value, frozen=True):
    """A claim that every pod of the job mounts."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: Manifest | None = None


class JobSpec(Record):
    scheduler_name: str = ""
    min_available: Count = 0
    min_success: Count | None = None
    max_retry: Count = 3
    queue: str = ""
    priority_class_name: str = ""
    ttl_seconds_after_finished: Count | None = None
    tasks: tuple[TaskSpec, ...] = ()
    policies: tuple[LifecyclePolicy, ...] = ()
    plugins: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    volumes: tuple[JobVolume, ...] = ()
    network_topology: NetworkTopology | None = None


class JobState(Value, frozen=True):
    """The phase; since when, by which action and why."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class JobCondition(Value, frozen=True):
    """When the job last entered a phase."""

    status: str = ""
    last_transition_time: Time | None = None


class TaskState(Value, frozen=True):
    """How many pods of a task are in which phase."""

    phase: dict[str, int] = field(default_factory=dict)


class JobStatus(Record):
    state: JobState = JobState()
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    task_status_count: dict[str, TaskState] = field(default_factory=dict)
    running_duration: str = ""
    controlled_resources: dict[str, str] = field(default_factory=dict)
    conditions: tuple[JobCondition, ...] = ()


class Job(Object):
    """What a user submits: tasks of pods that start, fail and end together."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


class Command(Object):
    """A user's command to a job or a queue, executed once and deleted."""

    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""
