"""`stromboli policy`: the policies that come along, whether one of yours is right, and the one in force."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stromboli.cli.cli_errors import BAD_INPUT, Usage, print_error, print_note, print_warning
from stromboli.cli.cluster.change_options import DRY_RUN, DryRun
from stromboli.cli.cluster.on_cluster import on_cluster, on_cluster_if
from stromboli.cli.command_group import Command, subcommands
from stromboli.cli.output import Format, has_colours, write_as
from stromboli.cli.policy_options import PLUGINS_DIR, preset_names, preset_source, read_policy
from stromboli.policy.policy import Policy, PolicyError, load_policy
from stromboli.policy.policy_differences import PolicyDifference, policy_differences
from stromboli.policy.presets import PRESETS

if TYPE_CHECKING:
    from stromboli.cli.cluster.cluster_session import ClusterSession
    from stromboli.cli.policy.policy_place import PolicyPlace
    from stromboli.engine.catalog import Catalog

policy = subcommands("Show, check and compare policies, and put one in force on a cluster.")

CONFIG_MAP = typer.Option(
    "volcano-system/volcano-scheduler-configmap",
    "--configmap",
    metavar="NAMESPACE/NAME",
    help="Where the cluster keeps its policy.",
)
KEY = typer.Option("volcano-scheduler.conf", "--key", metavar="KEY", help="The key there.")
FILE = typer.Argument(None, help="Volcano's scheduler configuration file, or - for standard input.")
PRESET = typer.Option(
    None,
    "--preset",
    metavar="NAME",
    help="A policy that comes along in the place of a file.",
    autocompletion=preset_names,
)


@policy.command(cls=Command)
@on_cluster_if("in_force")
async def show(
    session: ClusterSession | None,
    name: str | None = typer.Argument(
        None,
        help="A preset, or `default` for the built-in policy; without it, all names.",
        autocompletion=preset_names,
    ),
    in_force: bool = typer.Option(
        False, "--in-force", show_default=False, help="The policy of the cluster instead."
    ),
    config_map: str = CONFIG_MAP,
    key: str = KEY,
) -> None:
    """Print a policy as a file that you could have written: one that comes along, or the one in force on a cluster.

    Of that the leader says since when, and what was wrong with the last edit, if you have the right to ask it.

    Exit status 0, 1 if the cluster refuses, 2 for a wrong command line.
    """
    if session is not None:
        if name is not None:
            raise Usage(f"{name} and --in-force exclude each other: give one of them")
        place = await _place(session, config_map, key)
        _print_in_force(place)
        await _print_leader_policy(session, place)
    elif name is None:
        typer.echo("\n".join(PRESETS))
    else:
        typer.echo(preset_source(name), nl=False)


def _print_in_force(place: PolicyPlace) -> None:
    """The text on standard output, as it is unless that is a terminal; where it is kept on standard error."""
    if not place.text.strip():
        print_note(
            f"{_shown(place.origin)} has no policy, so the built-in one is in force:"
            " `stromboli policy show default` prints it"
        )
        return
    print_note(f"from {_shown(place.origin)}")
    if not sys.stdout.isatty():
        typer.echo(place.text, nl=not place.text.endswith("\n"))
        return
    for line in place.text.splitlines():
        typer.echo(_shown(line))


async def _print_leader_policy(session: ClusterSession, place: PolicyPlace) -> None:
    from stromboli.cli.policy.leader_policy import print_leader_policy

    await print_leader_policy(session, place.text)


@policy.command(cls=Command)
def check(
    file: str = typer.Argument(help="Volcano's scheduler configuration file, or - for standard input."),
    output: Format = typer.Option(Format.TABLE, "-o", "--output"),
    lenient: bool = typer.Option(
        True,
        "--lenient-policy/--no-lenient-policy",
        show_default=False,
        help="Report what Volcano ignores in a policy, such as unknown keys, as warnings, as `up` and `scheduler` do;"
        " =false reports errors. Default: true.",
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """Say what is wrong with a policy, by file and line. The exit status is 1 if anything is."""
    errors: tuple[str, ...] = ()
    try:
        checked = read_policy(file, _catalog(plugins_dir), lenient)
        warnings = checked.warnings
    except PolicyError as error:
        errors, warnings = error.errors, error.warnings
    if output is not Format.TABLE:
        write_as(output, {"schema": 1, "ok": not errors, "errors": list(errors), "warnings": list(warnings)})
    else:
        for message in errors:
            print_error(message)
        for message in warnings:
            print_warning(message)
        if not errors:
            typer.echo(f"{file}: right, {', '.join(checked.actions) or 'no actions'}")
    if errors:
        raise typer.Exit(1)


@policy.command(cls=Command)
@on_cluster(namespaced=False, refused=BAD_INPUT)
async def diff(
    session: ClusterSession,
    file: str | None = FILE,
    preset: str | None = PRESET,
    decisions: bool = typer.Option(
        True,
        "--decisions/--no-decisions",
        help="Also say what the next cycle on the cluster would decide otherwise.",
    ),
    output: Format = typer.Option(Format.TABLE, "-o", "--output"),
    config_map: str = CONFIG_MAP,
    key: str = KEY,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """Compare a policy with the one in force on a cluster: settings, and what would be decided otherwise.

    Exit status 0 if they do the same, 1 if they differ, 2 for a policy that is wrong or a cluster that refuses.
    """
    catalog = _catalog(plugins_dir)
    wanted = _wanted(file, preset, catalog)
    place = await _place(session, config_map, key)
    before = _in_force(place, catalog)
    differences = policy_differences(before, wanted)
    effect = await _effect(session, before, wanted, catalog) if decisions and differences else {}
    _show_differences(place, wanted, differences, effect, output)
    if differences:
        raise typer.Exit(1)


@policy.command(cls=Command)
@on_cluster(namespaced=False)
async def apply(
    session: ClusterSession,
    file: str | None = FILE,
    preset: str | None = PRESET,
    dry_run: DryRun = DRY_RUN,
    yes: bool = typer.Option(False, "--yes", "-y", show_default=False, help="Do not ask."),
    admission: bool = typer.Option(
        False,
        "--admission",
        show_default=False,
        help="The file is the configuration of admission (resource groups), not a policy.",
    ),
    config_map: str = CONFIG_MAP,
    key: str = KEY,
    plugins_dir: Path | None = PLUGINS_DIR,
) -> None:
    """Put a policy in force on a cluster, if it is right.

    It is checked as `policy check` does, and what changes is shown. On a terminal you are asked first. The scheduler
    reads it within about a minute, without a restart.
    """
    from stromboli.cli.policy.policy_place import put_policy

    if admission:
        from stromboli.cli.policy.admission_configuration import apply_admission

        if file is None:
            raise Usage("--admission needs a file")
        await apply_admission(session, file, dry_run, yes)
        return
    catalog = _catalog(plugins_dir)
    wanted = _wanted(file, preset, catalog)
    place = await _place(session, config_map, key)
    differences = policy_differences(_in_force(place, catalog), wanted)
    if place.text != wanted.source and dry_run is not DryRun.CLIENT:
        await put_policy(session, place, wanted.source, dry_run=True)  # refused before anything is shown
    _show_differences(place, wanted, differences, {}, Format.TABLE)
    if place.text == wanted.source:
        return
    if dry_run is DryRun.CLIENT:
        typer.echo(f"{_shown(place.destination)} would be replaced (client dry run)")
        return
    if dry_run is DryRun.SERVER:
        typer.echo(f"{_shown(place.destination)} replaced (server dry run)")
        return
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Replace {_shown(place.destination)}?", abort=True)
    await put_policy(session, place, wanted.source, dry_run=False)
    typer.echo(f"{_shown(place.destination)} replaced")


def _catalog(plugins_dir: Path | None) -> Catalog:
    """All actions and plugins; `policy show` needs none of them."""
    from stromboli.extensions import load_catalog

    return load_catalog(plugins_dir)


def _wanted(file: str | None, preset: str | None, catalog: Catalog) -> Policy:
    """The policy that a user gives, which must be right."""
    if (file is None) == (preset is None):
        raise Usage("give a file or --preset NAME, one of them")
    if preset is not None:
        return load_policy(preset_source(preset), catalog, f"preset {preset}")
    wanted = read_policy(str(file), catalog, lenient=True)
    for warning in wanted.warnings:
        print_warning(warning)
    return wanted


async def _place(session: ClusterSession, config_map: str, key: str) -> PolicyPlace:
    from stromboli.cli.policy.policy_place import DEFAULT_KEY, ConfigMapKey, find_policy

    place = ConfigMapKey.of(config_map, key)
    if session.running is not None and session.running.policy and place != DEFAULT_KEY:
        raise Usage(f"a cluster of `stromboli up` follows {DEFAULT_KEY} alone: omit --configmap and --key")
    return await find_policy(session, place)


def _in_force(place: PolicyPlace, catalog: Catalog) -> Policy:
    """The policy in force, read as a scheduler reads it: without one, or with a wrong one, it is the built-in one."""
    from stromboli.policy.policy import default_policy

    if not place.text.strip():
        print_note(f"{_shown(place.origin)} has no policy, so the built-in one is in force")
        return default_policy(catalog)
    try:
        return load_policy(place.text, catalog, place.origin, lenient=True)
    except PolicyError as error:
        print_warning(
            f"{_shown(error.errors[0])}: compared with the built-in policy, as this one cannot be in force"
        )
        return default_policy(catalog)


async def _effect(session: ClusterSession, before: Policy, after: Policy, catalog: Catalog) -> dict[str, Any]:
    from stromboli.cli.policy.decision_differences import decision_differences

    return await decision_differences(session, before, after, catalog)


def _show_differences(
    place: PolicyPlace,
    wanted: Policy,
    differences: list[PolicyDifference],
    effect: dict[str, Any],
    output: Format,
) -> None:
    if output is not Format.TABLE:
        settings = [difference._asdict() for difference in differences]
        content = {"schema": 1, "inForce": place.origin, "settings": settings}
        write_as(output, content | ({"decisions": effect} if effect else {}))
        return
    if not differences:
        typer.echo(f"{_shown(wanted.source_name)} does the same as {_shown(place.origin)}")
        return
    typer.echo(f"{_shown(wanted.source_name)} against {_shown(place.origin)}")
    for setting, before, after in differences:
        typer.echo(f"  {_shown(setting)}")
        _line("-", before, typer.colors.RED)
        _line("+", after, typer.colors.GREEN)
    if effect:
        from stromboli.cli.policy.decision_differences import print_decision_differences

        print_decision_differences(effect)


def _line(mark: str, text: str, colour: str) -> None:
    typer.secho(f"    {mark} {_shown(text)}", fg=colour if has_colours() else None)


def _shown(text: str) -> str:
    from stromboli.cli.cluster.cluster_errors import shown

    return shown(text)
