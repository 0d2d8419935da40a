"""`stromboli up`, `down` and `node`: a cluster on this machine, with nothing but Python."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stromboli import __version__
from stromboli.cli.cli_errors import Usage, is_output_error, print_error
from stromboli.cli.command_group import subcommands
from stromboli.cli.policy_options import LENIENT, PLUGINS_DIR, chosen_policy, preset_names
from stromboli.daemon import log_format
from stromboli.daemon.service_notification import READY, STOPPING, ServiceNotification

if TYPE_CHECKING:
    from stromboli.embedded.data_folder import DataFolder
    from stromboli.embedded.embedded_cluster import EmbeddedCluster

log = logging.getLogger(__name__)

SIMULATED = "4x8cpu,32Gi"
PRESET = "full"

DATA = typer.Option(
    None, "--data", metavar="DIR", help="The cluster's folder; unless given, the only cluster that runs."
)


def up(
    nodes: list[str] = typer.Option(
        [],
        "--nodes",
        metavar="NODES",
        help="Such as 20, 20x32cpu,256Gi,8gpu, or a file of Node manifests; repeatable. "
        f"GPUs are devices with 8gpu,dra and shared cards with 8gpu,vgpu. {SIMULATED} unless given, "
        "with --real this machine as it is.",
    ),
    racks: int = typer.Option(
        0,
        "--racks",
        metavar="N",
        min=0,
        help="Divide the nodes among so many racks, as HyperNodes of tier 1.",
    ),
    switches: int = typer.Option(
        0,
        "--switches",
        metavar="N",
        min=0,
        help="Divide the racks among so many switches, as HyperNodes of tier 2.",
    ),
    real: bool = typer.Option(False, "--real", help="Run the commands of pods as processes of this machine."),
    data: Path | None = typer.Option(
        None,
        "--data",
        metavar="DIR",
        help="Keep everything there, and go on from there; a temporary folder unless given.",
    ),
    policy: Path | None = typer.Option(
        None, "--policy", metavar="FILE", help="The scheduler's configuration; reread when it changes."
    ),
    preset: str | None = typer.Option(
        None,
        "--preset",
        metavar="NAME",
        help=f"A policy that comes along; {PRESET} unless given.",
        autocompletion=preset_names,
    ),
    plugins_dir: Path | None = PLUGINS_DIR,
    job_plugins_dir: Path | None = typer.Option(
        None,
        "--job-plugins-dir",
        metavar="DIR",
        help="A folder of Python files with your own job plugins.",
    ),
    lenient_policy: bool = LENIENT,
    run_time: str = typer.Option(
        "forever",
        "--run-time",
        metavar="SPAN",
        help="How long simulated pods run that do not say: 30s, 10s..60s, exp(30s), forever.",
    ),
    start_delay: str = typer.Option(
        "500ms", "--start-delay", metavar="SPAN", help="How long simulated pods take to start."
    ),
    schedule_period: str = typer.Option(
        "1s", "--schedule-period", metavar="TIME", help="Rest between two scheduling cycles."
    ),
    host: str = typer.Option(
        "127.0.0.1", "--host", help="Where to listen; others than this machine may ask if told so."
    ),
    port: int = typer.Option(
        0, "--port", min=0, max=65535, help="Where to listen; any free port unless given."
    ),
    verbose: bool = typer.Option(False, "--verbose", "-v", help="Tell what happens inside."),
) -> None:
    """Start a cluster on this machine: an API server for kubectl, nodes, the scheduler and the controllers."""
    from stromboli.embedded.cluster_log import keep_log
    from stromboli.embedded.cluster_services import ServiceConfig
    from stromboli.embedded.data_files import DataError
    from stromboli.embedded.data_folder import DataFolder
    from stromboli.embedded.embedded_cluster import EmbeddedCluster
    from stromboli.embedded.nodes.machine.machine_node import machine_node, offer_gpus
    from stromboli.embedded.nodes.node_groups import BadNodes, node_manifests
    from stromboli.embedded.nodes.node_network import has_racks, place_in_racks
    from stromboli.embedded.nodes.simulated.durations import BadDuration, parse_duration
    from stromboli.embedded.nodes.simulated.pod_stages import StageDelays
    from stromboli.embedded.running_clusters import FolderError
    from stromboli.extensions import load_catalog

    if verbose:
        log_format.set_up(as_json=False, verbosity=0)
    catalog = load_catalog(plugins_dir)
    chosen = _policy(policy, preset, catalog, lenient_policy)
    try:
        delays = StageDelays(parse_duration(start_delay), parse_duration(run_time))
        if real and not nodes:
            manifests = [machine_node(data or Path(tempfile.gettempdir()))]
        else:
            manifests = node_manifests(nodes or [SIMULATED], real)
            offer_gpus(manifests)
        place_in_racks(manifests, racks, switches)
        config = ServiceConfig(
            manifests,
            catalog,
            chosen,
            delays,
            parse_duration(schedule_period).low,
            nodes_requested=bool(nodes) or real,
            racks_requested=racks > 0,
            job_plugins_dir=job_plugins_dir,
        )
        folder = DataFolder(data)
    except (BadNodes, BadDuration, FolderError) as error:
        raise Usage(str(error)) from None
    try:
        if not folder.temporary:
            keep_log(folder.path)
        cluster = EmbeddedCluster(folder, config, host, port)
        status = asyncio.run(_run(cluster, folder, has_racks(manifests)))
    except DataError as error:
        print_error(f"cannot start: {error}")
        status = 1
    except OSError as error:
        if is_output_error(error):
            raise
        print_error(f"cannot start: {_start_error(error, host, port or folder.last_port)}")
        status = 1
    finally:
        folder.release()
    raise typer.Exit(status)


def _start_error(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use already; --port takes another, or 0 any free one"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def _policy(file: Path | None, preset: str | None, catalog: Any, lenient: bool) -> Any:
    """A file is read again when it changes; a preset never does."""
    from stromboli.policy.policy_file import PolicyFile

    if file is not None and preset is None:
        return PolicyFile(file, catalog, lenient)
    return chosen_policy(file, preset or PRESET, catalog, lenient)


async def _run(cluster: EmbeddedCluster, folder: DataFolder, network: bool) -> int:
    notification = ServiceNotification()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    starting = asyncio.create_task(cluster.__aenter__())
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return 0
    starting.result()
    try:
        _print_instructions(cluster, folder, network)
        log.info("stromboli %s runs at %s on %s", __version__, cluster.url, folder.path)
        notification.tell(READY, f"STATUS=at {cluster.url}")
        broken = asyncio.create_task(cluster.wait_failed())
        await asyncio.wait({broken, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if broken.done():
            print_error(str(broken.exception()))
            return 1
        broken.cancel()
        typer.echo("stopping", err=True)
        return 0
    finally:
        stopped.cancel()
        notification.tell(STOPPING)
        await cluster.__aexit__()
        log.info("stopped")


def _print_instructions(cluster: EmbeddedCluster, folder: DataFolder, network: bool) -> None:
    lines = [
        f"A cluster runs at {cluster.url}. To use it:",
        "",
        f"  export KUBECONFIG={cluster.kubeconfig}",
        "  kubectl get nodes",
        *(["  kubectl get hypernodes"] if network else []),
        "",
        "Ctrl-C stops it"
        + (", and everything in it is gone." if folder.temporary else f"; its data stay in {folder.path}."),
        "ready",
    ]
    typer.echo("\n".join(lines))
    sys.stdout.flush()


def down(data: Path | None = DATA) -> None:
    """Stop a cluster that `stromboli up` started."""
    from stromboli.embedded.running_clusters import FolderError, find_cluster, stop_cluster

    try:
        running = find_cluster(data)
    except FolderError as error:
        raise Usage(str(error)) from None
    if not stop_cluster(running):
        unit = running.unit
        end = (
            f"systemctl --user kill -s KILL {unit}; systemctl --user stop {unit}"
            if unit
            else f"kill -9 {running.pid}"
        )
        print_error(
            f"process {running.pid} does not stop; `{end}` ends it, and loses nothing that was written"
        )
        raise typer.Exit(1)
    typer.echo(f"stopped {running.url} ({running.data})")
    if running.unit:
        typer.echo(
            f"{running.unit} starts it again when you log in, or `systemctl --user start {running.unit}`;"
            " `stromboli service remove` ends that"
        )


node = subcommands("Let nodes of a cluster of `stromboli up` die and come back.")


@node.command("fail")
def fail(names: list[str] = typer.Argument(..., metavar="NODE..."), data: Path | None = DATA) -> None:
    """Cut a node's power: it is NotReady at once, and its pods are lost."""
    _set_failed(names, data, "true")
    typer.echo(f"{', '.join(names)}: failed; `stromboli node recover {' '.join(names)}` brings it back")


@node.command("recover")
def recover(names: list[str] = typer.Argument(..., metavar="NODE..."), data: Path | None = DATA) -> None:
    """Bring a node back that was made to fail."""
    _set_failed(names, data, None)
    typer.echo(f"{', '.join(names)}: back")


def _set_failed(names: list[str], data: Path | None, value: str | None) -> None:
    import msgspec

    from stromboli.embedded.nodes.node_annotations import FAILED, NODE
    from stromboli.embedded.nodes.write_queue import NODES
    from stromboli.embedded.running_clusters import FolderError, find_cluster
    from stromboli.kube.api_client import Client
    from stromboli.kube.cluster_access import find_access
    from stromboli.kube.credentials import BadConfig
    from stromboli.kube.request import ApiError, NoResponse

    async def patch_nodes() -> None:
        async with Client(find_access(str(find_cluster(data).kubeconfig))) as client:
            for name in names:
                labels = msgspec.json.decode(await client.get(NODES, name))["metadata"].get("labels", {})
                if NODE not in labels:
                    raise Usage(f"node {name}: not one that we run; label it with {NODE}=simulated or real")
                await client.patch(NODES, name, {"metadata": {"annotations": {FAILED: value}}})

    try:
        asyncio.run(patch_nodes())
    except (FolderError, BadConfig, NoResponse) as error:
        raise Usage(str(error)) from None
    except ApiError as error:
        raise Usage(f"{error}; kubectl get nodes lists them" if error.status == 404 else str(error)) from None
