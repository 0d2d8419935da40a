"""The dashboard on its sockets, from its start to its end."""

from __future__ import annotations

import asyncio

from aiohttp import web

from stromboli.cli.cluster.cluster_session import ClusterSession
from stromboli.cli.dashboard.server.dashboard_app import DashboardApp
from stromboli.cli.dashboard.server.listening_address import Listening
from stromboli.cli.dashboard.server.peer_users import PeerUsers
from stromboli.cli.dashboard.server.request_guard import RequestGuard
from stromboli.cli.dashboard.viewers.code_authentication import CodeAuthentication
from stromboli.cli.dashboard.viewers.one_time_code import OneTimeCode
from stromboli.cli.dashboard.viewers.token_authentication import TokenAuthentication
from stromboli.cli.dashboard.viewers.viewer import Viewer
from stromboli.cli.dashboard.viewers.viewer_authentication import ViewerAuthentication
from stromboli.cli.dashboard.watched_cluster import WatchedCluster
from stromboli.daemon.connection_limits import ConnectionLimits
from stromboli.daemon.http_listener import HttpListener
from stromboli.engine.catalog import Catalog

GRACE = 1.0
"""Seconds that a request under way may take when the server stops."""
SWEEP_SECONDS = 600.0
"""Until sessions that have ended are forgotten."""
LIMITS = ConnectionLimits(connections=1024, unproven=256)


class DashboardServer:
    """Serves a cluster between `start` and `stop`."""

    def __init__(
        self,
        session: ClusterSession,
        catalog: Catalog,
        listening: Listening,
        code: OneTimeCode | None,
        user: str = "",
        allowed_hosts: tuple[str, ...] = (),
    ) -> None:
        """With a `code` whoever has it looks with the rights of the session; without, everybody has a token."""
        self._listening = listening
        self.cluster = WatchedCluster(session, catalog)
        cookie = f"stromboli-dashboard-{listening.port}"  # browsers do not tell ports of a host apart
        self._authentication: ViewerAuthentication
        if code is not None:
            self._authentication = CodeAuthentication(Viewer(user, user, session), code, cookie)
        else:
            self._authentication = TokenAuthentication(self.cluster, cookie)
        where = session.client.access.server
        if code is not None and session.running is not None:
            where = session.running.data
        users = PeerUsers() if code is not None else None
        guard = RequestGuard((listening.name, *allowed_hosts), users)
        app = DashboardApp(self.cluster, self._authentication, guard, where).application()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=GRACE, handle_signals=False)
        self._sweeping: asyncio.Task[None] | None = None
        self._listener = HttpListener(runner, LIMITS, listening.tls)

    async def start(self) -> None:
        self._sweeping = asyncio.create_task(self._sweep())
        await self._listener.serve(self._listening.sockets)

    async def _sweep(self) -> None:
        """Forget now and then who has not been seen for long, also when nobody asks for anything."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self._authentication.sweep()

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self._listener.stop()
        await self._authentication.close()
        await self.cluster.stop()
