"""The input and output of a reconcile: the observed state of a job, and the writes that `executor` executes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from stromboli.api.types.controlled_pod import Pod
from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Command, Job, JobStatus, Manifest
from stromboli.controllers.job.job_pod_group import Priorities
from stromboli.controllers.job.observed_events import GonePod, ReconcileCache
from stromboli.controllers.job.order.job_order import NO_ORDER, JobOrder, Obstacle
from stromboli.controllers.job.plugins.job_plugin import Attachment
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.job.pod_summary import PodSummary
from stromboli.controllers.user_event import UserEvent


@dataclass(frozen=True, slots=True)
class ObservedState:
    """A job and all its objects, as far as the stores show them."""

    job: Job
    now: datetime
    plugins: JobPlugins
    pods: PodSummary
    """Pods that the job controls."""
    gone: Mapping[str, GonePod] = field(default_factory=dict)
    """Pods that an earlier reconcile observed and others have deleted since, by name."""
    group: PodGroup | None = None
    queue: Queue | None = None
    command: Command | None = None
    """The oldest command that is not executed yet."""
    cache: ReconcileCache = field(default_factory=ReconcileCache)
    priorities: Priorities = field(default_factory=dict)
    has_claim: Callable[[str], bool] = lambda name: True
    may_create: bool = True
    """False after creating pods failed, when only the status is to be written."""
    obstacle: Obstacle | None = None
    order: JobOrder = NO_ORDER
    """What follows from the jobs that it waits for."""


class SetStatus(NamedTuple):
    """Write the status if the job is unchanged since it was read; otherwise no later write is executed."""

    status: JobStatus


class PatchJob(NamedTuple):
    """Patch the job's spec and metadata."""

    patch: Manifest


class CreatePod(NamedTuple):
    """Create a pod, whose name follows from task and index; one that exists already will do."""

    manifest: Manifest


class DeletePod(NamedTuple):
    """Delete a pod; `out_of_sync`: annotate it first, so that its end is no lifecycle event."""

    pod: Pod
    out_of_sync: bool = False


class LiftGate(NamedTuple):
    """Let a pod start that was held until other jobs had ended."""

    pod: Pod


class CreateGroup(NamedTuple):
    manifest: Manifest


class PatchGroup(NamedTuple):
    group: PodGroup
    changes: Manifest


class DeleteGroup(NamedTuple):
    group: PodGroup


class CreateClaim(NamedTuple):
    manifest: Manifest


class Attach(NamedTuple):
    """Create or update these objects."""

    attachments: tuple[Attachment, ...]


class Detach(NamedTuple):
    """Delete those of these objects that the job owns."""

    attachments: tuple[Attachment, ...]


class DeleteCommand(NamedTuple):
    command: Command


Write = (
    SetStatus
    | PatchJob
    | CreatePod
    | DeletePod
    | LiftGate
    | CreateGroup
    | PatchGroup
    | DeleteGroup
    | CreateClaim
    | Attach
    | Detach
    | DeleteCommand
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The writes in order, the events to record, and when to reconcile again at the latest."""

    writes: tuple[Write, ...] = ()
    events: tuple[UserEvent, ...] = ()
    requeue_at: datetime | None = None
    cache: ReconcileCache = field(default_factory=ReconcileCache)
    """For the next reconcile, once everything is written."""
    settled: bool = False
    """Whether nothing is left to be done once everything is written, unless something else changes."""
