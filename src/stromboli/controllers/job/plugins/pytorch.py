"""`pytorch`: the address of the master and the rank of each pod."""

from dataclasses import dataclass

from stromboli.api.types.volcano_job import Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend
from stromboli.controllers.job.plugins.job_plugin import JobPlugin, declares_port, first_host, task_named
from stromboli.policy.arguments import arg

PORT_NAME = "pytorchjob-port"
WAITING = "wait-for-master"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The roles of tasks, and whether workers wait for the master."""

    master: str = arg("master", "master", "The task of the master.")
    worker: str = arg("worker", "worker", "The task of workers.")
    port: int = arg("port", 23456, "Where the master listens.")
    wait: bool = arg("wait-master-enabled", False, "Workers start when the master can be reached.")
    timeout: int = arg("wait-master-timeout", 300, "Seconds after which they give up.")
    image: str = arg("wait-master-image", "busybox:1.36.1", "The image of the container that waits.")


class PyTorch(JobPlugin):
    """Does nothing for a job without a master."""

    name = "pytorch"
    Arguments = Arguments

    def dress(self, member: Member, pod: Manifest) -> None:
        given = self.arguments
        master, worker = task_named(member.job, given.master), task_named(member.job, given.worker)
        if master is None:
            return
        address = first_host(member.job, master)
        env = {
            "MASTER_ADDR": address,
            "MASTER_PORT": str(given.port),
            "WORLD_SIZE": str(master.replicas + (worker.replicas if worker is not None else 0)),
        }
        if member.task.name == given.master:
            env["RANK"] = "0"
        elif member.task.name == given.worker:
            env["RANK"] = str(member.index + 1)
        for container in containers(pod["spec"]):
            if not declares_port(container, given.port):
                extend(container, "ports", {"name": PORT_NAME, "containerPort": given.port})
            extend(container, "env", *({"name": name, "value": value} for name, value in env.items()))
        if given.wait and member.task.name == given.worker:
            self._wait(pod["spec"], address)

    def _wait(self, spec: Manifest, address: str) -> None:
        init = spec.get("initContainers") or ()
        if any(isinstance(container, dict) and container.get("name") == WAITING for container in init):
            return
        script = _SCRIPT.format(host=address, port=self.arguments.port, timeout=self.arguments.timeout)
        container = {"name": WAITING, "image": self.arguments.image, "command": ["sh", "-c", script]}
        extend(spec, "initContainers", container)


_SCRIPT = """\
reaches() {{
  if command -v nc >/dev/null 2>&1; then nc -z {host} {port}
  else "$shell" -c ': < /dev/tcp/{host}/{port}' 2>/dev/null; fi
}}
shell=$(command -v bash || command -v sh)
echo "waiting for the master at {host}:{port}, {timeout} seconds at most"
waited=0
until reaches; do
  if [ "$waited" -ge {timeout} ]; then echo "no answer from {host}:{port} in {timeout} seconds"; exit 1; fi
  sleep 2
  waited=$((waited + 2))
done
"""
