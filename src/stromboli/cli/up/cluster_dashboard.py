"""The dashboard of a cluster of `stromboli up`: it listens from the start, and reads nothing until somebody looks."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stromboli.cli.dashboard.address_file import remove_address, write_address

if TYPE_CHECKING:
    from stromboli.cli.dashboard.server.dashboard_server import DashboardServer
    from stromboli.cli.dashboard.server.listening_address import Listening
    from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode
    from stromboli.kube.api_client import Client

log = logging.getLogger(__name__)


class ClusterDashboard:
    """Between `async with` and its end; what goes wrong with it stops no cluster."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = ""
        """With the code that lets in first; empty if there is no dashboard."""
        self._serving: asyncio.Task[None] | None = None
        self._server: DashboardServer | None = None
        self._client: Client | None = None

    async def __aenter__(self) -> ClusterDashboard:
        from stromboli.cli.cluster.cluster_errors import ClusterError
        from stromboli.cli.dashboard.server.listening_address import listen, one_time_code

        try:
            listening = await listen("127.0.0.1", None)
            code = one_time_code(listening, self._renew)
            self.address = listening.address(code.current)
            write_address(self._folder, self.address)
        except (ClusterError, OSError) as error:
            log.warning("there is no dashboard: %s", error)
            self.address = ""
            return self
        self._serving = asyncio.create_task(self._serve(listening, code))
        return self

    def _renew(self, address: str) -> None:
        """Tell the address for the next browser; whoever was just let in stays so if that fails."""
        try:
            write_address(self._folder, address)
        except OSError as error:
            log.warning("the next address of the dashboard cannot be written: %s", error)

    async def _serve(self, listening: Listening, code: OneTimeCode) -> None:
        """Once everything is imported; browsers that come before wait."""
        try:
            await asyncio.to_thread(_import)
            from stromboli.cli.cluster.cluster_session import ClusterSession
            from stromboli.cli.dashboard.server.dashboard_server import DashboardServer
            from stromboli.embedded.running_clusters import LOCK, read_record
            from stromboli.extensions import load_catalog
            from stromboli.kube.api_client import Client
            from stromboli.kube.cluster_access import find_access

            running = read_record(self._folder / LOCK)
            assert running is not None  # it is ours
            self._client = Client(find_access(str(running.kubeconfig)))
            session = ClusterSession(self._client, running, "default")
            self._server = DashboardServer(session, load_catalog(), listening, code)
            await self._server.start()
        except Exception:
            log.exception("the dashboard cannot be served")
            remove_address(self._folder)
            for opened in listening.sockets:
                opened.close()

    async def __aexit__(self, *_: object) -> None:
        remove_address(self._folder)
        if self._serving is not None:
            self._serving.cancel()
            with suppress(asyncio.CancelledError):
                await self._serving
        if self._server is not None:
            await self._server.stop()
        if self._client is not None:
            await self._client.close()


def _import() -> None:
    import stromboli.cli.dashboard.server.dashboard_server  # noqa: F401 (in a thread, as it takes a while)
