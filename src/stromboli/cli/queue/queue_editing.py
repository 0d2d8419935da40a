"""`stromboli queue create` and `set`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import typer

from stromboli.api import names
from stromboli.api.name_rules import dns_subdomain_errors
from stromboli.api.patches import merged
from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.change_options import (
    DRY_RUN,
    TIMEOUT,
    WAIT,
    DryRun,
    report_changes,
    seconds_of,
    wait_until,
)
from stromboli.cli.cluster.chosen_objects import Failures, plain_name
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.cluster.cluster_kinds import QUEUES, Manifest, full_name, name_of
from stromboli.cli.cluster.manifest_files import manifests_of_kinds
from stromboli.cli.cluster.name_completion import completes
from stromboli.cli.cluster.object_output import OUTPUT, ObjectFormat
from stromboli.cli.cluster.on_cluster import on_cluster
from stromboli.cli.queue.queue_fields import FIELDS, changes_of, spec_patch, spec_with
from stromboli.cli.queue.queue_names import QUEUE_NAME, spec_of_queue, state_of_queue
from stromboli.kube.request import ApiError

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession

OPTIONS = {name: "--" + re.sub("(?=[A-Z])", "-", name).lower().replace(".", "-") for name in FIELDS}
"""The flag of each field."""
ASSIGNMENTS = typer.Argument(
    None,
    metavar="[FIELD=VALUE...]",
    show_default=False,
    help="Fields, such as weight=2 or deserved.cpu=4.",
)


def with_field_options(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """Gives a command a flag for each field, and the coroutine the flags as `fields`."""

    async def command(session: ClusterSession, **values: Any) -> None:
        flags = {name: values.pop(_variable(name)) for name in FIELDS}
        await function(session, fields=flags, **values)

    own = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "fields"
    ]
    added = [
        inspect.Parameter(
            _variable(name),
            inspect.Parameter.KEYWORD_ONLY,
            default=_option(name, field.help),
            annotation="str | None",
        )
        for name, field in FIELDS.items()
    ]
    kept = [own[0], *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own[1:])]
    command.__signature__ = inspect.Signature([*kept, *added])  # type: ignore[attr-defined]
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    return command


def _variable(name: str) -> str:
    return f"field_{name.replace('.', '_')}"


def _option(name: str, help: str) -> Any:
    completion = completes(QUEUES) if name == "parent" else None
    metavar = FIELDS[name].metavar
    return typer.Option(
        None, OPTIONS[name], metavar=metavar, show_default=False, help=help, autocompletion=completion
    )


@on_cluster(namespaced=False)
@with_field_options
async def create(
    session: ClusterSession,
    name: str = typer.Argument("", metavar="[NAME]", show_default=False, help="The new queue."),
    assignments: list[str] = ASSIGNMENTS,
    files: list[str] = typer.Option(
        [],
        "--filename",
        "-f",
        metavar="FILE",
        show_default=False,
        help="Queues from manifests; - is standard input.",
    ),
    wait: bool = WAIT,
    timeout: str = TIMEOUT,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
    fields: dict[str, str | None] = {},  # noqa: B006 - never changed
) -> None:
    """Create a queue from flags or FIELD=VALUE, or queues from files.

    With --wait until it is Open, when jobs may be submitted to it.

    Exit status 0, 1 if the cluster refuses, 2 for a wrong command line, 124 after --timeout.
    """
    longest = seconds_of(timeout)
    if bool(name) == bool(files):
        raise Usage("give the name of a queue, or files with -f" + ": not both" * bool(name))
    if files:
        if assignments or any(value is not None for value in fields.values()):
            raise Usage("-f has the fields of its queues: leave out the others")
        queues = [queue for _, queue in manifests_of_kinds(files, [QUEUES])]
    else:
        name = plain_name(QUEUES, name)
        if errors := dns_subdomain_errors(name):
            raise Usage(shown(f"{name[:60]}: no name of a queue: {errors[0]}"))
        spec = spec_with(changes_of(assignments or (), fields))
        queues = [
            {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec}
        ]
    await _create(session, queues, wait, longest, dry_run, output)


async def _create(
    session: ClusterSession,
    queues: list[Manifest],
    wait: bool,
    timeout: float,
    dry_run: DryRun,
    output: ObjectFormat,
) -> None:
    failures = Failures()
    created: list[Manifest] = []
    for queue in queues:
        made: Manifest | None = queue
        if dry_run is not DryRun.CLIENT:
            made = await failures.attempt(session.create(QUEUES, queue, "", dry_run is DryRun.SERVER))
        created += [made] if made is not None else []
    if created:
        report_changes(QUEUES, created, "created", output, dry_run)
    if wait and dry_run is DryRun.NONE:
        for queue in created:
            await failures.attempt(until_open(session, name_of(queue), timeout))
    failures.end()


async def until_open(session: ClusterSession, name: str, timeout: float) -> None:
    """Until the controller has opened a queue."""

    def reached(queue: Manifest | None) -> bool:
        if queue is None:
            raise ClusterError(f"{full_name(QUEUES, name)} was deleted before it was open")
        return (queue.get("status") or {}).get("state") == names.QUEUE_OPEN

    await wait_until(
        session,
        QUEUES,
        name,
        reached,
        timeout,
        meaning="the queue is Open",
        tell=lambda queue: f"{name} is {(queue or {}).get('status', {}).get('state') or 'not open yet'}",
    )


@on_cluster(namespaced=False)
@with_field_options
async def set_fields(
    session: ClusterSession,
    name: str = QUEUE_NAME,
    assignments: list[str] = ASSIGNMENTS,
    dry_run: DryRun = DRY_RUN,
    output: ObjectFormat = OUTPUT,
    fields: dict[str, str | None] = {},  # noqa: B006 - never changed
) -> None:
    """Change fields of a queue, by flags or FIELD=VALUE.

    A list of resources is set as a whole; deserved.cpu=4 sets one of them. FIELD= removes a field, and deserved.cpu=
    one resource.

    Exit status 0, 1 if the cluster refuses or the queue does not exist, 2 for a wrong command line.
    """
    name = plain_name(QUEUES, name)
    changes = changes_of(assignments or (), fields)
    if not changes:
        raise Usage(f"say what to set: FIELD=VALUE, where fields are {', '.join(FIELDS)}")
    queue = await session.get(QUEUES, name)
    patch = spec_patch(spec_of_queue(queue), changes)
    if dry_run is DryRun.CLIENT:
        changed = merged(queue, {"spec": patch})
    else:
        changed = await _patched(session, queue, patch, dry_run is DryRun.SERVER)
    is_same = spec_of_queue(changed) == spec_of_queue(queue)
    report_changes(QUEUES, [changed], "unchanged" if is_same else "changed", output, dry_run)


async def _patched(session: ClusterSession, queue: Manifest, patch: Manifest, dry_run: bool) -> Manifest:
    name = name_of(queue)
    try:
        return await session.patch(QUEUES, name, {"spec": patch}, dry_run=dry_run)
    except ApiError as error:
        state = state_of_queue(queue)
        if state in (names.QUEUE_OPEN, names.QUEUE_CLOSED) or (
            error.status == 403 and "cannot" in str(error)
        ):
            raise
        raise ClusterError(
            f"{full_name(QUEUES, name)} is {state}, and such a queue cannot be changed: wait until it is Closed"
            f" (`stromboli queue close {name} --wait`), or open it; {refusal_text(error)}"
        ) from None
