"""`hcclrank`: the rank of a pod as an annotation, for Ascend devices."""

from dataclasses import dataclass

from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.job.job_pods import Member, containers
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, task_named
from stromboli.policy.arguments import arg

RANK = "hccl/rankIndex"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The roles of tasks."""

    master: str = arg("master", "master", "The task of the master.")
    worker: str = arg("worker", "worker", "The task of workers.")


class HcclRank(JobPlugin):
    """The `RANK` of a container, else a rank by task and index; an annotation that exists stays."""

    name = "hcclrank"
    Arguments = Arguments
    after = ("pytorch",)
    is_marked = False

    def dress(self, member: Member, pod: Manifest) -> None:
        annotations = pod["metadata"]["annotations"]
        if annotations.get(RANK):
            return
        rank = _container_rank(pod) or self._index_rank(member)
        if rank is not None:
            annotations[RANK] = rank

    def _index_rank(self, member: Member) -> str | None:
        if member.task.name == self.arguments.master:
            return str(member.index)
        if member.task.name == self.arguments.worker:
            master = task_named(member.job, self.arguments.master)
            return str(member.index + (master.replicas if master is not None else 0))
        return None


def _container_rank(pod: Manifest) -> str | None:
    for container in containers(pod["spec"]):
        for variable in container.get("env") or ():
            if isinstance(variable, dict) and variable.get("name") == "RANK":
                return str(variable.get("value", "")) or None
    return None
