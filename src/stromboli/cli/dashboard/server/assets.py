"""What browsers load besides pages, from inside the package."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from aiohttp import web

TYPES = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
    "heat_map.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Assets:
    """Files that were read once, each with a digest by which a browser knows that it has them."""

    def __init__(self) -> None:
        folder = files("stromboli.cli.dashboard").joinpath("assets")
        self._contents = {name: folder.joinpath(name).read_bytes() for name in TYPES}
        self._tags = {
            name: f'"{hashlib.sha256(content).hexdigest()[:16]}"' for name, content in self._contents.items()
        }

    def respond(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in TYPES:
            return web.Response(status=404, text="There is no such file.\n")
        headers = {"ETag": self._tags[name], "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == self._tags[name]:
            return web.Response(status=304, headers=headers)
        return web.Response(body=self._contents[name], headers={**headers, "Content-Type": TYPES[name]})
