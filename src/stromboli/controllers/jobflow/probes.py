"""Runs the probes of a step against the pods of the jobs that it depends on; all pods of a probed task must pass.

Completed jobs are not probed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address

import aiohttp

from stromboli.api import names
from stromboli.api.types.jobflow import Flow, HttpGet, JobFlow, Probe, TaskStatusProbe, TcpSocket
from stromboli.api.types.volcano_job import Job
from stromboli.controllers.jobflow.flow_jobs import job_name
from stromboli.controllers.watched_kinds import Pod

TIMEOUT = 2.0
"""Seconds in which a pod must answer."""
MAX_PODS = 256
"""Pods that one probe is run against, however large the task."""
MAX_PARALLEL = 32

Pods = Callable[[Job], Sequence[Pod]]
"""The pods of a job."""


async def passes(flow: JobFlow, step: Flow, jobs: Mapping[str, Job], pods: Pods) -> bool:
    """Whether the probe of a step passes for all jobs that it depends on and that are not complete."""
    depends = step.depends_on
    if depends is None or depends.probe is None:
        return False
    before = [jobs.get(job_name(flow, target)) for target in depends.targets]
    running = [job for job in before if job is not None and job.status.state.phase != "Completed"]
    if not all(_status_holds(status, job) for job in running for status in depends.probe.task_status_list):
        return False
    checks = [check for job in running for check in _checks(depends.probe, job, pods(job))]
    return None not in checks and await _all_hold([check for check in checks if check is not None])


Check = Callable[[], Awaitable[bool]]


def _checks(probe: Probe, job: Job, pods: Sequence[Pod]) -> list[Check | None]:
    """One check per probe and pod; None where a pod does not exist or run yet."""
    checks: list[Check | None] = []
    requests: tuple[HttpGet | TcpSocket, ...] = (*probe.http_get_list, *probe.tcp_socket_list)
    for request in requests:
        probed = [pod for pod in pods if request.task_name in ("", _task(pod))][:MAX_PODS]
        if len(probed) < min(_replicas(job, request.task_name), MAX_PODS):
            checks.append(None)
        checks += [_check(request, pod) for pod in probed]
    return checks


def _check(request: HttpGet | TcpSocket, pod: Pod) -> Check | None:
    host = _host(pod.status.pod_ip)
    if host is None or pod.status.phase != names.POD_RUNNING:
        return None
    if isinstance(request, HttpGet):
        return lambda: _http_succeeds(host, request)
    return lambda: _tcp_connects(pod.status.pod_ip, request.port)


def _status_holds(probe: TaskStatusProbe, job: Job) -> bool:
    """Whether all pods of a task are in a phase, by the counts in the job's status."""
    counts = job.status.task_status_count
    tasks = [probe.task_name] if probe.task_name else [task.name for task in job.spec.tasks]
    return all(
        task in counts and counts[task].phase.get(probe.phase, 0) >= max(1, _replicas(job, task))
        for task in tasks
    )


def _replicas(job: Job, name: str) -> int:
    """The pods of a task, or of the whole job; 1 for a task that the job does not have, so that its probe fails."""
    if not name:
        return sum(task.replicas for task in job.spec.tasks)
    return next((task.replicas for task in job.spec.tasks if task.name == name), 1)


def _task(pod: Pod) -> str:
    return pod.metadata.labels.get(names.TASK_SPEC) or pod.metadata.annotations.get(names.TASK_SPEC, "")


def _host(address: str) -> str | None:
    """An IP address as URLs write it; None for anything else."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    return f"[{parsed}]" if parsed.version == 6 else str(parsed)


# -- running checks


async def _all_hold(checks: Iterable[Check]) -> bool:
    slots = asyncio.Semaphore(MAX_PARALLEL)

    async def run(check: Check) -> bool:
        async with slots:
            return await check()

    return all(await asyncio.gather(*map(run, checks)))


async def _tcp_connects(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(TIMEOUT):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, OverflowError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _http_succeeds(host: str, request: HttpGet) -> bool:
    """Any status from 200 to 399; redirects are not followed, and the body is not read."""
    path = request.path if request.path.startswith("/") else f"/{request.path}"
    header = request.http_header
    headers = {header.name: header.value} if header is not None and header.name else {}
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(
                f"http://{host}:{request.port}{path}", headers=headers, allow_redirects=False
            ) as response,
        ):
            return 200 <= response.status < 400
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return False
