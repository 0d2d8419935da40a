"""Creates, binds or deletes many pods, in a process of its own: `python -m tests.kubernetes.bulk_pods VERB ...`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable

from stromboli.api.types.pod import Pod
from stromboli.kube.api_client import Client
from stromboli.kube.api_resources import RESOURCES
from stromboli.kube.cluster_access import find_access
from tests.manifests import binding, pod

PODS = RESOURCES[Pod]
WIDTH = 50
PADDING = 10_000
"""Characters that make a pod large, so that few of them fill every buffer on the way."""


async def write_pods(verb: str, kubeconfig: str, namespace: str, count: int, group: str) -> None:
    async with Client(find_access(kubeconfig)) as client:

        async def write(index: int) -> None:
            name = f"{group}-{index}"
            if verb.startswith("create"):
                manifest = pod(name, group, namespace=namespace, cpu="100m")
                if verb == "create-large":
                    manifest["metadata"]["annotations"]["padding"] = "x" * PADDING
                await client.create(PODS, manifest, namespace)
            elif verb == "bind":
                target = binding(name, namespace, f"node-{index % 10}")
                await client.create(PODS, target, namespace, name, "binding")
            else:
                await client.delete(PODS, name, namespace, {"gracePeriodSeconds": 0})

        await _write_all(write, count)


async def _write_all(write: Callable[[int], Awaitable[None]], count: int) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await write(number)

    await asyncio.gather(*(worker() for _ in range(WIDTH)))


def start(verb: str, kubeconfig: object, namespace: str, count: int, group: str) -> subprocess.Popen[bytes]:
    """The same, in a process beside the test."""
    arguments = (verb, str(kubeconfig), namespace, str(count), group)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen((sys.executable, "-m", "tests.kubernetes.bulk_pods", *arguments), env=environment)


if __name__ == "__main__":
    _, verb, kubeconfig, namespace, count, group = sys.argv
    asyncio.run(write_pods(verb, kubeconfig, namespace, int(count), group))
