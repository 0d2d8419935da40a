"""Volcano's Job and CronJob: what users submit, and what became of it.

Pod templates and claims are passed through as they were written, so they stay plain data.
"""

from typing import Any

from msgspec import field

from stromboli.api.meta import Count, Int32, Int64, Object, Record, Time, Value
from stromboli.api.scheduling import NetworkTopology


class LifecyclePolicy(Value, frozen=True):
    """What to do (`action`) when something happens to a pod: an event, one of several, or an exit code."""

    action: str = ""
    event: str = ""
    events: tuple[str, ...] = ()
    exit_code: Int32 | None = None
    timeout: str = ""


class DependsOn(Value, frozen=True):
    """Tasks of the same job that come first."""

    name: tuple[str, ...] = ()
    iteration: str = ""


class PartitionPolicy(Value, frozen=True):
    """Splits a task into parts that are placed, and may be restarted, together."""

    total_partitions: Int32 = 0
    partition_size: Int32 = 0
    min_partitions: Int32 = 0
    network_topology: NetworkTopology | None = None


class TaskSpec(Record):
    """One role of a job: so many pods made of one template."""

    name: str = ""
    replicas: Count = 0
    min_available: Count | None = None
    template: dict[str, Any] = field(default_factory=dict)
    policies: tuple[LifecyclePolicy, ...] = ()
    max_retry: Count = 0
    topology_policy: str = ""
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(Record):
    """A volume that all pods of a job share."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: dict[str, Any] | None = None


class JobSpec(Record):
    scheduler_name: str = ""
    min_available: Count = 0
    min_success: Count | None = None
    max_retry: Count = 0
    queue: str = ""
    priority_class_name: str = ""
    ttl_seconds_after_finished: Count | None = None
    running_estimate: str = ""
    plugins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    policies: tuple[LifecyclePolicy, ...] = ()
    volumes: tuple[VolumeSpec, ...] = ()
    network_topology: NetworkTopology | None = None
    tasks: tuple[TaskSpec, ...] = ()


class JobState(Record):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class TaskState(Record):
    """How many pods of a task are in which phase."""

    phase: dict[str, Int32] = field(default_factory=dict)


class JobCondition(Record):
    status: str = ""
    last_transition_time: Time | None = None


class JobStatus(Record):
    state: JobState = field(default_factory=JobState)
    min_available: Int32 = 0
    task_status_count: dict[str, TaskState] = field(default_factory=dict)
    pending: Int32 = 0
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 = 0
    unknown: Int32 = 0
    version: Int32 = 0
    retry_count: Int32 = 0
    running_duration: str = ""
    controlled_resources: dict[str, str] = field(default_factory=dict)
    conditions: tuple[JobCondition, ...] = ()


class Job(Object):
    """A batch job: tasks that start together, and what to do when they end or fail."""

    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


class Reference(Value, frozen=True):
    """Another object, as a CronJob remembers the jobs it started."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class CronJobSpec(Record):
    """When to start a job, what happens if the last one still runs, and how many ended ones are kept."""

    schedule: str = ""
    time_zone: str = ""
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = field(default_factory=dict)
    successful_jobs_history_limit: Count | None = None
    failed_jobs_history_limit: Count | None = None


class CronJobStatus(Record):
    active: tuple[Reference, ...] = ()
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(Object):
    """Starts a Job again and again."""

    spec: CronJobSpec = field(default_factory=CronJobSpec)
    status: CronJobStatus = field(default_factory=CronJobStatus)
