"""What grids may set: the options of `stromboli simulate`, read from the command itself."""

from __future__ import annotations

import math
from typing import Any

import typer
from typer.main import get_command

from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.simulate import simulate
from stromboli.simulator.sweeps.simulate_vocabulary import PathUse, SimulateOption, Vocabulary

FILES = ("FILE", "CSV", "PATH", "DIR")
"""What stands for a file or folder in the help of an option."""
FILES_OR_NOTATION = ("NODES",)
WORKLOADS = ("swf", "openb-pods", "workload", "filename")
OWN = "the sweep sets it itself, for each run"
REFUSED = {
    **dict.fromkeys(("save", "output", "quiet", "no-progress"), OWN),
    **dict.fromkeys(
        ("report", "csv", "plots", "format"),
        "runs would write over each other; `stromboli compare` shows them",
    ),
    "submit": "--submit asks a question of a cluster, and runs no workload",
    **dict.fromkeys(
        ("kubeconfig", "context", "data"), "a live cluster is another at each run; take a dump of it"
    ),
}


def grid_vocabulary() -> Vocabulary:
    """All options of the command, by their long names."""
    group = subcommands("")
    group.command("simulate", cls=Command)(simulate)
    options: dict[str, SimulateOption] = {}
    for parameter in get_command(group).params:
        names = [name for name in parameter.opts if name.startswith("--")]
        if names and names[0] != "--help":
            option = _option(parameter, names[0])
            options[option.name] = option
    allowed = {name: option for name, option in options.items() if name not in REFUSED}
    return Vocabulary(allowed, REFUSED)


def _option(parameter: Any, flag: str) -> SimulateOption:
    name = flag.removeprefix("--")
    return SimulateOption(
        name,
        flag,
        is_switch=bool(parameter.is_flag),
        off_flag=next(iter(parameter.secondary_opts), ""),
        repeatable=bool(parameter.multiple),
        path_use=_path_use(parameter.metavar or ""),
        is_workload=name in WORKLOADS,
        problem=lambda text: _problem(parameter, text),
    )


def _path_use(metavar: str) -> PathUse:
    if metavar in FILES:
        return PathUse.ALWAYS
    return PathUse.IF_THERE if metavar in FILES_OR_NOTATION else PathUse.NEVER


def _problem(parameter: Any, text: str) -> str:
    """What the command line would say of a value."""
    try:
        value = parameter.type.convert(text, parameter, None)
    except typer.BadParameter as error:
        return error.message.rstrip(".")
    except ValueError as error:
        return str(error)
    if isinstance(value, float) and not math.isfinite(value):
        return "no finite number"
    return "" if text else "empty; leave the option out, or write null"
