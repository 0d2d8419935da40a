"""Asks the pods of the jobs before whether they are far enough: every pod of the task must answer, at once.

A job that is complete needs no more asking.
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

PATIENCE = 2.0
"""Seconds that a pod may take to answer."""
MOST = 256
"""Pods that one probe may ask; a larger task is asked by this many of its pods."""
AT_ONCE = 32

Pods = Callable[[Job], Sequence[Pod]]
"""The pods of a job."""


async def passes(flow: JobFlow, step: Flow, jobs: Mapping[str, Job], pods: Pods) -> bool:
    """Whether all that a step's probe asks for holds, of all jobs before it that are not complete."""
    depends = step.depends_on
    if depends is None or depends.probe is None:
        return False
    before = [jobs.get(job_name(flow, target)) for target in depends.targets]
    running = [job for job in before if job is not None and job.status.state.phase != "Completed"]
    for job in running:
        if not _statuses_hold(depends.probe, job):
            return False
    checks = [check for job in running for check in _checks(depends.probe, job, pods(job))]
    return None not in checks and await _all_hold([check for check in checks if check is not None])


Check = Callable[[], Awaitable[bool]]


def _checks(probe: Probe, job: Job, pods: Sequence[Pod]) -> list[Check | None]:
    """What to ask whom; None where there is nobody to be asked yet."""
    checks: list[Check | None] = []
    asking: tuple[HttpGet | TcpSocket, ...] = (*probe.http_get_list, *probe.tcp_socket_list)
    for one in asking:
        asked = [pod for pod in pods if one.task_name in ("", _task(pod))][:MOST]
        if len(asked) < min(_replicas(job, one.task_name), MOST):
            checks.append(None)
        checks += [_check(one, pod) for pod in asked]
    return checks


def _check(one: HttpGet | TcpSocket, pod: Pod) -> Check | None:
    host = _host(pod.status.pod_ip)
    if host is None or pod.status.phase != names.POD_RUNNING:
        return None
    if isinstance(one, HttpGet):
        return lambda: _answers(host, one)
    return lambda: _listens(pod.status.pod_ip, one.port)


def _statuses_hold(probe: Probe, job: Job) -> bool:
    return all(_status_holds(one, job) for one in probe.task_status_list)


def _status_holds(one: TaskStatusProbe, job: Job) -> bool:
    """Whether all pods of a task are in a phase, by the job's own count."""
    counts = job.status.task_status_count
    tasks = [one.task_name] if one.task_name else [task.name for task in job.spec.tasks]
    return all(
        task in counts and counts[task].phase.get(one.phase, 0) >= max(1, _replicas(job, task))
        for task in tasks
    )


def _replicas(job: Job, task: str) -> int:
    """How many pods a task, or the whole job, has; a task that the job does not have is one that never comes."""
    if not task:
        return sum(one.replicas for one in job.spec.tasks)
    return next((one.replicas for one in job.spec.tasks if one.name == task), 1)


def _task(pod: Pod) -> str:
    return pod.metadata.labels.get(names.TASK_SPEC) or pod.metadata.annotations.get(names.TASK_SPEC, "")


def _host(address: str) -> str | None:
    """An address as it stands in a URL; None for anything that is not one."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return None
    return f"[{parsed}]" if parsed.version == 6 else str(parsed)


# -- asking


async def _all_hold(checks: Iterable[Check]) -> bool:
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(check: Check) -> bool:
        async with turns:
            return await check()

    return all(await asyncio.gather(*(in_turn(check) for check in checks)))


async def _listens(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PATIENCE):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, OverflowError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _answers(host: str, one: HttpGet) -> bool:
    """Any answer from 200 to 399 will do; redirects are not followed, and the body is not read."""
    path = one.path if one.path.startswith("/") else f"/{one.path}"
    header = one.http_header
    headers = {header.name: header.value} if header is not None and header.name else {}
    try:
        async with (
            asyncio.timeout(PATIENCE),
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.get(f"http://{host}:{one.port}{path}", headers=headers, allow_redirects=False) as answer,
        ):
            return 200 <= answer.status < 400
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return False
