"""A socket that sets the log level for a while, as Volcano's programs have it (spec 05 1.4).

`curl --unix-socket FOLDER/klog-klog.sock 'http://log/setlevel?level=5&duration=60s'`. Served where the environment
variable DEBUG_SOCKET_DIR names a folder; Volcano serves it in a folder of /tmp as well, where anybody may be first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from stromboli.api import go_scalars
from stromboli.daemon import log_format
from stromboli.daemon.request_log import request_log

log = logging.getLogger(__name__)

VARIABLE = "DEBUG_SOCKET_DIR"
NAME = "klog-klog.sock"
LONGEST = 86_400.0
"""Seconds for which a level may be set."""


class LogLevel:
    """The log level: that of `-v`, or another one for a while."""

    def __init__(self, environment: Mapping[str, str], default: int):
        self._folder = environment.get(VARIABLE, "")
        self._default = default
        self._now = default
        self._reset: asyncio.TimerHandle | None = None
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Serve if the variable names a folder; if that fails, log it and go on."""
        if not self._folder:
            return
        path = Path(self._folder) / NAME
        app = web.Application()
        app.router.add_get("/getlevel", self._get)
        app.router.add_get("/setlevel", self._set)
        runner = web.AppRunner(app, access_log=None, logger=request_log)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            await runner.setup()
            await web.UnixSite(runner, str(path)).start()
            path.chmod(0o700)
        except OSError as error:
            log.warning("%s: the level of the log cannot be set there: %s", path, error)
            await runner.cleanup()
            return
        self._runner = runner

    async def stop(self) -> None:
        if self._reset is not None:
            self._reset.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
            with suppress(OSError):
                (Path(self._folder) / NAME).unlink(missing_ok=True)

    async def _get(self, _: web.Request) -> web.Response:
        return web.Response(text=f"{self._now}\n")

    async def _set(self, request: web.Request) -> web.Response:
        level, lasts = request.query.get("level", ""), go_scalars.duration(request.query.get("duration", ""))
        if not (level.isdecimal() and len(level) < 6 and int(level) > 0):
            return web.Response(text="level: not a whole number above 0\n", status=400)
        if lasts is None or not 0 < lasts <= LONGEST:
            return web.Response(text="duration: not such as 60s, at most a day\n", status=400)
        if self._reset is not None:
            self._reset.cancel()
        self._set_level(int(level))
        self._reset = asyncio.get_running_loop().call_later(lasts, self._set_level, self._default)
        return web.Response(text=f"{level} for {lasts:g} seconds\n")

    def _set_level(self, level: int) -> None:
        self._now = level
        log_format.set_level(level)
        log.info("the level of the log is %d", level)
