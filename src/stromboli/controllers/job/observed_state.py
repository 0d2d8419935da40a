"""What one look at a job sees, and what comes of it: small values that somebody else carries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from stromboli.api.types.scheduling import PodGroup, Queue
from stromboli.api.types.volcano_job import Command, Job, JobPod, JobStatus, Manifest
from stromboli.controllers.job.job_pod_group import Priorities
from stromboli.controllers.job.observed_events import Memory
from stromboli.controllers.job.plugins.job_plugin import Attachment
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins


@dataclass(frozen=True, slots=True)
class Scene:
    """A job and all there is of it."""

    job: Job
    now: datetime
    plugins: JobPlugins
    pods: Mapping[str, JobPod] = field(default_factory=dict)
    """Those that the job owns, by name."""
    group: PodGroup | None = None
    queue: Queue | None = None
    command: Command | None = None
    """An order of the user's that is still to be carried out."""
    memory: Memory = field(default_factory=Memory)
    priorities: Priorities = field(default_factory=dict)
    has_claim: Callable[[str], bool] = lambda name: True
    may_create: bool = True
    """False after creating pods failed: then only the counts are to be told."""


class SetStatus(NamedTuple):
    """Write the status, provided that the job is still as it was seen. Nothing after it happens otherwise."""

    status: JobStatus


class PatchJob(NamedTuple):
    """Change the job itself."""

    patch: Manifest


class CreatePod(NamedTuple):
    """Made under a name that follows from task and index; one that exists already is fine."""

    manifest: Manifest


class DeletePod(NamedTuple):
    """Delete that very pod; `mark`: say first that its end means nothing."""

    pod: JobPod
    mark: bool = False


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
    """See to it that these exist."""

    attachments: tuple[Attachment, ...]


class Detach(NamedTuple):
    """Delete them, as far as the job owns them."""

    attachments: tuple[Attachment, ...]


class DeleteCommand(NamedTuple):
    command: Command


Write = (
    SetStatus
    | PatchJob
    | CreatePod
    | DeletePod
    | CreateGroup
    | PatchGroup
    | DeleteGroup
    | CreateClaim
    | Attach
    | Detach
    | DeleteCommand
)


class Tell(NamedTuple):
    """An event on the job."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is to be done, in order, and when to look again if nothing happens before."""

    writes: tuple[Write, ...] = ()
    events: tuple[Tell, ...] = ()
    again: datetime | None = None
    memory: Memory = field(default_factory=Memory)
    """To be remembered once everything is written."""
