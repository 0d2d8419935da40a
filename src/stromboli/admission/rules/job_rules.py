"""Jobs: what they are completed with, and what is wrong with them when they are made."""

from collections.abc import Callable
from typing import Any

from stromboli.admission.rules import dependency_cycles, lifecycle_policy_rules, task_rules
from stromboli.admission.rules.field import Place
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.admission.rules.rule_context import Context, Queues
from stromboli.api import names
from stromboli.api.name_rules import against_qualified, against_subdomain

MAX_RETRY = 3
_NEEDS_SVC = ("tensorflow", "mpi", "pytorch", "ray")


def default(job: dict[str, Any], context: Context) -> None:
    """Fill in what the user left out."""
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    spec["queue"] = spec.get("queue") or names.DEFAULT_QUEUE
    spec["schedulerName"] = spec.get("schedulerName") or (*context.settings.scheduler_names, "volcano")[0]
    spec["maxRetry"] = spec.get("maxRetry") or MAX_RETRY
    tasks = [one for one in _list(spec.get("tasks")) if isinstance(one, dict)]
    for index, one in enumerate(tasks):
        task_rules.default(one, index, MAX_RETRY)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(_whole(one.get("minAvailable")) for one in tasks)
    plugins = spec.get("plugins")
    if isinstance(plugins, dict):
        if any(name in plugins for name in _NEEDS_SVC):
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])


def check(job: Place, context: Context) -> None:
    """Report what is wrong with a new job."""
    name = job["metadata"]["name"].text()
    spec = job["spec"]
    tasks = spec["tasks"].items()
    if not tasks:
        spec["tasks"].wrong("No task specified in job spec", "add a task with replicas and a pod template")
        return
    _check_mpi_master(spec)
    check_topology(spec["networkTopology"])
    seen: set[str] = set()
    for index, one in enumerate(tasks):
        task_rules.check(one, index, name, seen)
    if reasons := against_qualified(name):
        job["metadata"]["name"].wrong(f"create job with name {name} validate failed [{' '.join(reasons)}]")
    check_total(spec, " job 'minAvailable' should not be greater than total replicas in tasks;")
    lifecycle_policy_rules.check(spec["policies"], "spec.policies")
    _check_plugins(spec["plugins"], context)
    _check_volumes(spec["volumes"])
    if context.queues is not None:
        _check_queue(spec["queue"], context.queues)
    _check_order(tasks)


def check_total(spec: Place, text: str) -> None:
    """The gang must not need more pods than there are."""
    total = sum(one["replicas"].number() for one in spec["tasks"].items())
    if total < spec["minAvailable"].number():
        spec["minAvailable"].wrong(text, f"the tasks have {total} replicas in total")


def _check_mpi_master(spec: Place) -> None:
    arguments = spec["plugins"].mapping().get("mpi")
    if "mpi" not in spec["plugins"].mapping():
        return
    master = _argument(_list(arguments), "master") or "master"
    if not any(one["name"].text() == master for one in spec["tasks"].items()):
        spec["plugins"]["mpi"].wrong(
            "The specified mpi master task was not found", f"name a task {master!r}, or say --master=TASK"
        )


def _argument(arguments: list[Any], name: str) -> str:
    """The value of `--name=value`, or of `--name value`; the last one counts."""
    found = ""
    words = [word for word in arguments if isinstance(word, str)]
    for position, word in enumerate(words):
        key, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and key == name:
            found = value if equals else (words[position + 1] if position + 1 < len(words) else "")
    return found


def _check_plugins(plugins: Place, context: Context) -> None:
    for name, place in plugins.entries():
        if name not in context.settings.job_plugins:
            known = ", ".join(context.settings.job_plugins)
            place.wrong(f" unable to find job plugin: {name};", f"known are {known}")


def _check_volumes(volumes: Place) -> None:
    seen: set[str] = set()
    for volume in volumes.items():
        path, claim, name = volume["mountPath"], volume["volumeClaim"], volume["volumeClaimName"]
        if not path.text():
            path.wrong(" mountPath is required;", "say where the volume appears in the containers")
        elif path.text() in seen:
            path.wrong(f" duplicated mountPath: {path.text()};", "give each volume its own")
        seen.add(path.text())
        if not claim.given and not name.text():
            volume.wrong(" either VolumeClaim or VolumeClaimName must be specified;")
        elif claim.given and name.text():
            volume.wrong(
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName."
                "If you want to create a new PVC, you do not need to specify VolumeClaimName"
            )
        elif name.text() and (reasons := against_subdomain(name.text())):
            name.wrong(f"invalid VolumeClaimName {name.text()} : [{' '.join(reasons)}]")


def _check_queue(place: Place, queues: Queues) -> None:
    name = place.text()
    queue = queues.get(name)
    if queue is None:
        place.wrong(
            f' unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;',
            "create the queue first, or use another",
        )
        return
    if queue.status.state not in (names.QUEUE_OPEN, ""):
        place.wrong(
            f" can only submit job to queue with state `Open`, queue `{name}` status is `{queue.status.state}`;",
            "open the queue, or use another",
        )
    children = queues.children(name)
    if name == names.ROOT_QUEUE:
        place.wrong(" can not submit job to root queue;", "use a queue below it")
    elif children:
        place.wrong(
            f" can only submit job to leaf queue, queue `{name}` has {len(children)} child queues;",
            f"use {_some([child.name for child in children])}",
        )


def _check_order(tasks: list[Place]) -> None:
    """Tasks that wait for tasks must not wait for each other, nor for what is not there."""
    needs: dict[str, list[str]] = {}
    doubtful: Callable[[str], None] | None = None
    known = {one["name"].text() for one in tasks}
    for one in tasks:
        place = one["dependsOn"]["name"]
        wanted = place.texts()
        needs.setdefault(one["name"].text(), []).extend(wanted)
        why = _why_not(wanted, known)
        if why:
            place.wrong(_NOT_A_DAG, why)
            doubtful = place.wrong
    found = dependency_cycles.circle(needs)
    if found and doubtful is None:
        first = next(one for one in tasks if one["name"].text() == found[0])
        first["dependsOn"]["name"].wrong(_NOT_A_DAG, f"break the circle {' -> '.join([*found, found[0]])}")


_NOT_A_DAG = " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


def _why_not(wanted: list[str], known: set[str]) -> str:
    missing = [name for name in wanted if name not in known]
    if missing:
        return f"there is no task {_some(missing)}"
    twice = sorted({name for name in wanted if wanted.count(name) > 1})
    return f"name {_some(twice)} once" if twice else ""


def _some(values: list[str]) -> str:
    text = ", ".join(values[:5])
    return f"{text} ..." if len(values) > 5 else text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
