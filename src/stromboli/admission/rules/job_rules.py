"""Jobs: their defaults, and the problems of a new one."""

from collections import Counter
from typing import Any

from stromboli.admission.rules import job_size_rules, lifecycle_policy_rules, task_rules
from stromboli.admission.rules.field import Field
from stromboli.admission.rules.job_order_rules import check_order
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.admission.rules.rule_context import Context, QueueIndex
from stromboli.api import names
from stromboli.api.name_cycles import find_cycle, format_cycle
from stromboli.api.name_rules import dns_subdomain_errors, qualified_name_errors

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
    tasks = [task for task in _list(spec.get("tasks")) if isinstance(task, dict)]
    for index, task in enumerate(tasks):
        task_rules.default(task, index, MAX_RETRY)
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(number(task.get("minAvailable")) for task in tasks)
    plugins = spec.get("plugins")
    if isinstance(plugins, dict):
        if any(name in plugins for name in _NEEDS_SVC):
            plugins.setdefault("svc", [])
        if "mpi" in plugins:
            plugins.setdefault("ssh", [])


def check(job: Field, context: Context) -> None:
    """Report what is wrong with a new job."""
    name = job["metadata"]["name"].text()
    spec = job["spec"]
    tasks = spec["tasks"].items()
    if not tasks:
        spec["tasks"].wrong("No task specified in job spec", "add a task with replicas and a pod template")
        return
    if job_size_rules.check_job(spec):
        return
    _check_mpi_master(spec)
    check_topology(spec["networkTopology"])
    seen: set[str] = set()
    for index, task in enumerate(tasks):
        task_rules.check(task, index, name, seen)
    if errors := qualified_name_errors(name):
        job["metadata"]["name"].wrong(f"create job with name {name} validate failed [{' '.join(errors)}]")
    check_total(spec, " job 'minAvailable' should not be greater than total replicas in tasks;")
    lifecycle_policy_rules.check(spec["policies"], "spec.policies")
    _check_plugins(spec["plugins"], context)
    _check_volumes(spec["volumes"])
    if context.queues is not None:
        _check_queue(spec["queue"], context.queues)
    _check_dependencies(tasks)
    check_order(job)


def check_total(spec: Field, text: str) -> None:
    """The gang must not need more pods than there are."""
    total = sum(task["replicas"].number() for task in spec["tasks"].items())
    if total < spec["minAvailable"].number():
        spec["minAvailable"].wrong(text, f"the tasks have {total} replicas in total")


def _check_mpi_master(spec: Field) -> None:
    arguments = spec["plugins"].mapping().get("mpi")
    if "mpi" not in spec["plugins"].mapping():
        return
    master = _argument(_list(arguments), "master") or "master"
    if not any(task["name"].text() == master for task in spec["tasks"].items()):
        spec["plugins"]["mpi"].wrong(
            "The specified mpi master task was not found", f"name a task {master!r}, or say --master=TASK"
        )


def _argument(arguments: list[Any], name: str) -> str:
    """The value of `--name=value`, or of `--name value`; the last one counts."""
    result = ""
    texts = [argument for argument in arguments if isinstance(argument, str)]
    for text, following in zip(texts, [*texts[1:], ""], strict=False):
        key, equals, value = text.lstrip("-").partition("=")
        if text.startswith("-") and key == name:
            result = value if equals else following
    return result


def _check_plugins(plugins: Field, context: Context) -> None:
    for name, field in plugins.entries():
        if name not in context.settings.job_plugins:
            known = ", ".join(sorted(context.settings.job_plugins))
            field.wrong(f" unable to find job plugin: {name};", f"known are {known}")


def _check_volumes(volumes: Field) -> None:
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
        elif name.text() and (errors := dns_subdomain_errors(name.text())):
            name.wrong(f"invalid VolumeClaimName {name.text()} : [{' '.join(errors)}]")


def _check_queue(field: Field, queues: QueueIndex) -> None:
    name = field.text()
    queue = queues.get(name)
    if queue is None:
        field.wrong(
            f' unable to find job queue: queue.scheduling.volcano.sh "{name}" not found;',
            "create the queue first, or use another",
        )
        return
    if queue.status.state not in (names.QUEUE_OPEN, ""):
        field.wrong(
            f" can only submit job to queue with state `Open`, queue `{name}` status is `{queue.status.state}`;",
            "open the queue, or use another",
        )
    children = queues.children(name)
    if name == names.ROOT_QUEUE:
        field.wrong(" can not submit job to root queue;", "use a queue below it")
    elif children:
        field.wrong(
            f" can only submit job to leaf queue, queue `{name}` has {len(children)} child queues;",
            f"use {_first_few([child.name for child in children])}",
        )


def _check_dependencies(tasks: list[Field]) -> None:
    """Tasks must depend on tasks that exist, and not on each other in a cycle."""
    dependencies: dict[str, list[str]] = {}
    known = {task["name"].text() for task in tasks}
    all_exist = True
    for task in tasks:
        field = task["dependsOn"]["name"]
        if isinstance(field.value, list) and len(field.value) > len(tasks):
            field.wrong(_NOT_A_DAG, f"name each of the {len(tasks)} tasks at most once")
            return
        targets = field.texts()
        dependencies.setdefault(task["name"].text(), []).extend(targets)
        if why := _bad_targets(targets, known):
            field.wrong(_NOT_A_DAG, why)
            all_exist = False
    cycle = find_cycle(dependencies)
    if cycle and all_exist:
        first = next(task for task in tasks if task["name"].text() == cycle[0])
        first["dependsOn"]["name"].wrong(_NOT_A_DAG, f"break the circle {format_cycle(cycle)}")


_NOT_A_DAG = " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);"


def _bad_targets(targets: list[str], known: set[str]) -> str:
    missing = [name for name in targets if name not in known]
    if missing:
        return f"there is no task {_first_few(missing)}"
    repeated = sorted(name for name, count in Counter(targets).items() if count > 1)
    return f"name {_first_few(repeated)} once" if repeated else ""


def _first_few(values: list[str]) -> str:
    text = ", ".join(values[:5])
    return f"{text} ..." if len(values) > 5 else text


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def number(value: Any) -> int:
    """An integer, or 0 in its place."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
