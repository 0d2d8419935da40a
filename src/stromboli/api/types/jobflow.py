"""JobFlow and JobTemplate: jobs that depend on one another."""

from typing import Any

from msgspec import field

from stromboli.api.types.meta import Int32, Object, Record, Time, Value
from stromboli.api.types.pod import Port


class HttpHeader(Value, frozen=True):
    name: str = ""
    value: str = ""


class HttpGet(Value, frozen=True):
    """Pods of a task must answer a GET."""

    task_name: str = ""
    path: str = ""
    port: Port = 0
    http_header: HttpHeader | None = None


class TcpSocket(Value, frozen=True):
    """Pods of a task must accept a connection."""

    task_name: str = ""
    port: Port = 0


class TaskStatusProbe(Value, frozen=True):
    """Pods of a task must be in a phase."""

    task_name: str = ""
    phase: str = ""


class Probe(Value, frozen=True):
    """Whether the jobs before have come far enough; all of it must hold."""

    http_get_list: tuple[HttpGet, ...] = ()
    tcp_socket_list: tuple[TcpSocket, ...] = ()
    task_status_list: tuple[TaskStatusProbe, ...] = ()


class FlowDependsOn(Value, frozen=True):
    targets: tuple[str, ...] = ()
    probe: Probe | None = None


class Patch(Record):
    """What a flow changes in its template."""

    job_spec: dict[str, Any] = field(default_factory=dict)


class Flow(Record):
    """One job of a flow, made from the JobTemplate of its name."""

    name: str = ""
    depends_on: FlowDependsOn | None = None
    patch: Patch | None = None


class JobFlowSpec(Record):
    flows: tuple[Flow, ...] = ()
    job_retain_policy: str = ""


class FlowState(Record):
    phase: str = ""


class JobFlowStatus(Record):
    """Lists of jobs by phase are written, never read; the histories are continued."""

    state: FlowState = field(default_factory=FlowState)
    pending_jobs: tuple[str, ...] = ()
    running_jobs: tuple[str, ...] = ()
    failed_jobs: tuple[str, ...] = ()
    completed_jobs: tuple[str, ...] = ()
    terminated_jobs: tuple[str, ...] = ()
    un_know_jobs: tuple[str, ...] = ()
    job_status_list: tuple["FlowJobStatus", ...] = ()
    conditions: dict[str, Any] = field(default_factory=dict)


class RunningHistory(Record):
    """That a job was in a state, from when to when."""

    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    state: str = ""


class FlowJobStatus(Record):
    name: str = ""
    state: str = ""
    start_timestamp: Time | None = None
    end_timestamp: Time | None = None
    restart_count: Int32 = 0
    running_histories: tuple[RunningHistory, ...] = ()


class JobFlow(Object):
    """Jobs with dependencies between them."""

    spec: JobFlowSpec = field(default_factory=JobFlowSpec)
    status: JobFlowStatus = field(default_factory=JobFlowStatus)


class JobTemplateStatus(Record):
    job_depends_on_list: tuple[str, ...] = ()


class JobTemplate(Object):
    """The spec of a job, for flows to make jobs of."""

    spec: dict[str, Any] = field(default_factory=dict)
    status: JobTemplateStatus = field(default_factory=JobTemplateStatus)
