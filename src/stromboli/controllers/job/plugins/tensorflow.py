"""`tensorflow`: `TF_CONFIG` for a cluster of parameter servers, workers, a chief and an evaluator."""

from dataclasses import dataclass

import msgspec

from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, hosts_of, task_named
from stromboli.policy.arguments import arg

ROLES = ("ps", "worker", "chief", "evaluator")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The roles of tasks."""

    ps: str = arg("ps", "ps", "The task of parameter servers.")
    worker: str = arg("worker", "worker", "The task of workers.")
    chief: str = arg("chief", "chief", "The task of the chief.")
    evaluator: str = arg("evaluator", "evaluator", "The task of the evaluator.")
    port: int = arg("port", 2222, "Where they listen.")


class TensorFlow(JobPlugin):
    """Does nothing for a job of a single pod."""

    name = "tensorflow"
    Arguments = Arguments

    def dress(self, member: Member, pod: Manifest) -> None:
        tasks = member.job.spec.tasks
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return
        played = (role for role in ROLES if getattr(self.arguments, role) == member.task.name)
        config = {
            "cluster": self._cluster(member.job),
            "task": {"type": next(played, member.task.name), "index": member.index},
        }
        value = msgspec.json.encode(config).decode()
        for container in containers(pod["spec"]):
            extend(container, "env", {"name": "TF_CONFIG", "value": value})

    def _cluster(self, job: Job) -> dict[str, list[str]]:
        cluster = {}
        for role in ROLES:
            task = task_named(job, getattr(self.arguments, role))
            hosts = hosts_of(job, task, each=True) if task is not None else []
            if hosts:
                cluster[role] = [f"{host}:{self.arguments.port}" for host in hosts]
        return cluster
