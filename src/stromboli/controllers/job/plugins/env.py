"""`env`: every container knows the index of its pod."""

from stromboli.api.job import Manifest
from stromboli.controllers.job.plugins.base import JobPlugin
from stromboli.controllers.job.pods import Member, containers, extend


class Env(JobPlugin):
    """Sets `VC_TASK_INDEX` and its old name."""

    name = "env"

    def dress(self, member: Member, pod: Manifest) -> None:
        index = str(member.index)
        for container in containers(pod["spec"], init=True):
            for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
                extend(container, "env", {"name": name, "value": index})
