"""The programs of Volcano's command line, and how their calls end (spec 07 13)."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence

import typer

from stromboli import __version__
from stromboli.cli.cli_errors import INTERRUPTED, Usage, checked_output
from stromboli.cli.cluster.cluster_errors import ClusterError, refusal_text, shown
from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.cluster.on_cluster import DEFAULT_NAMESPACE
from stromboli.cli.vcctl.vcctl_flags import FlagError, Words, parse_words, usage, with_flags_last
from stromboli.cli.vcctl.vcctl_flows import JOBFLOW_COMMANDS, JOBTEMPLATE_COMMANDS
from stromboli.cli.vcctl.vcctl_jobs import JOB_COMMANDS, SINGLE_COMMANDS
from stromboli.cli.vcctl.vcctl_pods import POD_COMMANDS
from stromboli.cli.vcctl.vcctl_queues import QUEUE_COMMANDS, VQUEUES
from stromboli.cli.vcctl.vcctl_session import Call, VcctlCommand, VcctlError, access_of
from stromboli.embedded.running_clusters import FolderError
from stromboli.kube.api_client import Client
from stromboli.kube.credentials import BadConfig
from stromboli.kube.request import ApiError, NoResponse

FAILED = 255
"""Exit status of a command that failed, as Volcano's has it."""
WRONG_USAGE = 1
GROUPS: dict[str, tuple[str, Mapping[str, VcctlCommand]]] = {
    "job": ("vcctl command line operation job", JOB_COMMANDS),
    "queue": ("Queue Operations", QUEUE_COMMANDS),
    "jobflow": ("vcctl command line operation jobflow", JOBFLOW_COMMANDS),
    "jobtemplate": ("vcctl command line operation jobtemplate", JOBTEMPLATE_COMMANDS),
    "pod": ("vcctl command line operation pod", POD_COMMANDS),
}
VERSION = "version"


def vcctl() -> None:
    _end(lambda: run_vcctl(sys.argv[1:]))


def run_vcctl(words: Sequence[str]) -> int:
    """Carry out a command line; gives the exit status."""
    try:
        group, *rest = with_flags_last(words) or ("--help",)
    except FlagError as error:
        typer.echo(shown(f"Error: {error}"), err=True)
        return WRONG_USAGE
    if group in ("-h", "--help", "help"):
        helps = [(name, help) for name, (help, _) in GROUPS.items()]
        typer.echo(usage("vcctl", (), [*helps, (VERSION, "Print the version information")]))
        return 0
    if group == VERSION:
        _print_version()
        return 0
    if group not in GROUPS:
        typer.echo(shown(f'Error: unknown command "{group}" for "vcctl"'), err=True)
        typer.echo("Run 'vcctl --help' for usage.", err=True)
        return WRONG_USAGE
    commands = GROUPS[group][1]
    if not rest or rest[0] not in commands:
        helps = [(name, command.help) for name, command in commands.items()]
        typer.echo(usage(f"vcctl {group}", (), helps))
        return 0
    name, *arguments = rest
    return _run(f"vcctl {group} {name}", commands[name], arguments, f"Failed to {name} {group}")


def _single(name: str, command: VcctlCommand) -> None:
    _end(lambda: _run(name, command, sys.argv[1:], "Failed to"))


def vsub() -> None:
    _single("vsub", SINGLE_COMMANDS["vsub"])


def vjobs() -> None:
    _single("vjobs", SINGLE_COMMANDS["vjobs"])


def vqueues() -> None:
    _single("vqueues", VQUEUES)


def vcancel() -> None:
    _single("vcancel", SINGLE_COMMANDS["vcancel"])


def vsuspend() -> None:
    _single("vsuspend", SINGLE_COMMANDS["vsuspend"])


def vresume() -> None:
    _single("vresume", SINGLE_COMMANDS["vresume"])


def _end(work: Callable[[], int]) -> None:
    """Exit with the status of the work; a reader of its output that went away ends it quietly."""
    try:
        with checked_output():
            raise SystemExit(work())
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


def _run(path: str, command: VcctlCommand, arguments: Sequence[str], failure: str) -> int:
    try:
        words = parse_words(command.flags, arguments)
    except FlagError as error:
        typer.echo(usage(path, command.flags), err=True)
        typer.echo(shown(f"Error: {error}"), err=True)
        return WRONG_USAGE
    if words.values["help"] == "true":
        typer.echo(usage(path, command.flags))
        return 0
    try:
        asyncio.run(_call(command, words))
    except typer.Exit as end:
        return end.exit_code
    except ApiError as error:
        text = refusal_text(error)
    except (NoResponse, BadConfig, FolderError, ClusterError, VcctlError, Usage) as error:
        text = str(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    else:
        return 0
    typer.echo(shown(f"{failure}: {text}"))
    return FAILED


async def _call(command: VcctlCommand, words: Words) -> None:
    access, running = access_of(words)
    namespace = words.values.get("namespace") or access.namespace or DEFAULT_NAMESPACE
    async with Client(access) as client:
        await command.work(Call(ClusterSession(client, running, namespace), words))


def _print_version() -> None:
    for title, value in (
        ("API Version", "v1alpha1"),
        ("Version", f"stromboli {__version__}"),
        ("Git SHA", ""),
        ("Built At", ""),
        ("Python Version", platform.python_version()),
        ("OS/Arch", f"{sys.platform}/{platform.machine()}"),
    ):
        typer.echo(f"{title}: {value}".rstrip())
