"""Before the first pod starts: cgroups are found, and what a former run on the same folder left is ended."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

from stromboli.embedded.nodes.machine.gpu_allocator import GpuGrant
from stromboli.embedded.nodes.real.container_logs import pod_folder
from stromboli.embedded.nodes.real.leftovers.kill_until_gone import kill_until_gone
from stromboli.embedded.nodes.real.process_guardian import END_TIMEOUT, ProcessGuardian, kill_marked
from stromboli.embedded.nodes.real.resources.cgroups import CgroupTree, NoCgroups
from stromboli.embedded.nodes.real.resources.pod_resources import NodeResources

log = logging.getLogger(__name__)

PAUSE = 0.05
GUARDIAN_TIMEOUT = 30.0
"""Seconds for the former guardian, which takes a moment, and some more if processes do not end."""

FindCgroups = Callable[[str], CgroupTree]


async def prepare(
    pods: Path, guardian: ProcessGuardian, resources: NodeResources, find_cgroups: FindCgroups | None
) -> None:
    """Let pods start once nothing of a former run is left that can be ended, and release its GPUs when it is gone."""
    try:
        if find_cgroups is not None:
            await _find_cgroups(pods, guardian, resources, find_cgroups)
        await _await_guardian(pods, guardian)
        roots = [str(pods), *(_folder(pods, grant) for grant in resources.gpus.former)]
        left = await asyncio.to_thread(kill_marked, roots, END_TIMEOUT) if pods.exists() else set()
        for grant in resources.gpus.former:
            if _folder(pods, grant) not in left:
                resources.gpus.release(grant)
    except Exception:
        log.exception("real nodes: what a former run left in %s is not known", pods)
    resources.ready.set()
    async with asyncio.TaskGroup() as group:  # none waits for the cards of another
        for grant in resources.gpus.former:
            group.create_task(_end_pod(pods, grant, resources))


async def _find_cgroups(
    pods: Path, guardian: ProcessGuardian, resources: NodeResources, find_cgroups: FindCgroups
) -> None:
    """The same for the same folder, so that those of a former run are found."""
    name = f"stromboli-{hashlib.sha256(os.fsencode(pods)).hexdigest()[:12]}"
    try:
        resources.cgroups = await asyncio.to_thread(find_cgroups, name)
        guardian.cgroups = str(resources.cgroups.root)
    except NoCgroups as error:
        resources.no_cgroups = str(error)


async def _await_guardian(pods: Path, guardian: ProcessGuardian) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GUARDIAN_TIMEOUT
    while not guardian.former_ended():
        if loop.time() > deadline:
            log.warning("processes of the former run in %s do not end", pods)
            return
        await asyncio.sleep(PAUSE)


async def _end_pod(pods: Path, grant: GpuGrant, resources: NodeResources) -> None:
    log.warning("pod %s of the former run does not end, and keeps %s", grant.pod, sorted(grant.cards))
    folder = _folder(pods, grant)
    await kill_until_gone(lambda seconds: not kill_marked([folder], seconds), f"pod {grant.pod}")
    resources.gpus.release(grant)


def _folder(pods: Path, grant: GpuGrant) -> str:
    namespace, _, name = grant.pod.partition("/")
    return str(pod_folder(pods, namespace, name, grant.uid))
