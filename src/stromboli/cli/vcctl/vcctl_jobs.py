"""`vcctl job`, and the single commands for jobs (spec 07 14, 17)."""

from __future__ import annotations

import os
import shlex
import time
from typing import Any

import typer

from stromboli.api import names
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.bus_commands import send_command
from stromboli.cli.cluster.cluster_errors import shown
from stromboli.cli.cluster.cluster_kinds import JOBS, Manifest, name_of, namespace_of
from stromboli.cli.cluster.manifest_files import read_manifests
from stromboli.cli.vcctl.vcctl_flags import Flag
from stromboli.cli.vcctl.vcctl_job_view import job_view
from stromboli.cli.vcctl.vcctl_session import Call, VcctlCommand, VcctlError
from stromboli.cli.vcctl.vcctl_tables import NO_RESOURCES, print_fixed
from stromboli.embedded.tables.age_text import instant

RESOURCES = "cpu=1000m,memory=100Mi"
JOB_TYPE = "volcano.sh/job-type"


def job_flags(name: str, namespace: str, default: str = "") -> tuple[Flag, ...]:
    """Name and namespace; their letters differ between `vcctl job` and the single commands."""
    return (
        Flag("name", name, "", "the name of job"),
        Flag("namespace", namespace, default, "the namespace of job"),
    )


def _run_flags(name: str, namespace: str) -> tuple[Flag, ...]:
    from_environment = os.environ.get if name == "n" else lambda _, default: default
    return (
        *job_flags(name, namespace, from_environment("VOLCANO_DEFAULT_JOB_NAMESPACE", "")),
        Flag(
            "image", "i", from_environment("VOLCANO_DEFAULT_IMAGE", "busybox"), "the container image of job"
        ),
        Flag("min", "m", "1", "the minimal available tasks of job", number=True),
        Flag("replicas", "r", "1", "the total tasks of job", number=True),
        Flag("requests", "R", RESOURCES, "the resource request of the task"),
        Flag("limits", "L", RESOURCES, "the resource limit of the task"),
        Flag(
            "scheduler",
            "S",
            from_environment("VOLCANO_SCHEDULER_NAME", names.SCHEDULER_NAME),
            "the scheduler for this job",
        ),
    )


LIST_FLAGS = (
    Flag("scheduler", "S", "", "list job with specified scheduler name"),
    Flag("all-namespaces", "", "false", "list jobs in all namespaces", boolean=True),
    Flag("selector", "", "", "fuzzy matching jobName"),
)


async def run(call: Call) -> None:
    requests, limits = _resources(call["requests"]), _resources(call["limits"])
    if file := call.words.values.get("filename", ""):
        manifest = _from_file(file)
    elif not call.name:
        raise VcctlError("job name cannot be left blank")
    else:
        manifest = _job(call, requests, limits)
    namespace = namespace_of(manifest) if not call.is_given("namespace") else ""
    created = await call.session.create(JOBS, manifest, namespace or call.session.namespace)
    typer.echo(shown(f"run job {name_of(created)} successfully"))


def _from_file(path: str) -> Manifest:
    if ".yaml" not in path and ".yml" not in path:
        raise VcctlError("only support yaml file")
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise VcctlError(f"failed to read file, err: open {path}: {error.strerror}") from None
    try:
        manifest = read_manifests([path])[0][1]
    except Usage as error:
        raise VcctlError(f"failed to unmarshal file, err:  {error}") from None
    if manifest.get("kind") not in (None, JOBS.kind):
        raise VcctlError(f"{path}: a {manifest.get('kind')}, and a Job is needed")
    return {**manifest, "apiVersion": JOBS.api_version, "kind": JOBS.kind}


def _job(call: Call, requests: dict[str, str], limits: dict[str, str]) -> Manifest:
    container: Manifest = {
        "name": call.name,
        "image": call["image"],
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": limits, "requests": requests},
    }
    if command := call.words.values.get("command", ""):
        container["command"] = _split(command)
    template = {
        "metadata": {"name": call.name, "labels": {"job.volcano.sh": call.name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": call.name},
        "spec": {
            "minAvailable": call.number("min"),
            "schedulerName": call["scheduler"],
            "tasks": [{"replicas": call.number("replicas"), "template": template}],
        },
    }


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise VcctlError(f"invalid command {command}: {error}") from None


def _resources(text: str) -> dict[str, str]:
    """`cpu=1,memory=100Mi`."""
    amounts = {}
    for part in text.split(",") if text else ():
        name, equals, amount = part.partition("=")
        if not equals or "=" in amount:
            raise VcctlError(f"invalid argument syntax {part}, expected <resource>=<value>")
        amounts[name] = amount
    return amounts


# -- reading


async def list_jobs(call: Call) -> None:
    everywhere = call.switch("all-namespaces")
    listed = await call.session.list(JOBS, "" if everywhere else None)
    if not listed.items:
        typer.echo(NO_RESOURCES)
        return
    queue, scheduler = call.words.values.get("queue", ""), call["scheduler"]
    jobs = [
        job
        for job in listed.items
        if (not queue or _spec(job).get("queue") == queue)
        and (not scheduler or _spec(job).get("schedulerName") == scheduler)
        and call["selector"] in name_of(job)
    ]
    first = [("Namespace", namespace_of)] if everywhere else []
    columns = [*first, ("Name", name_of)]
    fitted = [max(len(title), *(len(value(job)) for job in jobs), 0) + 3 for title, value in columns]
    print_fixed(
        [title for title, _ in columns] + [title for title, _ in COUNTS],
        fitted + [width for _, width in COUNTS],
        [[*(value(job) for _, value in columns), *_counts(job)] for job in jobs],
    )


COUNTS = (
    ("Creation", 15),
    ("Phase", 12),
    ("JobType", 12),
    ("Replicas", 12),
    ("Min", 6),
    ("Pending", 10),
    ("Running", 10),
    ("Succeeded", 12),
    ("Failed", 10),
    ("Unknown", 12),
    ("RetryCount", 10),
)


def _counts(job: Manifest) -> list[object]:
    status = job.get("status") or {}
    created = instant(job["metadata"].get("creationTimestamp"))
    day = time.strftime("%Y-%m-%d", time.localtime(created)) if created is not None else ""
    kind = (job["metadata"].get("labels") or {}).get(JOB_TYPE) or "Batch"
    replicas = sum(int(task.get("replicas") or 0) for task in _spec(job).get("tasks") or ())
    counts = [
        status.get(key) or 0
        for key in ("minAvailable", "pending", "running", "succeeded", "failed", "unknown", "retryCount")
    ]
    return [day, (status.get("state") or {}).get("phase") or "", kind, replicas, *counts]


def _spec(job: Manifest) -> dict[str, Any]:
    return job.get("spec") or {}


async def view(call: Call) -> None:
    if not call.name:
        raise VcctlError("job name (specified by --name or -N) is mandatory to view a particular job")
    job = await call.existing(JOBS, call.name)
    typer.echo(await job_view(call.session, job))


async def list_or_view(call: Call) -> None:
    await (view if call.name else list_jobs)(call)


# -- changing


async def _command(call: Call, verb: str, action: str) -> None:
    if not call.name:
        raise VcctlError(f"job name is mandatory to {verb} a particular job")
    job = await call.existing(JOBS, call.name)
    await send_command(call.session, action, JOBS, job, call.session.namespace)


async def suspend(call: Call) -> None:
    await _command(call, "suspend", "AbortJob")


async def resume(call: Call) -> None:
    await _command(call, "resume", "ResumeJob")


async def delete(call: Call) -> None:
    await _delete(call, "delete")


async def cancel(call: Call) -> None:
    await _delete(call, "cancel")


async def _delete(call: Call, verb: str) -> None:
    if not call.name:
        raise VcctlError(f"job name is mandatory to {verb} a particular job")
    await call.existing(JOBS, call.name)
    await call.session.delete(JOBS, call.name)
    typer.echo(shown(f"{verb} job {call.name} successfully"))


_NAMED = job_flags("N", "n")
JOB_COMMANDS = {
    "run": VcctlCommand(
        "run job by parameters from the command line",
        (*_run_flags("N", "n"), Flag("filename", "f", "", "the yaml file of job")),
        run,
    ),
    "list": VcctlCommand(
        "list job information",
        (_NAMED[1], Flag("queue", "q", "", "list job with specified queue name"), *LIST_FLAGS),
        list_jobs,
    ),
    "view": VcctlCommand("show job information", _NAMED, view),
    "suspend": VcctlCommand("abort a job", _NAMED, suspend),
    "resume": VcctlCommand("resume a job", _NAMED, resume),
    "delete": VcctlCommand("delete a job", _NAMED, delete),
}
_SINGLE = job_flags("n", "N")
SINGLE_COMMANDS = {
    "vsub": VcctlCommand(
        "submit a job",
        (*_run_flags("n", "N"), Flag("command", "c", "", "the command of the job's container")),
        run,
    ),
    "vjobs": VcctlCommand("view or list jobs", (*_SINGLE, *LIST_FLAGS), list_or_view),
    "vcancel": VcctlCommand("cancel a job", _SINGLE, cancel),
    "vsuspend": VcctlCommand("suspend a job", _SINGLE, suspend),
    "vresume": VcctlCommand("resume a job", _SINGLE, resume),
}
