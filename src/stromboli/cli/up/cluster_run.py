"""A cluster of `stromboli up`, from its start to its end."""

from __future__ import annotations

import asyncio
import errno
import logging
import shlex
import signal
import sys
from contextlib import AsyncExitStack

import typer

from stromboli import __version__
from stromboli.api.durations import BadDuration
from stromboli.cli.cli_errors import Usage, is_output_error, print_error, print_warning
from stromboli.cli.up.cluster_config import service_config
from stromboli.cli.up.cluster_dashboard import ClusterDashboard
from stromboli.cli.up.up_options import UpOptions
from stromboli.daemon.flags import BadFlag
from stromboli.daemon.service_notification import READY, STOPPING, ServiceNotification
from stromboli.embedded.cluster_log import keep_log
from stromboli.embedded.cluster_services import ServiceConfig
from stromboli.embedded.data_files import DataError
from stromboli.embedded.data_folder import DataFolder
from stromboli.embedded.embedded_cluster import EmbeddedCluster
from stromboli.embedded.nodes.node_groups import BadNodes
from stromboli.embedded.nodes.node_network import has_racks
from stromboli.embedded.running_clusters import FolderError

log = logging.getLogger(__name__)


def run_cluster(options: UpOptions) -> int:
    """Run until a signal ends it; the exit status."""
    config = checked_config(options)
    for note in config.controllers.notes:
        if note in config.scheduler.notes or not note.startswith(
            "--feature-gates"
        ):  # some gates exist in one component only
            print_warning(note)
    try:
        folder = DataFolder(options.data)
    except FolderError as error:
        raise Usage(str(error)) from None
    try:
        return _run_in(folder, config, options)
    except DataError as error:
        print_error(f"cannot start: {error}")
        return 1
    except OSError as error:
        if is_output_error(error):
            raise
        print_error(f"cannot start: {_start_error(error, options.host, options.port or folder.last_port)}")
        return 1
    finally:
        folder.release()


def checked_config(options: UpOptions) -> ServiceConfig:
    """What the options ask for; `Usage` if that is no cluster."""
    try:
        return service_config(options)
    except (BadNodes, BadDuration, BadFlag) as error:
        raise Usage(str(error)) from None


def _run_in(folder: DataFolder, config: ServiceConfig, options: UpOptions) -> int:
    if not folder.temporary:
        keep_log(folder.path)
    cluster = EmbeddedCluster(folder, config, options.host, options.port)
    return asyncio.run(_run(cluster, folder, has_racks(config.nodes), options.dashboard))


def _start_error(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"{host}:{port} is in use already; --port takes another, or 0 any free one"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


async def _run(cluster: EmbeddedCluster, folder: DataFolder, has_network: bool, with_dashboard: bool) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    stopped = asyncio.create_task(stop.wait())
    notification = ServiceNotification()
    try:
        if not await _started(cluster, stopped):
            return 0
        async with AsyncExitStack() as stack:
            dashboard = ClusterDashboard(folder.path)
            if with_dashboard:
                await stack.enter_async_context(dashboard)
            _print_instructions(cluster, folder, has_network, dashboard.address)
            log.info("stromboli %s runs at %s on %s", __version__, cluster.url, folder.path)
            notification.tell(READY, f"STATUS=at {cluster.url}")
            return await _wait_for_end(cluster, stopped)
    finally:
        stopped.cancel()
        notification.tell(STOPPING)
        await cluster.__aexit__()
        log.info("stopped")


async def _started(cluster: EmbeddedCluster, stopped: asyncio.Task[bool]) -> bool:
    """Start the cluster; False if it is stopped before it runs."""
    starting = asyncio.create_task(cluster.__aenter__())
    await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return False
    starting.result()
    return True


async def _wait_for_end(cluster: EmbeddedCluster, stopped: asyncio.Task[bool]) -> int:
    """Until somebody stops the cluster, or one of its services fails; the exit status."""
    failed = asyncio.create_task(cluster.wait_failed())
    await asyncio.wait({failed, stopped}, return_when=asyncio.FIRST_COMPLETED)
    if failed.done():
        print_error(str(failed.exception()))
        return 1
    failed.cancel()
    typer.echo("stopping", err=True)
    return 0


def _print_instructions(
    cluster: EmbeddedCluster, folder: DataFolder, has_network: bool, dashboard: str
) -> None:
    lines = [
        f"A cluster runs at {cluster.url}. To use it:",
        "",
        f"  export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}",
        "  kubectl get nodes",
        *(["  kubectl get hypernodes"] if has_network else []),
        "",
        *([f"Look at it in a browser: {dashboard}", ""] if dashboard else []),
        "Ctrl-C stops it"
        + (", and everything in it is gone." if folder.temporary else f"; its data stay in {folder.path}."),
        "ready",
    ]
    typer.echo("\n".join(lines))
    sys.stdout.flush()
