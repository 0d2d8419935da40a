"""What can be done to a job: suspend, resume, scale and delete it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from stromboli.cli.cli_errors import Usage
from stromboli.cli.cluster.bus_commands import bus_command
from stromboli.cli.cluster.cluster_errors import ClusterError
from stromboli.cli.cluster.cluster_kinds import COMMANDS, JOBS, Manifest, full_name, name_of
from stromboli.cli.dashboard.actions.action_page import (
    UID,
    ActionOffer,
    check_target,
    create_command,
    hidden,
    offer_page,
)
from stromboli.cli.dashboard.actions.viewer_permission import Permission, missing_permission
from stromboli.cli.dashboard.pages.object_elements import kubectl_kind
from stromboli.cli.dashboard.pages.page_content import PageContent, ViewRequest, address, job_address
from stromboli.cli.following.job_wait import phase_of
from stromboli.cli.job.job_columns import shown_phase, status_of_job, tasks_of, whole_number
from stromboli.cli.job.job_orders import FINISHED, RESUMPTION, SUSPENSION, JobOrder, check_order, send_order
from stromboli.cli.job.task_scaling import MOST_REPLICAS, Scaling, position_of, scaling_of, send_scaling
from stromboli.kube.request import ApiError
from stromboli.simulator.reports.page.markup import Markup, element, joined

TASKS_OFFERED = 100
POD_COUNTS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
"""Of the status of a job; together they are the pods that exist."""
TASK, REPLICAS = "task", "replicas"
"""Fields of the forms that scale."""
SCALING_EFFECTS = (
    "The task gets more pods, or loses those with the highest indices.",
    "Where fewer pods are left than had to start together, that number goes down with them.",
)
Fields = Mapping[str, str]


async def _job(request: ViewRequest) -> Manifest:
    namespace = request.names["namespace"]
    return await request.session_in(namespace).get(JOBS, request.names["name"], namespace)


def _page_of_job(request: ViewRequest, done: str = "") -> str:
    return address(job_address(request.names["namespace"], request.names["name"]), done=done)


async def _missing(request: ViewRequest, *ways: Permission) -> str:
    session = request.session_in(request.names["namespace"])
    return await missing_permission(session, request.viewer.name, *ways)


def _own_command(request: ViewRequest, verb: str, *options: str) -> str:
    words = ["stromboli", "job", verb, request.names["name"], "-n", request.names["namespace"], *options]
    return shlex.join(words)


def _changed(request: ViewRequest) -> None:
    """So that the page of the job is read anew."""
    request.cluster.reads.forget("jobs", request.names["namespace"], request.names["name"])


def existing_pods(job: Manifest) -> int:
    """As its controller counted them."""
    return sum(whole_number(status_of_job(job).get(count)) for count in POD_COUNTS)


def state_text(job: Manifest) -> str:
    """`It is Running, with 3 pods.`"""
    pods = existing_pods(job)
    words = f"with {pods:,} pod{'' if pods == 1 else 's'}" if pods else "and has no pods"
    return f"It is {shown_phase(job)}, {words}."


# -- suspend and resume


async def suspension(request: ViewRequest) -> PageContent:
    effect = "The job stays until it is resumed; then it starts again, from the beginning."
    return await _order_page(request, SUSPENSION, "suspend", effect)


async def resumption(request: ViewRequest) -> PageContent:
    effect = "The job is queued again, and starts from the beginning once there is room."
    return await _order_page(request, RESUMPTION, "resume", effect)


async def _order_page(request: ViewRequest, order: JobOrder, verb: str, effect: str) -> PageContent:
    """What an order does is told where it does anything."""
    job, namespace = await _job(request), request.names["namespace"]
    obstacle = _order_obstacle(job, order)
    effects = [] if obstacle else [effect]
    if order is SUSPENSION and effects and existing_pods(job):
        effects.insert(0, "Its pods are deleted, and what they hold is free for others.")
    offer = ActionOffer(
        f"{verb.capitalize()} job {name_of(job)}",
        [state_text(job), *effects],
        [_own_command(request, verb), create_command(bus_command(order.action, JOBS, job), namespace)],
        verb.capitalize(),
        job,
        _page_of_job(request),
        obstacle or await _missing(request, Permission("create", COMMANDS, namespace)),
    )
    return offer_page(request, offer)


def _order_obstacle(job: Manifest, order: JobOrder) -> str:
    try:
        return check_order(job, order)
    except ClusterError as error:
        return str(error)


async def suspend(request: ViewRequest, fields: Fields) -> str:
    return await _give(request, fields, SUSPENSION)


async def resume(request: ViewRequest, fields: Fields) -> str:
    return await _give(request, fields, RESUMPTION)


async def _give(request: ViewRequest, fields: Fields, order: JobOrder) -> str:
    """A job that is as wanted already is left as it is."""
    job = await _job(request)
    check_target(job, fields.get(UID, ""))
    if not check_order(job, order):
        await send_order(request.session_in(request.names["namespace"]), job, order)
        _changed(request)
    return _page_of_job(request, order.verb)


# -- delete


async def deletion(request: ViewRequest) -> PageContent:
    job, namespace, name = await _job(request), request.names["namespace"], request.names["name"]
    sure = element("input", type="checkbox", name="sure", value="yes", required="")
    offer = ActionOffer(
        f"Delete job {name}",
        [
            state_text(job),
            "The job and its pods are deleted, with their logs. It cannot be taken back.",
        ],
        [
            _own_command(request, "delete"),
            shlex.join(["kubectl", "delete", kubectl_kind(JOBS), name, "-n", namespace]),
        ],
        "Delete",
        job,
        _page_of_job(request),
        await _missing(request, Permission("delete", JOBS, namespace, name)),
        fields=element("label", element("span", f"Delete {name} with its pods"), sure),
        is_destructive=True,
    )
    return offer_page(request, offer)


async def delete(request: ViewRequest, fields: Fields) -> str:
    """A job that is gone already is as wanted."""
    namespace, name = request.names["namespace"], request.names["name"]
    if fields.get("sure") != "yes":
        raise ClusterError("nothing is deleted: tick the box first")
    session = request.session_in(namespace)
    job = await session.find(JOBS, name, namespace)
    if job is not None:
        check_target(job, fields.get(UID, ""))
        try:
            await session.delete(JOBS, name, namespace)
        except ApiError as error:
            if error.status != 404:
                raise
        _changed(request)
    return address("/jobs", namespace=namespace, done="deleted")


# -- scale


async def scaling(request: ViewRequest) -> PageContent:
    """The form in which a task and a number are chosen; once they are, what that changes, to be confirmed."""
    job, namespace, name = await _job(request), request.names["namespace"], request.names["name"]
    ended = _scaling_obstacle(job)
    offer = ActionOffer(
        f"Scale job {name}",
        [state_text(job)] if ended else list(SCALING_EFFECTS),
        [],
        "Scale",
        job,
        _page_of_job(request),
        ended
        or await _missing(
            request, Permission("patch", JOBS, namespace, name), Permission("update", JOBS, namespace, name)
        ),
    )
    return offer_page(request, offer if offer.obstacle else _chosen_scaling(request, offer))


def _scaling_obstacle(job: Manifest) -> str:
    """Why a job that has ended cannot be scaled; empty while it has not."""
    phase = phase_of(job)
    ended = f"{full_name(JOBS, name_of(job))} is {phase}: a job that has ended cannot be scaled"
    return ended if phase in FINISHED else ""


def _chosen_scaling(request: ViewRequest, offer: ActionOffer) -> ActionOffer:
    """The offer for the task and the number of the address."""
    task, replicas = _wanted(request, offer.target)
    offer = offer._replace(choice=_scale_fields(offer.target, task, replicas))
    if REPLICAS not in request.query:
        return offer
    try:
        change = _scaling(offer.target, task, replicas)
    except ClusterError as error:
        return offer._replace(obstacle=str(error))
    return offer._replace(
        effects=[*offer.effects, f"With {replicas} pods of {task or 'its task'}: {change.text}."],
        commands=_scale_commands(request, task, replicas, change),
        fields=joined([hidden(TASK, task), hidden(REPLICAS, replicas)]),
    )


def _wanted(request: ViewRequest, job: Manifest) -> tuple[str, str]:
    """The task and the number of the address, as they were typed; else the first task, with what it has."""
    numbers = {str(each.get("name") or ""): whole_number(each.get("replicas")) for each in tasks_of(job)}
    task = request.query.get(TASK, "") or next(iter(numbers), "")
    return task, request.query.get(REPLICAS, str(numbers.get(task, 0)))


def _scaling(job: Manifest, task: str, replicas: str) -> Scaling:
    """What changes; `ClusterError` if that cannot be."""
    if ended := _scaling_obstacle(job):
        raise ClusterError(ended)
    is_number = replicas.isascii() and replicas.isdecimal() and len(replicas) < 10
    if not (is_number and int(replicas) <= MOST_REPLICAS):
        raise ClusterError(f"{replicas[:40]!r} is no number of pods: write one from 0 to {MOST_REPLICAS:,}")
    try:
        return scaling_of(job, position_of(job, task), int(replicas), None, None)
    except Usage as error:
        raise ClusterError(str(error)) from None


def _scale_commands(request: ViewRequest, task: str, replicas: str, change: Scaling) -> list[str]:
    options = [*(["--task", task] if task else []), "--replicas", replicas]
    patch = ["kubectl", "patch", kubectl_kind(JOBS), request.names["name"], "-n", request.names["namespace"]]
    patch += ["--type=json", "-p", json.dumps(change.patch)]
    return [_own_command(request, "scale", *options), shlex.join(patch)]


def _scale_fields(job: Manifest, task: str, replicas: str) -> Markup:
    options = (
        element(
            "option",
            f"{name} (now {whole_number(each.get('replicas')):,})",
            value=name,
            selected="" if name == task else None,
        )
        for each in tasks_of(job)[:TASKS_OFFERED]
        for name in (str(each.get("name") or ""),)
    )
    number = element(
        "input",
        type="number",
        name=REPLICAS,
        value=replicas,
        min="0",
        max=str(MOST_REPLICAS),
        required="",
    )
    return joined(
        [
            element("label", element("span", "Task"), element("select", *options, name=TASK)),
            element("label", element("span", "Pods"), number),
        ]
    )


async def scale(request: ViewRequest, fields: Fields) -> str:
    """With as many pods as it has nothing is sent."""
    job = await _job(request)
    check_target(job, fields.get(UID, ""))
    change = _scaling(job, fields.get(TASK, ""), fields.get(REPLICAS, ""))
    if any(step["op"] != "test" for step in change.patch):
        await send_scaling(request.session_in(request.names["namespace"]), job, change)
        _changed(request)
    return _page_of_job(request, "scaled")
