"""The API server alone, as a process of its own: `python -m stromboli.embedded DATA [--port N] [--crds]`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from stromboli.admission.rules.rule_context import Settings
from stromboli.daemon.connection_limits import raise_descriptor_limit
from stromboli.embedded.data_files import DataError
from stromboli.embedded.http.api_server import ApiServer
from stromboli.embedded.store.history import HISTORY_LIMIT


async def serve(options: argparse.Namespace) -> None:
    """Serve until SIGINT or SIGTERM; prints `ready` once it answers requests."""
    raise_descriptor_limit()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with ApiServer(
        options.data,
        options.host,
        options.port,
        crds=options.crds,
        volcano_settings=Settings() if options.crds else None,
        history=options.history,
        power_safe=options.power_safe,
    ) as server:
        if options.forget:
            await server.store.compact()
        server.write_kubeconfig(options.data / "kubeconfig")
        print(f"ready {server.url}", flush=True)
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m stromboli.embedded", description=__doc__)
    parser.add_argument("data", type=Path, help="folder for objects, keys and the kubeconfig")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; only this machine unless given"
    )
    parser.add_argument("--port", type=int, default=0, help="0 for any that is free")
    parser.add_argument(
        "--crds",
        action="store_true",
        help="add Volcano's CustomResourceDefinitions with their admission, and its queues root and default",
    )
    parser.add_argument(
        "--history", type=int, default=HISTORY_LIMIT, help="changes after which a watch may resume"
    )
    parser.add_argument("--forget", action="store_true", help="drop the history: watches must list first")
    parser.add_argument("--power-safe", action="store_true", help="wait for the disk at every commit")
    try:
        asyncio.run(serve(parser.parse_args(sys.argv[1:])))
    except (DataError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
