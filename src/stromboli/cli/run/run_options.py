"""The options of `stromboli run` and `stromboli submit`, as text; `submission` says what they mean."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from stromboli.cli.cluster.cluster_kinds import JOBS, QUEUES
from stromboli.cli.cluster.name_completion import completes
from stromboli.submission.job_request import PLUGINS
from stromboli.submission.run_settings import RunSettings


def _option(name: str, metavar: str, help: str, *letters: str, **more: Any) -> Any:
    return typer.Option("", f"--{name}", *letters, metavar=metavar, show_default=False, help=help, **more)


SETTINGS = {
    "name": _option("name", "NAME", "The name of the job; made up of the command unless given."),
    "replicas": _option(
        "replicas", "N", "How many pods run the command, each with its rank; 1 unless given.", "-r"
    ),
    "gang": _option("gang", "MIN", "How many of them must start together; all unless given."),
    "gpus": _option("gpus", "N", "GPUs of each pod: 2, or a resource: amd.com/gpu=2.", "-g"),
    "cpus": _option("cpus", "N", "CPUs of each pod: 4, 0.5; 1 unless given, 0 for none.", "-c"),
    "memory": _option("memory", "SIZE", "Memory of each pod, and no more: 4Gi.", "-m"),
    "queue": _option(
        "queue", "NAME", "The queue; `default` unless given.", "-q", autocompletion=completes(QUEUES)
    ),
    "priority": _option("priority", "CLASS", "A PriorityClass of the cluster."),
    "time": _option("time", "TIME", "It is ended after that: 1h30m, 1:30:00. Backfill counts on it.", "-t"),
    "array": _option("array", "INDEXES", "A pod for each index: 0-9, 1,3,5, 0-99%5 for five at a time."),
    "image": _option("image", "IMAGE", "In which image; $STROMBOLI_IMAGE unless given, none on `up --real`."),
    "plugin": _option(
        "plugin",
        "NAME",
        f"What a framework needs: {', '.join(PLUGINS)}.",
        autocompletion=lambda incomplete: [name for name in PLUGINS if name.startswith(incomplete)],
    ),
    "workdir": _option(
        "workdir", "DIR", "In which folder; this one on `up --real`, that of the image elsewhere."
    ),
}
LISTS = {
    "env": typer.Option(
        [], "--env", "-e", metavar="NAME=VALUE", help="A variable; NAME alone takes yours along. Repeatable."
    ),
    "after": typer.Option(
        [],
        "--after",
        metavar="JOB",
        help="Start when that job has completed; afterany:JOB when it has ended. Repeatable.",
        autocompletion=completes(JOBS),
    ),
}
NO_REQUEUE = typer.Option(
    False, "--no-requeue", show_default=False, help="Do not start a gang again that has lost a pod."
)

TTY = typer.Option(
    False,
    "--tty",
    show_default=False,
    help="Allocate a terminal to each container, so that lines appear at once.",
)


def with_settings(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command whose parameter `settings` is made of the options above."""
    session, *own = inspect.signature(function).parameters.values()
    at = [each.name for each in own].index("settings")
    added = [
        *(_parameter(name, str, option) for name, option in SETTINGS.items()),
        *(_parameter(name, list[str], option) for name, option in LISTS.items()),
        _parameter("no_requeue", bool, NO_REQUEUE),
        _parameter("tty", bool, TTY),
    ]

    async def command(session: Any, **values: Any) -> None:
        settings = _settings({each.name: values.pop(each.name) for each in added})
        await function(session, settings=settings, **values)

    others = [
        _parameter(each.name, eval(each.annotation, function.__globals__), each.default)
        for each in own[:at] + own[at + 1 :]
    ]
    command.__doc__, command.__name__ = function.__doc__, function.__name__
    command.__signature__ = inspect.Signature([session, *others, *added])  # type: ignore[attr-defined]
    return command


def _settings(given: dict[str, Any]) -> RunSettings:
    """The values of the options above."""
    lists: dict[str, Any] = {name: tuple(given.pop(name) or ()) for name in LISTS}
    return RunSettings(requeue=not given.pop("no_requeue"), **given, **lists)


def _parameter(name: str, annotation: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)
