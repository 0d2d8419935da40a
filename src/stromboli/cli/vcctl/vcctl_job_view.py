"""`vcctl job view`: a job in Volcano's layout, with its queue, which Volcano's own leaves out (spec 07 14)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import typer

from stromboli.cli.cluster.cluster_errors import refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import EVENTS, JOBS, Manifest, name_of, namespace_of
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.embedded.tables.age_text import ago
from stromboli.kube.request import ApiError

NONE = "<none>"
COUNTS = ("succeeded", "pending", "running", "failed", "terminating", "unknown")


async def job_view(session: ClusterSession, job: Manifest) -> str:
    """All lines of a job; events only as far as they may be listed."""
    name = name_of(job)
    lines = [*_metadata(job), *_spec(job), *_status(job)]
    try:
        events = (await session.list(EVENTS, namespace_of(job), fields=f"involvedObject.name={name}")).items
    except ApiError as error:
        typer.echo(f"Failed to list events: {refusal_text(error)}", err=True)
    else:
        lines += _events(name, events)
    return "\n".join(_shown(line) for line in lines)


def _shown(line: str) -> str:
    """Harmless on a terminal, with the tabs of the layout."""
    return "\t".join(shown(part) for part in line.split("\t"))


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode() if value else NONE


def _metadata(job: Manifest) -> Iterator[str]:
    metadata = job["metadata"]
    yield f"Name:       \t{name_of(job)}"
    yield f"Namespace:  \t{namespace_of(job)}"
    yield f"Labels:     \t{_json(metadata.get('labels'))}"
    yield f"Annotations:\t{_json(metadata.get('annotations'))}"
    yield f"API Version:\t{JOBS.api_version}"
    yield f"Kind:       \t{JOBS.kind}"
    yield "Metadata:"
    yield f"  Creation Timestamp:\t{metadata.get('creationTimestamp', '')}"
    yield f"  Generate Name:     \t{metadata.get('generateName', '')}"
    yield f"  Generation:        \t{metadata.get('generation', 0)}"
    yield f"  Resource Version:  \t{metadata.get('resourceVersion', '')}"
    yield f"  UID:               \t{metadata.get('uid', '')}"


def _spec(job: Manifest) -> Iterator[str]:
    spec = job.get("spec") or {}
    plugins = spec.get("plugins") or {}
    yield "Spec:"
    yield f"  Min Available:     \t{spec.get('minAvailable', 0)}"
    yield f"  Queue:             \t{spec.get('queue', '')}"
    yield "  Plugins:"
    for name in dict.fromkeys(("env", "ssh", *plugins)):
        arguments = " ".join(map(str, plugins.get(name) or ()))
        yield f"    {name.capitalize()}:\t[{arguments}]"
    yield f"  Scheduler Name:    \t{spec.get('schedulerName', '')}"
    yield "  Tasks:"
    for task in spec.get("tasks") or ():
        yield from (f"    {line}" for line in _task(task))


def _task(task: Manifest) -> Iterator[str]:
    template = task.get("template") or {}
    pod = template.get("spec") or {}
    yield f"Name:\t{task.get('name', '')}"
    yield f"Replicas:\t{task.get('replicas', 0)}"
    yield "Template:"
    yield "  Metadata:"
    yield f"    Annotations:\t{_json((template.get('metadata') or {}).get('annotations'))}"
    yield "  Spec:"
    yield "    Containers:"
    for container in pod.get("containers") or ():
        yield from (f"      {line}" for line in _container(container))
    yield "    Image Pull Secrets:"
    for secret in pod.get("imagePullSecrets") or ():
        yield f"      Name:\t{secret.get('name', '')}"
    yield f"    Restart Policy:\t{pod.get('restartPolicy', '')}"


def _container(container: Manifest) -> Iterator[str]:
    yield "Command:"
    for word in container.get("command") or ():
        yield f"  {word}"
    yield f"Image:\t{container.get('image', '')}"
    yield f"Name: \t{container.get('name', '')}"
    yield "Ports:"
    for port in container.get("ports") or ():
        yield f"  Container Port:\t{port.get('containerPort', '')}"
        yield f"  Name:          \t{port.get('name', '')}"
    yield "Resources:"
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        yield f"  {part.capitalize()}:"
        for resource, amount in (resources.get(part) or {}).items():
            yield f"    {resource.capitalize()}:\t{amount}"
    yield f"Working Dir:\t{container.get('workingDir', '')}"


def _status(job: Manifest) -> Iterator[str]:
    status = job.get("status") or {}
    yield "Status:"
    for key in COUNTS:
        if status.get(key):
            yield f"  {key.capitalize()}:\t{status[key]}"
    for title, key in (
        ("RetryCount", "retryCount"),
        ("Min Available", "minAvailable"),
        ("Version", "version"),
    ):
        if status.get(key):
            yield f"  {title}:\t{status[key]}"
    yield "  State:"
    yield f"    Phase:\t{(status.get('state') or {}).get('phase', '')}"
    if status.get("controlledResources"):
        yield "  Controlled Resources:"
        for key, value in status["controlledResources"].items():
            yield f"    {key}:\t{value}"
    if status.get("conditions"):
        yield "  Conditions:"
        for condition in status["conditions"]:
            yield f"    Status:        \t{condition.get('status', '')}"
            yield f"    TransitionTime:\t{condition.get('lastTransitionTime', '')}"


def _events(name: str, events: list[Manifest]) -> Iterator[str]:
    own = [event for event in events if name_of(event).startswith(f"{name}.")]
    if not own:
        yield f"Events: \t{NONE}"
        return
    yield "Events:"
    yield _row("Type", "Reason", "Age", "Form", "Message")
    yield _row("----", "------", "---", "----", "-------")
    for event in own:
        source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
        message = str(event.get("message") or "").strip()
        yield _row(event.get("type"), event.get("reason"), _event_age(event), source, message)


def _row(type: object, reason: object, age: object, source: object, message: object) -> str:
    cells = (f"{type or '':15}", f"{reason or '':40}", f"{age or '':30}", f"{source or '':40}")
    return "\t".join((*cells, str(message)))


def _event_age(event: Manifest) -> str:
    now, first = time.time(), event.get("firstTimestamp") or event.get("eventTime")
    if int(event.get("count") or 0) > 1:
        return f"{ago(event.get('lastTimestamp'), now)} (x{event['count']} over {ago(first, now)})"
    return ago(first, now)
