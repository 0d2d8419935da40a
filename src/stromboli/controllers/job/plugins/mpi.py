"""`mpi`: the master knows its workers; goes with `svc` and `ssh`."""

from dataclasses import dataclass

from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, declares_port, hosts_of, task_named
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments:
    """The roles of tasks."""

    master: str = arg("master", "master", "The task that starts the others.")
    worker: str = arg("worker", "worker", "The task of workers.")
    port: int = arg("port", 22, "Where sshd listens.")


class Mpi(JobPlugin):
    """`MPI_HOST` in the pods of the master, and a port in all."""

    name = "mpi"
    Arguments = Arguments

    def dress(self, member: Member, pod: Manifest) -> None:
        given, spec = self.arguments, pod["spec"]
        is_master = member.task.name == given.master
        worker = task_named(member.job, given.worker)
        if is_master and worker is None:
            return
        for container in containers(spec, init=True):
            if is_master and worker is not None:
                hosts = ",".join(hosts_of(member.job, worker)) if worker.replicas else ""
                extend(container, "env", {"name": "MPI_HOST", "value": hosts})
            if not declares_port(container, given.port):
                extend(container, "ports", {"name": "mpijob-port", "containerPort": given.port})
