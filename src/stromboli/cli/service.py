"""`stromboli service`: `stromboli up` as a service that systemd runs for the user."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import typer

from stromboli.cli.cli_errors import Usage, print_error
from stromboli.cli.command_group import CommandEntry, LazyCommand, subcommands
from stromboli.cli.data_option import data_folder
from stromboli.cli.service_unit import NAME, unit_text

SYSTEMCTL_TIMEOUT = 300.0
"""Seconds for systemd to start or stop the cluster."""
CARRIED = ("PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES")
"""Variables that the service has as they are now: where pods find programs, and which GPUs they may have."""
OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""What is not known here are options of `stromboli up`."""
DATA = typer.Option(
    None,
    "--data",
    parser=data_folder,
    metavar="DIR",
    help="The cluster's folder; ~/.local/share/stromboli unless given. Other options are those of `stromboli up`.",
)

service = subcommands("Let systemd run `stromboli up` for you, from when you log in.")


@service.command("print", context_settings=OPTIONS)
def print_unit(context: typer.Context, data: Path | None = DATA) -> None:
    """Print the unit file, and change nothing."""
    typer.echo(_unit(context, _folder(data)), nl=False)


@service.command("install", context_settings=OPTIONS)
def install(context: typer.Context, data: Path | None = DATA) -> None:
    """Write the unit file; start the cluster now and when you log in."""
    folder, path = _folder(data), unit_path()
    text = _unit(context, folder)
    _check_free(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise Usage(
            f"{path}: cannot be written: {error.strerror}; `stromboli service print` shows the unit file,"
            " for a place of your own"
        ) from None
    typer.echo(f"wrote {path}")
    for arguments in (("daemon-reload",), ("enable", NAME), ("restart", NAME)):
        if problem := _systemctl(*arguments):
            print_error(
                f"{problem}; where systemd runs for you, `systemctl --user daemon-reload` and"
                f" `systemctl --user enable --now {NAME}` start it"
            )
            raise typer.Exit(1)
    kubeconfig = shlex.quote(str(folder / "kubeconfig"))
    typer.echo(f"started; its data are in {folder}. To use it:\n\n  export KUBECONFIG={kubeconfig}\n")
    typer.echo("It stops when you log out, unless `loginctl enable-linger` lets your services run on.")


@service.command("remove")
def remove() -> None:
    """Stop the cluster, and take the unit file away; its data stay."""
    path = _installed()
    problem = _systemctl("disable", "--now", NAME)
    path.unlink()
    problem = _systemctl("daemon-reload") or problem
    typer.echo(f"removed {path}; the data of the cluster stay")
    if problem:
        print_error(f"{problem}; if the cluster still runs, `stromboli down` stops it")
        raise typer.Exit(1)


@service.command("status")
def status() -> None:
    """Say whether the service is there, and what it does.

    Exit status 3 if it does not run.
    """
    from stromboli.embedded.running_clusters import running_clusters

    typer.echo(f"unit     {_installed()}")
    for cluster in running_clusters():
        if cluster.unit == NAME:
            typer.echo(f"runs     process {cluster.pid} at {cluster.url}")
            typer.echo(f"data     {cluster.data}")
            typer.echo(f"to use   export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}")
            return
    typer.echo(
        f"runs     no; `systemctl --user start {NAME}` starts it, `journalctl --user -u {NAME}` says why not"
    )
    raise typer.Exit(3)


def unit_path() -> Path:
    configuration = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(configuration) / "systemd" / "user" / NAME


def _installed() -> Path:
    path = unit_path()
    if not path.exists():
        raise Usage(f"{path}: is not there; `stromboli service install` writes it")
    return path


def _folder(data: Path | None) -> Path:
    if data is not None:
        return data
    share = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(share) / "stromboli"


def _unit(context: typer.Context, folder: Path) -> str:
    """The unit file, if `stromboli up` accepts the options."""
    options = ["--data", str(folder), *context.args]
    _check_options(options)
    command = (sys.executable, "-m", "stromboli", "up", *options)
    variables = {name: os.environ[name] for name in CARRIED if name in os.environ}
    return unit_text(command, os.getcwd(), {"PATH": os.defpath, **variables})


def _check_options(options: list[str]) -> None:
    """`Usage` or another error that the command line reports, if `stromboli up` would refuse to start with these."""
    from stromboli.cli.up.cluster_run import checked_config
    from stromboli.cli.up.up_options import UpOptions
    from stromboli.controllers.job.plugins.job_plugin_catalog import load_job_plugins

    up = LazyCommand("up", CommandEntry("stromboli.cli.up.up_command:up", "")).load()
    texts = up.make_context("stromboli up", list(options)).params
    values = {field.name: texts[field.name] for field in fields(UpOptions)}
    for name in ("data", "policy", "plugins_dir", "job_plugins_dir"):  # typer makes paths of them later
        values[name] = Path(values[name]) if values[name] is not None else None
    checked_config(UpOptions(**values))
    load_job_plugins(values["job_plugins_dir"])


def _check_free(folder: Path) -> None:
    """Refuse a folder that `stromboli up` would refuse, before the unit is written."""
    from stromboli.embedded.data_folder import check_content
    from stromboli.embedded.running_clusters import FolderError, find_cluster

    check_content(folder)
    try:
        running = find_cluster(folder)
    except FolderError:
        return
    if running.unit != NAME:
        raise Usage(
            f"{folder}: a cluster runs there already (process {running.pid}); `stromboli down --data {folder}` stops it"
        )


def _systemctl(*arguments: str) -> str:
    """What went wrong; empty if nothing did."""
    command = ("systemctl", "--user", *arguments)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SYSTEMCTL_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{' '.join(command)}: {error}"
    if done.returncode == 0:
        return ""
    return f"{' '.join(command)}: {' '.join(done.stderr.split())[:1000] or f'exit status {done.returncode}'}"
