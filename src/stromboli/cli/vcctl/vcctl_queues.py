"""`vcctl queue` and `vqueues` (spec 07 15, 17)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import typer

from stromboli.cli.cluster.bus_commands import send_command
from stromboli.cli.cluster.cluster_errors import refusal_text
from stromboli.cli.cluster.cluster_kinds import POD_GROUPS, QUEUES, Manifest, name_of
from stromboli.cli.cluster.group_members import queue_of
from stromboli.cli.vcctl.vcctl_flags import Flag
from stromboli.cli.vcctl.vcctl_session import Call, VcctlCommand, VcctlError
from stromboli.cli.vcctl.vcctl_tables import NO_RESOURCES, print_fixed
from stromboli.kube.request import ApiError

COMMAND_NAMESPACE = "default"
PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
COLUMNS = ("Name", "Weight", "State", "Parent", *PHASES)
SINGLE_COLUMNS = ("Name", "Weight", "State", *PHASES[:4])


async def create(call: Call) -> None:
    if call["state"] not in ("Open", "Closed"):
        raise VcctlError(f"state {call['state']} invalid, valid states are Open and Closed")
    manifest = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": call.name},
        "spec": {"weight": call.number("weight")},
    }
    created = await call.session.create(QUEUES, manifest)
    if call["state"] == "Closed":  # a queue is created open, whatever its status says
        await send_command(call.session, "CloseQueue", QUEUES, created, COMMAND_NAMESPACE)


async def delete(call: Call) -> None:
    if not call.name:
        raise VcctlError("queue name must be specified")
    await call.existing(QUEUES, call.name)
    await call.session.delete(QUEUES, call.name)


async def operate(call: Call) -> None:
    action, weight = call["action"], call.number("weight")
    if not call.name:
        raise VcctlError("queue name must be specified")
    if not action:
        raise VcctlError("action can not be null")
    if action not in ("open", "close", "update"):
        raise VcctlError(f"action {action} invalid, valid actions are open, close and update")
    if action == "update":
        if weight <= 0:
            raise VcctlError(
                f"when update queue {call.name}, weight must be specified, the value must be greater than 0"
            )
        await call.existing(QUEUES, call.name)
        await call.session.patch(QUEUES, call.name, {"spec": {"weight": weight}})
        return
    queue = await call.existing(QUEUES, call.name)
    await send_command(call.session, f"{action.capitalize()}Queue", QUEUES, queue, COMMAND_NAMESPACE)


async def list_queues(call: Call) -> None:
    queues = (await call.session.list(QUEUES)).items
    if not queues:
        typer.echo(NO_RESOURCES)
        return
    try:
        counts = await _counts(call)
    except ApiError as error:
        raise VcctlError(f"failed to list podgroups with err: {refusal_text(error)}") from None
    _print(queues, COLUMNS, counts)


async def get(call: Call) -> None:
    if not call.name:
        raise VcctlError("name is mandatory to get the particular queue details")
    queue = await call.existing(QUEUES, call.name)
    try:
        counts = await _counts(call)
    except ApiError as error:
        text = f"failed to list podgroup for queue {call.name} with err: {refusal_text(error)}"
        raise VcctlError(text) from None
    _print([queue], COLUMNS, counts)


async def list_or_get(call: Call) -> None:
    """`vqueues`: counts are live, while the status that Volcano's reads is always 0.

    Who may not list PodGroups, which Volcano's does not read, sees the counts of the status.
    """
    if call.name:
        queues = [await call.existing(QUEUES, call.name)]
    else:
        queues = (await call.session.list(QUEUES)).items
    if not queues:
        typer.echo(NO_RESOURCES)
        return
    try:
        counts = await _counts(call)
    except ApiError:
        counts = Counter(
            {
                (name_of(queue), phase): int((queue.get("status") or {}).get(phase.lower()) or 0)
                for queue in queues
                for phase in PHASES
            }
        )
    _print(queues, SINGLE_COLUMNS, counts)


async def _counts(call: Call) -> Counter[tuple[str, str]]:
    """How many PodGroups of each queue are in each phase."""
    return Counter(
        (queue_of(group), str((group.get("status") or {}).get("phase") or ""))
        for group in (await call.session.list(POD_GROUPS, "")).items
    )


def _print(queues: list[Manifest], columns: tuple[str, ...], counts: Mapping[tuple[str, str], int]) -> None:
    rows = []
    for queue in queues:
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        cells = {
            "Name": name_of(queue),
            "Weight": spec.get("weight", 0),
            "State": status.get("state", ""),
            "Parent": spec.get("parent", ""),
            **{phase: counts.get((name_of(queue), phase), 0) for phase in PHASES},
        }
        rows.append([cells[column] for column in columns])
    print_fixed(columns, (25, *[8] * (len(columns) - 1)), rows)


def _name(default: str = "") -> Flag:
    return Flag("name", "n", default, "the name of queue")


QUEUE_COMMANDS = {
    "create": VcctlCommand(
        "creates queue",
        (
            _name("test"),
            Flag("weight", "w", "1", "the weight of the queue", number=True),
            Flag("state", "S", "Open", "the state of queue"),
        ),
        create,
    ),
    "delete": VcctlCommand("delete queue", (_name(),), delete),
    "operate": VcctlCommand(
        "operate queue",
        (
            _name(),
            Flag("weight", "w", "0", "the weight of the queue", number=True),
            Flag("action", "a", "", "operate action to queue, valid actions are open, close, update"),
        ),
        operate,
    ),
    "list": VcctlCommand("lists all the queue", (), list_queues),
    "get": VcctlCommand("get a queue", (_name(),), get),
}
VQUEUES = VcctlCommand("view or list queues", (_name(),), list_or_get)
