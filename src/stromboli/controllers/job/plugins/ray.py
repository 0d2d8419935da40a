"""`ray`: a head, workers that join it, and a Service in front of the head."""

from collections.abc import Iterator
from dataclasses import dataclass

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend, metadata_of
from stromboli.controllers.job.plugins.job_plugin import (
    Attachment,
    JobPlugin,
    PluginFailure,
    declares_port,
    first_host,
    task_named,
)
from stromboli.policy.arguments import arg


@dataclass(frozen=True, slots=True)
class Arguments:
    """The roles of tasks and containers, and the ports of the head."""

    head: str = arg("head", "head", "The task of the head.")
    head_container: str = arg("headContainer", "head", "The container of the head that runs Ray.")
    worker: str = arg("worker", "worker", "The task of workers.")
    worker_container: str = arg("workerContainer", "worker", "The container of workers that runs Ray.")
    port: int = arg("port", 6379, "Of the head's store.")
    dashboard_port: int = arg("dashboardPort", 8265, "Of the dashboard.")
    client_port: int = arg("clientPort", 10001, "For clients.")


class Ray(JobPlugin):
    """Replaces the commands of the containers that run Ray."""

    name = "ray"
    Arguments = Arguments

    def dress(self, member: Member, pod: Manifest) -> None:
        given = self.arguments
        head = task_named(member.job, given.head)
        if head is None:
            raise PluginFailure(f"plugin ray: the job has no task {given.head}; name one with --head")
        for container in containers(pod["spec"]):
            if member.task.name == given.head and container.get("name") == given.head_container:
                self._set_up_head(container)
            elif member.task.name == given.worker and container.get("name") == given.worker_container:
                address = f"{first_host(member.job, head)}:{given.port}"
                container["command"] = ["sh", "-c", f"ray start --block --address={address}"]

    def attachments(self, job: Job) -> Iterator[Attachment]:
        selector = {
            names.JOB_NAME: job.name,
            names.JOB_NAMESPACE: job.namespace,
            names.TASK_SPEC: self.arguments.head,
        }
        ports = [
            {"name": name, "protocol": "TCP", "port": number, "targetPort": name}
            for name, number in self._ports()
        ]
        yield Attachment(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata_of(job, f"{job.name}-head-svc"),
                "spec": {"type": "ClusterIP", "selector": selector, "ports": ports},
            }
        )

    def _ports(self) -> list[tuple[str, int]]:
        given = self.arguments
        return [
            ("gcs", given.port),
            ("dashboard", given.dashboard_port),
            ("client-server", given.client_port),
        ]

    def _set_up_head(self, container: Manifest) -> None:
        for name, number in self._ports():
            if not declares_port(container, number):
                extend(container, "ports", {"name": name, "containerPort": number})
        given = self.arguments
        command = (
            f"ray start --head --block --dashboard-host=0.0.0.0 --port={given.port}"
            f" --dashboard-port={given.dashboard_port} --ray-client-server-port={given.client_port}"
        )
        container["command"] = ["sh", "-c", command]
