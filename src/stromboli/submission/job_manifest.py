"""The manifest of the Volcano Job that a request asks for: tasks by role, plugins, policies, time limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stromboli.api import names
from stromboli.api.go_scalars import duration
from stromboli.api.predecessors import format_predecessors
from stromboli.submission.job_request import JobRequest
from stromboli.submission.launch_command import FOLDER, launch, literal
from stromboli.submission.pod_variables import MAX_HOSTS, variables

Manifest = dict[str, Any]
WORKER, MASTER, HEAD = "worker", "master", "head"
CONTAINER = "main"
SCRIPT_VOLUME = "stromboli"
MAX_SERVICE_PODS = 5000
"""Pods of a gang with host names: the ConfigMap of the plugin `svc` has all of them twice, and at most 1 MiB."""
HOST_FILE = "/etc/volcano/worker.host"
"""Where the plugin `svc` mounts the hosts of the workers."""
_SSHD = ("sh", "-c", 'mkdir -p /run/sshd && exec "$(command -v sshd || echo /usr/sbin/sshd)" -D -e')
_RAY_PORTS = (("gcs", 6379), ("dashboard", 8265), ("client-server", 10001))
_RAY_HEAD = (
    "ray start --head --port=6379 --dashboard-host=0.0.0.0 --dashboard-port=8265"
    " --ray-client-server-port=10001 || exit 1"
)
_MPI_ENV = {
    "OMPI_MCA_orte_default_hostfile": HOST_FILE,
    "HYDRA_HOST_FILE": HOST_FILE,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
_COMPLETES = ({"event": "TaskCompleted", "action": "CompleteJob"},)


@dataclass(frozen=True, slots=True)
class Role:
    """A task: how many pods, which of the ranks, and what they run if not the command."""

    name: str
    replicas: int
    first_rank: int = 0
    command: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    container: str = CONTAINER
    env: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[tuple[str, int], ...] = ()
    policies: tuple[Mapping[str, str], ...] = ()
    has_gpus: bool = True


def job_manifest(
    request: JobRequest,
    namespace: str,
    node_selector: Mapping[str, str] | None = None,
    submitted_from: str = "",
) -> Manifest:
    """What an API server takes."""
    roles = roles_of(request)
    total = sum(role.replicas for role in roles)
    spec: Manifest = {
        "schedulerName": names.SCHEDULER_NAME,
        "queue": request.queue or names.DEFAULT_QUEUE,
        "minAvailable": request.gang + total - request.pods,
    }
    if request.array is not None:
        spec["minSuccess"] = total
    if request.priority:
        spec["priorityClassName"] = request.priority
    if plugins := plugins_of(request):
        spec["plugins"] = plugins
    if policies := _policies(request):
        spec["policies"] = policies
    hosts = _hosts(request, roles)
    spec["tasks"] = [
        _task(request, role, hosts, len(roles) == 1, node_selector, submitted_from) for role in roles
    ]
    metadata: Manifest = {"name": request.name, "namespace": namespace}
    if annotations := _annotations(request):
        metadata["annotations"] = annotations
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def _hosts(request: JobRequest, roles: list[Role]) -> list[str]:
    """The hosts of the pods that do the work, which have names only if there is a Service."""
    if not plugins_of(request):
        return ["localhost"]
    workers = [role for role in roles if role.name == WORKER or request.plugin != "mpi"]
    return [
        f"{request.name}-{role.name}-{index}.{request.name}"
        for role in workers
        for index in range(role.replicas)
    ]


def roles_of(request: JobRequest) -> list[Role]:
    """The tasks that the plugin needs; one of equal pods without."""
    others = request.replicas - 1
    if request.plugin == "pytorch":
        roles = [Role(MASTER, 1), Role(WORKER, others, first_rank=1)]
    elif request.plugin == "mpi":
        workers = Role(WORKER, request.replicas, first_rank=1, command=_SSHD)
        roles = [Role(MASTER, 1, env=_MPI_ENV, policies=_COMPLETES, has_gpus=False), workers]
    elif request.plugin == "ray":
        env = {"RAY_ADDRESS": "auto"}
        head = Role(HEAD, 1, setup=(_RAY_HEAD,), env=env, ports=_RAY_PORTS, policies=_COMPLETES)
        roles = [head, Role(WORKER, others, first_rank=1, command=("ray",), container=WORKER)]
    else:
        roles = [Role(WORKER, request.pods)]
    return [role for role in roles if role.replicas]


def plugins_of(request: JobRequest) -> dict[str, list[str]]:
    """The job plugins, each with its flags."""
    if not request.plugin:
        if request.array is not None or not 1 < request.replicas <= MAX_SERVICE_PODS:
            return {}
        return {"svc": [] if request.replicas <= MAX_HOSTS else ["--inject-hosts-env=false"]}
    plugins: dict[str, list[str]] = {request.plugin: []}
    if request.plugin == "pytorch":
        plugins["pytorch"] = [f"--port={request.port}"]
    if request.plugin == "mpi":
        plugins["ssh"] = []
    plugins["svc"] = []
    return plugins


def _policies(request: JobRequest) -> list[Manifest]:
    """A pod that fails ends the job, and a gang that loses a pod starts again; indexes of an array are independent."""
    if request.array is not None:
        return []
    policies = [{"event": "PodFailed", "action": "TerminateJob"}]
    if request.requeue and (request.replicas > 1 or request.plugin) and request.gang == request.replicas:
        policies.append({"event": "PodEvicted", "action": "RestartJob"})
    return policies


def _annotations(request: JobRequest) -> dict[str, str]:
    annotations = {}
    if request.seconds is not None:
        annotations[names.TIME_LIMIT] = time_text(request.seconds)
    if request.after:
        annotations[names.AFTER] = format_predecessors(request.after)
    if request.array is not None and request.array.at_once:
        annotations[names.PARALLELISM] = str(request.array.at_once)
    return annotations


def time_text(seconds: int) -> str:
    """As backfill reads it: `1h30m`."""
    hours, rest = divmod(seconds, 3600)
    minutes, last = divmod(rest, 60)
    text = "".join(
        f"{amount}{unit}" for amount, unit in ((hours, "h"), (minutes, "m"), (last, "s")) if amount
    )
    assert duration(text) == seconds
    return text


def _task(
    request: JobRequest,
    role: Role,
    hosts: list[str],
    is_only_task: bool,
    node_selector: Mapping[str, str] | None,
    submitted_from: str,
) -> Manifest:
    container = _container(request, role, hosts, is_only_task, submitted_from)
    spec: Manifest = {"restartPolicy": "Never", "containers": [container]}
    if request.script is not None and not role.command:
        spec["volumes"] = [{"name": SCRIPT_VOLUME, "emptyDir": {}}]
        container["volumeMounts"] = [{"name": SCRIPT_VOLUME, "mountPath": FOLDER}]
    if request.seconds is not None:
        spec["activeDeadlineSeconds"] = request.seconds
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    if request.after:
        spec["schedulingGates"] = [{"name": names.AFTER}]
    task: Manifest = {"name": role.name, "replicas": role.replicas, "template": {"spec": spec}}
    if request.gang < request.pods:
        task["minAvailable"] = request.gang
    if role.policies:
        task["policies"] = [dict(policy) for policy in role.policies]
    return task


def _container(
    request: JobRequest, role: Role, hosts: list[str], is_only_task: bool, submitted_from: str
) -> Manifest:
    command = [literal(word) for word in role.command] or launch(request, role.setup, role.first_rank)
    listed = variables(request, hosts, is_only_task, submitted_from)
    listed += [{"name": name, "value": value} for name, value in role.env.items() if name not in request.env]
    container: Manifest = {
        "name": role.container,
        "image": request.image,
        "command": command,
        "env": listed,
    }
    if request.workdir and not role.command:
        container["workingDir"] = request.workdir
    if request.tty and not role.command:
        container["tty"] = True
    if resources := _resources(request, role):
        container["resources"] = resources
    if role.ports:
        container["ports"] = [{"name": name, "containerPort": number} for name, number in role.ports]
    return container


def _resources(request: JobRequest, role: Role) -> Manifest:
    """Memory and GPUs are limits as well, CPUs are what the pod is sure to get."""
    requests = {"cpu": request.cpus} if request.cpus else {}
    limits = {"memory": request.memory} if request.memory else {}
    if role.has_gpus:
        limits |= {resource: str(number) for resource, number in request.gpus.items()}
    resources: Manifest = {"requests": {**requests, **limits}} if requests or limits else {}
    return {**resources, "limits": limits} if limits else resources
