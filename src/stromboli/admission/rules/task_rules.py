"""The tasks of a job: their defaults, and the problems of new ones."""

from typing import Any

from stromboli.admission.rules import job_size_rules, lifecycle_policy_rules, pod_template_rules
from stromboli.admission.rules.field import Field
from stromboli.admission.rules.network_topology_rules import check_topology
from stromboli.api.name_rules import qualified_name_errors
from stromboli.api.resources.quantity import QuantityError, exact


def default(task: dict[str, Any], index: int, max_retry: int) -> None:
    """Fill in what the user left out of a task."""
    task["name"] = task.get("name") or f"default{index}"
    pod = task.get("template")
    spec = pod.get("spec") if isinstance(pod, dict) else None
    if isinstance(spec, dict) and spec.get("hostNetwork") is True and not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if task.get("minAvailable") is None:
        task["minAvailable"] = _min_available(task)
    task["maxRetry"] = task.get("maxRetry") or max_retry


def _min_available(task: dict[str, Any]) -> int:
    """The minimum number of pods: those of the partitions that must run, else all replicas."""
    policy = task.get("partitionPolicy")
    if isinstance(policy, dict):
        minimum, size = policy.get("minPartitions"), policy.get("partitionSize")
        if isinstance(minimum, int) and isinstance(size, int) and minimum > 0:
            return minimum * size
    replicas = task.get("replicas")
    return replicas if isinstance(replicas, int) else 0


def check(task: Field, index: int, job: str, seen: set[str]) -> None:
    """Report what is wrong with a task of a new job; `seen` are the names of the tasks before it."""
    name = task["name"].text()
    if task["minAvailable"].number() > task["replicas"].number():
        task["minAvailable"].wrong(
            f" 'minAvailable' is greater than 'replicas' in task: {name}, job: {job};",
            f"at most {task['replicas'].number()}, or raise replicas",
        )
    if name in seen:
        task["name"].wrong(f" duplicated task name {name};", "give each task its own name")
    seen.add(name)
    lifecycle_policy_rules.check(task["policies"], "spec.tasks.policies")
    pod = f"{job}-{name}-{index}"
    if errors := qualified_name_errors(pod):
        task["name"].wrong(
            f"create pod with name {pod} validate failed [{' '.join(errors)}];",
            "shorten the names of job and task",
        )
    if job_size_rules.check_pod(task["template"]["spec"]):
        return
    is_valid = pod_template_rules.check(task["template"].renamed(f"spec.task[{index}].template"))
    if is_valid and task["topologyPolicy"].text() not in ("", "none"):
        _check_whole_cpus(task["template"]["spec"], index)
    check_partitions(task, job)


def _check_whole_cpus(spec: Field, index: int) -> None:
    """CPUs are pinned in whole numbers only."""
    containers = [*spec["containers"].items(), *spec["initContainers"].items()]
    for number, container in enumerate(containers):
        resources = container["resources"]
        stated = resources["requests"] if resources["requests"].mapping() else resources["limits"]
        if not _is_whole(stated["cpu"].value):
            stated["cpu"].wrong(
                f"the cpu request isn't an integer in spec.task[{index}] container[{number}].",
                "ask for whole CPUs, or drop topologyPolicy",
            )
            return


def _is_whole(quantity: Any) -> bool:
    try:
        cpus = exact(quantity)
    except QuantityError:
        return False
    return cpus > 0 and cpus.denominator == 1


def check_partitions(task: Field, job: str) -> None:
    """A task in partitions has as many replicas as its partitions hold."""
    policy = task["partitionPolicy"]
    if not policy.given:
        return
    total, size, minimum = (
        policy[key].number() for key in ("totalPartitions", "partitionSize", "minPartitions")
    )
    where = f"in task: {task['name'].text()}, job: {job}"
    min_available = task["minAvailable"]
    if total <= 0:
        policy["totalPartitions"].wrong(f"'TotalPartitions' must be greater than 0 {where}")
    elif size <= 0:
        policy["partitionSize"].wrong(f"'PartitionSize' must be greater than 0 {where}")
    elif task["replicas"].number() != total * size:
        task["replicas"].wrong(
            f"'Replicas' are not equal to TotalPartitions*PartitionSize {where}", f"they are {total * size}"
        )
    elif minimum > 0 and min_available.given and min_available.number() != minimum * size:
        min_available.wrong(
            f"'MinAvailable' is not equal to MinPartitions*PartitionSize {where}",
            f"it is {minimum * size}; leave it out to have it filled in",
        )
    check_topology(policy["networkTopology"])
