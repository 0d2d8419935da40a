"""The group of commands: each is imported when it is invoked, so that `stromboli --help` stays quick."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from stromboli.api.go_scalars import boolean
from stromboli.cli.cli_errors import BAD_INPUT, checked_output, is_expected, messages_of, print_error

ELSEWHERE = {
    "sbatch": "submit",
    "srun": "run",
    "squeue": "job list",
    "scancel": "job delete",
    "sinfo": "status",
    "sacct": "job describe",
    "logs": "job logs",
    "get": "job get",
    "list": "job list",
    "ps": "job list",
    "describe": "job describe",
    "delete": "job delete",
    "cancel": "job delete",
    "wait": "job wait",
    "suspend": "job suspend",
    "resume": "job resume",
    "scale": "job scale",
    "create": "job run",
}
"""What users of Slurm and kubectl type, and the command that does it."""


def subcommands(help: str) -> typer.Typer:
    """A group within a command. Help is plain text, as coloured panels take longer than most commands."""
    return typer.Typer(
        help=help,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


class Command(TyperCommand):
    """A command whose switches may have a value, as in Go: `--lenient-policy=false` is `--no-lenient-policy`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [self._without_value(argument) for argument in args])

    def _without_value(self, argument: str) -> str:
        name, _, value = argument.partition("=")
        for option in self.params:
            if name in option.opts and option.secondary_opts and (on := boolean(value)) is not None:
                return name if on else option.secondary_opts[0]
        return argument


class CommandEntry(NamedTuple):
    """Where a command is defined, and the line that the list of commands has for it."""

    target: str
    """`module:name` of a function, or of a `Typer` with commands of its own."""
    help: str
    context_settings: dict[str, Any] | None = None


class LazyCommand(TyperCommand):
    """A command in the list of commands, not imported yet."""

    def __init__(self, name: str, entry: CommandEntry) -> None:
        super().__init__(name, help=entry.help)
        self.entry = entry

    def load(self) -> Any:
        """The command itself."""
        module, _, attribute = self.entry.target.partition(":")
        target = getattr(importlib.import_module(module), attribute)
        if not isinstance(target, typer.Typer):
            function, target = target, subcommands("")
            target.command(self.name, cls=Command, context_settings=self.entry.context_settings)(function)
        command = get_command(target)
        command.name = self.name
        return command


class CommandGroup(TyperGroup):
    """Commands from a table; errors about their input become a message and an exit status."""

    sections: dict[str, dict[str, CommandEntry]]
    """The commands by the title under which help lists them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in self.table().items():
            self.add_command(LazyCommand(name, entry))

    @classmethod
    def table(cls) -> dict[str, CommandEntry]:
        """All commands, in the order of help."""
        return {name: entry for section in cls.sections.values() for name, entry in section.items()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Under a title each, with names in one column."""
        widest = max(map(len, self.table()))
        for title, section in self.sections.items():
            rows = [
                (name.ljust(widest), self.commands[name].get_short_help_str(formatter.width - 6 - widest))
                for name in section
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def main(self, *arguments: Any, **settings: Any) -> Any:
        with checked_output():
            return super().main(*arguments, **settings)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and (ours := ELSEWHERE.get(args[0])):
            ctx.fail(f"No such command '{args[0]}'; here it is `stromboli {ours}`.")
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, LazyCommand) else command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            if not is_expected(error):
                raise
            for message in messages_of(error):
                print_error(message)
            raise typer.Exit(BAD_INPUT) from None
