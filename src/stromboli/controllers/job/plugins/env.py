"""`env`: every container knows the index of its pod."""

from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend
from stromboli.controllers.job.plugins.job_plugin import JobPlugin


class Env(JobPlugin):
    """Sets `VC_TASK_INDEX` and its old name."""

    name = "env"

    def dress(self, member: Member, pod: Manifest) -> None:
        index = str(member.index)
        for container in containers(pod["spec"], init=True):
            for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
                extend(container, "env", {"name": name, "value": index})
