"""Volcano's Jobs, JobTemplates, JobFlows and CronJobs: the jobs that they come to, and the pods of each job."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec

from stromboli.admission.rules.admission_table import REVIEWS, admit, message
from stromboli.admission.rules.rule_context import Context
from stromboli.api import names
from stromboli.api.decoding import decode_as
from stromboli.api.errors import BadObject
from stromboli.api.go_scalars import rfc3339
from stromboli.api.types.cronjob import CronJob
from stromboli.api.types.jobflow import JobFlow, JobTemplate
from stromboli.api.types.meta import ObjectMeta
from stromboli.api.types.volcano_job import Command, Job, JobPod, JobPodStatus, TaskSpec
from stromboli.controllers.cronjob.reconcile import reconcile as reconcile_cron_job
from stromboli.controllers.cronjob.schedule_times import read_times
from stromboli.controllers.job.job_phases import Phase, is_live, transition_of
from stromboli.controllers.job.job_pod_group import group_of
from stromboli.controllers.job.job_pods import Member, group_name, pod_of
from stromboli.controllers.job.job_volumes import volumes_of
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, PluginFailure
from stromboli.controllers.job.plugins.job_plugin_catalog import JobPlugins
from stromboli.controllers.job.reconcile import MAX_PODS
from stromboli.controllers.job.task_dependencies import may_start
from stromboli.controllers.jobflow.flow_jobs import job_name
from stromboli.controllers.jobflow.reconcile import is_complete
from stromboli.controllers.jobflow.reconcile import reconcile as reconcile_flow
from stromboli.controllers.owner_references import BATCH_VERSION
from stromboli.simulator.expansion.observed_objects import ObservedObjects, OwnerKey

Manifest = dict[str, Any]
BATCH, FLOW = "batch.volcano.sh", "flow.volcano.sh"
_ENDING = (Phase.ABORTING, Phase.COMPLETING, Phase.TERMINATING)


def admitted(group: str, kind: str, content: Manifest, observed: ObservedObjects) -> Manifest:
    """A manifest with the defaults of admission; `BadObject` with its message if it is new and would be refused."""
    result = admit(group, kind, content, Context(observed.queues))
    if result.report and not content["metadata"].get("uid"):
        review = next(
            review
            for review in REVIEWS.values()
            if (review.resource.group, review.resource.kind) == (group, kind) and review.check is not None
        )
        raise BadObject("", message(review, result.report))
    return result.object


def stable_uid(kind: str, namespace: str, name: str) -> str:
    """The uid of an object that was never submitted."""
    return str(uuid5(NAMESPACE_URL, f"{kind}/{namespace}/{name}"))


@dataclass(slots=True)
class PlannedJob:
    """A Job whose pods are part of the plan."""

    job: Job
    where: str
    group: str
    """The name of its PodGroup: that of the job, unless it has one already."""
    plugins: tuple[JobPlugin, ...]
    manifests: list[Manifest] = field(default_factory=list)
    """The PodGroup and the claims that it lacks."""
    made: set[str] = field(default_factory=set)

    @property
    def subject(self) -> str:
        return f"Job {self.job.key}"

    @property
    def created(self) -> datetime | None:
        return self.job.metadata.creation_timestamp

    def due_pods(self, phase_of: Callable[[str], str | None]) -> Iterator[Manifest]:
        """The pods that do not exist, of tasks that may start."""
        pods = self._pods(phase_of)
        for task in self.job.spec.tasks:
            if may_start(self.job, task, pods):
                for member in self._members(task):
                    if member.name not in pods and member.name not in self.made:
                        self.made.add(member.name)
                        yield self._pod(member)

    def waiting(self, phase_of: Callable[[str], str | None]) -> Iterator[str]:
        """A sentence for each task whose pods are not made yet."""
        pods = self._pods(phase_of)
        for task in self.job.spec.tasks:
            if task.depends_on is not None and not may_start(self.job, task, pods):
                either = " or " if task.depends_on.iteration == "any" else " and "
                yield (
                    f"{self.subject}: the pods of task {task.name} ({task.replicas}) are made once "
                    f"{either.join(task.depends_on.name)} runs (dependsOn)"
                )

    def _pods(self, phase_of: Callable[[str], str | None]) -> dict[str, JobPod]:
        pods = {}
        for task in self.job.spec.tasks:
            for member in self._members(task):
                phase = phase_of(f"{self.job.namespace}/{member.name}")
                if phase is not None:
                    metadata = ObjectMeta(name=member.name, namespace=self.job.namespace)
                    pods[member.name] = JobPod(metadata=metadata, status=JobPodStatus(phase=phase))
        return pods

    def _members(self, task: TaskSpec) -> Iterator[Member]:
        return (Member(self.job, task, index) for index in range(task.replicas))

    def _pod(self, member: Member) -> Manifest:
        pod = pod_of(member)
        for plugin in self.plugins:
            plugin.dress(member, pod)
        pod["metadata"]["annotations"][names.GROUP_NAME] = self.group
        return pod


class VolcanoJobs:
    """The jobs of all kinds that make jobs."""

    def __init__(self, observed: ObservedObjects, priorities: Mapping[str, int], now: float) -> None:
        self.notes: list[str] = []
        self._observed = observed
        self._priorities = priorities
        self._now = now
        self._plugins = JobPlugins()
        self._commands: dict[str, Command] = {}
        self._templates: dict[str, JobTemplate] = {}
        self._template_files: dict[str, str] = {}
        self._used_templates: set[str] = set()
        self._jobs: list[Job] = []

    # -- what other objects need

    def add_command(self, content: Manifest, where: str) -> None:
        """A command counts for the job that it names."""
        command = decode_as(Command, msgspec.json.encode(content))
        if command.target is not None and command.target.kind == "Job":
            self._commands[f"{command.namespace}/{command.target.name}"] = command
        else:
            self.notes.append(
                f"Command {command.key} ({command.action}): a plan carries out none but those on jobs"
            )

    def add_template(self, content: Manifest, where: str) -> None:
        template = decode_as(JobTemplate, msgspec.json.encode(content))
        self._templates[template.key] = template
        self._template_files[template.key] = where

    # -- manifests of jobs

    def jobs_of_flow(self, content: Manifest) -> Iterator[Manifest]:
        """The jobs that a flow starts now; the others are told."""
        flow = decode_as(JobFlow, msgspec.json.encode(admitted(FLOW, "JobFlow", content, self._observed)))
        subject = f"JobFlow {flow.key}"
        flow.metadata.uid = flow.metadata.uid or stable_uid("JobFlow", flow.namespace, flow.name)
        inside = f"{flow.namespace}/"
        templates = {
            key.removeprefix(inside): template
            for key, template in self._templates.items()
            if key.startswith(inside)
        }
        self._used_templates |= {inside + step.name for step in flow.spec.flows}
        names_of_steps = {job_name(flow, step.name) for step in flow.spec.flows}
        own = [job for job in self._jobs if job.namespace == flow.namespace and job.name in names_of_steps]
        outcome = reconcile_flow(flow, templates, own, self._now)
        for name in outcome.missing:
            self.notes.append(
                f'{subject}: there is no JobTemplate "{name}" among the objects: no job is made of it'
            )
        by_name = {job.name: job for job in own}
        for step in flow.spec.flows:
            targets = step.depends_on.targets if step.depends_on is not None else ()
            before = [name for name in targets if not is_complete(flow, name, by_name)]
            if before and job_name(flow, step.name) not in by_name:
                verb = "has" if len(before) == 1 else "have"
                self.notes.append(
                    f"{subject}: job {job_name(flow, step.name)} is made once {' and '.join(before)} {verb} completed"
                )
        for manifest in outcome.create:
            yield _job_manifest(manifest)

    def unused_templates(self) -> Iterator[tuple[Manifest, str]]:
        """A job for each new template that no flow makes one of, and the template's file."""
        for key, template in self._templates.items():
            if key not in self._used_templates and not template.metadata.uid:
                self.notes.append(
                    f"JobTemplate {key}: planned as a job; it takes a JobFlow to make one of it"
                )
                meta = {"name": template.name, "namespace": template.namespace}
                yield (
                    _job_manifest({"metadata": meta, "spec": template.spec}),
                    self._template_files[key],
                )

    def job_of_cron_job(self, content: Manifest) -> Manifest | None:
        """The next job of a new CronJob. One that a cluster has starts its jobs by itself."""
        cron = decode_as(CronJob, msgspec.json.encode(admitted(BATCH, "CronJob", content, self._observed)))
        if cron.metadata.uid:
            return None
        if cron.spec.suspend:
            self.notes.append(f"CronJob {cron.key} is suspended: it starts no job")
            return None
        cron.metadata.uid = stable_uid("CronJob", cron.namespace, cron.name)
        due = next_time(cron.spec.schedule, cron.spec.time_zone, self._now)
        start = reconcile_cron_job(cron, (), due).start if due is not None else None
        if due is None or start is None:
            self.notes.append(f"CronJob {cron.key}: its schedule {cron.spec.schedule!r} has no next time")
            return None
        self.notes.append(as_if_due("CronJob", cron.key, due))
        return _job_manifest(start)

    # -- a job

    def plan(self, content: Manifest, where: str) -> PlannedJob | None:
        """A job with its PodGroup and claims; None if it is to have no pods now."""
        job = decode_as(Job, msgspec.json.encode(admitted(BATCH, "Job", content, self._observed)))
        self._jobs.append(job)
        key = OwnerKey(BATCH, "Job", job.namespace, job.name)
        job.metadata.uid = (
            job.metadata.uid or self._observed.uids.get(key, "") or stable_uid("Job", job.namespace, job.name)
        )
        pods = sum(task.replicas for task in job.spec.tasks)
        if pods > MAX_PODS:
            raise BadObject(
                "spec.tasks", f"{pods} pods; at most {MAX_PODS} are made for one job", f"Job {job.key}"
            )
        if job.metadata.deletion_timestamp is not None or not self._is_live(job):
            return None
        volumes = volumes_of(job, lambda name: f"{job.namespace}/{name}" in self._observed.claims)
        if problem := volumes.problem or self._queue_problem(job):
            self.notes.append(f"Job {job.key}: {problem}; it gets no pods until that is there")
            return None
        if volumes.named is not None:
            named = zip(job.spec.volumes, volumes.named, strict=True)
            job.spec.volumes = tuple(
                msgspec.structs.replace(volume, volume_claim_name=name) for volume, name in named
            )
        group, exists = self._group(job, key)
        manifests = [] if exists else [group_of(job, self._priorities)]
        for manifest in manifests:
            manifest["metadata"]["name"] = group
        return PlannedJob(job, where, group, self._plugins_of(job), [*manifests, *volumes.claims])

    def _is_live(self, job: Job) -> bool:
        """Whether a job has pods; one that was suspended, or is to be, is told."""
        phase = job.status.state.phase
        command = self._commands.get(job.key)
        if command is not None:
            leads_to = transition_of(phase, command.action).to
            if leads_to in _ENDING:
                self.notes.append(
                    f"Job {job.key}: the Command {command.name} ({command.action}) stops it: no pods"
                )
                return False
            phase = leads_to or phase
        if phase in (Phase.ABORTING, Phase.ABORTED):
            self.notes.append(
                f"Job {job.key} is suspended ({phase}): it has no pods until a Command resumes it"
            )
        return is_live(phase)

    def _queue_problem(self, job: Job) -> str:
        name = job.spec.queue or names.DEFAULT_QUEUE
        return "" if self._observed.queues.get(name) is not None else f'there is no Queue "{name}"'

    def _group(self, job: Job, key: OwnerKey) -> tuple[str, bool]:
        """The name of the job's PodGroup, and whether the files have it."""
        generated = group_name(job)
        known = self._observed.owned_groups.get(key)
        if known is None and f"{job.namespace}/{generated}" in self._observed.groups:
            known = generated
        if known is not None:
            return known, True
        return (generated if f"{job.namespace}/{job.name}" in self._observed.groups else job.name), False

    def _plugins_of(self, job: Job) -> tuple[JobPlugin, ...]:
        try:
            plugins, problems = self._plugins.for_job(job)
        except PluginFailure as error:
            self.notes.append(f"Job {job.key}: {error}; its pods are planned without job plugins")
            return ()
        self.notes += [f"Job {job.key}: {problem}" for problem in problems]
        return plugins


def next_time(schedule: str, time_zone: str, now: float) -> float | None:
    """The next time of a schedule; `BadObject` if it cannot be read."""
    try:
        return read_times(schedule, time_zone, now).next(now)
    except ValueError as error:
        raise BadObject("spec.schedule", str(error)) from None


def as_if_due(kind: str, key: str, due: float) -> str:
    """The note on a CronJob whose job is planned now."""
    when = rfc3339(datetime.fromtimestamp(due, UTC))
    return f"{kind} {key}: planned as if its next time, {when}, had come"


def _job_manifest(manifest: Manifest) -> Manifest:
    return {"apiVersion": BATCH_VERSION, "kind": "Job", **manifest}
