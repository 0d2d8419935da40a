"""The variables of a job's containers: rank and size, and for scripts those that Slurm would set."""

from __future__ import annotations

from typing import Any

from stromboli.api import names
from stromboli.api.resources.quantity import exact
from stromboli.submission.job_request import JobRequest
from stromboli.submission.launch_command import INDEX, literal
from stromboli.submission.run_settings import whole_cpus

Variables = list[dict[str, Any]]
MAX_HOSTS = 1000
"""Hosts that `SLURM_JOB_NODELIST` names, in every pod; Linux takes no variable above 128 KiB."""
RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""Variables of each process of a gang, as PyTorch reads them."""


def variables(request: JobRequest, hosts: list[str], is_only_task: bool, submitted_from: str) -> Variables:
    """Those of the job come first, so that the user's own come after them and win."""
    known = _common(request)
    if request.script is not None:
        known |= _of_slurm(request, hosts, submitted_from)
    if request.has_ranks:
        known |= _of_gang(request, hosts)
    taken = {**known, **request.env}
    by_index = [INDEX]
    if is_only_task and request.array is None:
        by_index.append("STROMBOLI_RANK")
        if request.has_ranks and request.script is None:
            by_index.append("RANK")
    if request.array is not None and request.array.counts_from_zero:
        by_index += ["STROMBOLI_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID"]
    listed: Variables = [
        field_variable(name, names.TASK_INDEX) for name in by_index if name not in request.env
    ]
    if request.script is not None:
        listed.append(field_variable("SLURM_RESTART_COUNT", names.JOB_RETRY_COUNT))
    return listed + [{"name": name, "value": literal(value)} for name, value in taken.items()]


def field_variable(name: str, annotation: str) -> dict[str, Any]:
    """A variable with the value of an annotation that the job controller sets on each pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{annotation}']"}}}


def _common(request: JobRequest) -> dict[str, str]:
    known = {"STROMBOLI_JOB": request.name, "PYTHONUNBUFFERED": "1"}
    array = request.array
    if array is None:
        return {**known, "STROMBOLI_WORLD_SIZE": str(request.replicas)}
    return {
        **known,
        "SLURM_ARRAY_JOB_ID": str(request.number),
        "SLURM_ARRAY_TASK_COUNT": str(len(array.indexes)),
        "SLURM_ARRAY_TASK_MIN": str(array.indexes[0]),
        "SLURM_ARRAY_TASK_MAX": str(array.indexes[-1]),
        "SLURM_ARRAY_TASK_STEP": str(array.step or 1),
    }


def _of_gang(request: JobRequest, hosts: list[str]) -> dict[str, str]:
    """Those of `RANKS` that are equal in all pods; the plugin `pytorch` sets the others itself."""
    known = {"LOCAL_RANK": "0"}
    if request.plugin != "pytorch":
        known["WORLD_SIZE"] = str(request.tasks)
        if len(hosts) == request.replicas:
            known |= {"MASTER_ADDR": hosts[0], "MASTER_PORT": str(request.port)}
    return known


def _of_slurm(request: JobRequest, hosts: list[str], submitted_from: str) -> dict[str, str]:
    nodes = 1 if request.array is not None else request.replicas
    tasks = request.tasks_per_pod if request.array is not None else request.tasks
    each, cpus = request.tasks_per_pod, whole_cpus(request.cpus)
    listed = ",".join(hosts[:MAX_HOSTS])
    gpus = sum(request.gpus.values())
    known = {
        "SLURM_JOB_ID": str(request.number),
        "SLURM_JOBID": str(request.number),
        "SLURM_JOB_NAME": request.title or request.name,
        "SLURM_SUBMIT_DIR": request.workdir or "/",
        "SLURM_SUBMIT_HOST": submitted_from,
        "SLURM_JOB_PARTITION": request.queue or names.DEFAULT_QUEUE,
        "SLURM_CLUSTER_NAME": "stromboli",
        "SLURM_NNODES": str(nodes),
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_JOB_NODELIST": listed,
        "SLURM_NODELIST": listed,
        "SLURM_NTASKS": str(tasks),
        "SLURM_NPROCS": str(tasks),
        "SLURM_NTASKS_PER_NODE": str(each),
        "SLURM_TASKS_PER_NODE": tasks_per_node(nodes, tasks),
        "SLURM_CPUS_PER_TASK": str(max(1, cpus // each)),
        "SLURM_CPUS_ON_NODE": str(cpus),
        "SLURM_JOB_CPUS_PER_NODE": _repeated(cpus, nodes),
    }
    if request.memory:
        known["SLURM_MEM_PER_NODE"] = str(int(exact(request.memory) / 1024**2))
    if gpus:
        known |= {
            "SLURM_GPUS": str(gpus * nodes),
            "SLURM_GPUS_PER_NODE": str(gpus),
            "SLURM_GPUS_ON_NODE": str(gpus),
        }
    return known


def tasks_per_node(nodes: int, tasks: int) -> str:
    """Tasks of each pod, as `srun` starts them: `2(x3),1` for seven of them in four pods."""
    each, more = divmod(tasks, nodes)
    return ",".join(filter(None, (_repeated(each + 1, more), _repeated(each, nodes - more))))


def _repeated(number: int, times: int) -> str:
    return "" if times < 1 else f"{number}(x{times})" if times > 1 else str(number)
