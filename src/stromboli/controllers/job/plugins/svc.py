"""`svc`: pods of a job find each other by name, and only they can reach each other (spec 06 3.1)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stromboli.api import names
from stromboli.api.types.volcano_job import Job, Manifest
from stromboli.controllers.job.job_pods import Member, containers, extend, metadata_of
from stromboli.controllers.job.plugins.job_plugin import Attachment, JobPlugin, hosts_of
from stromboli.policy.arguments import arg

HOSTS_FOLDER = "/etc/volcano"


@dataclass(frozen=True, slots=True)
class Arguments:
    """How pods find each other."""

    publish_not_ready: bool = arg(
        "publish-not-ready-addresses", False, "Give pods a name before they are ready."
    )
    no_policy: bool = arg("disable-network-policy", False, "Let other pods reach the pods of the job.")
    hosts_env: bool = arg("inject-hosts-env", True, "Set `VC_<task>_HOSTS` and `VC_<task>_NUM`.")


class Svc(JobPlugin):
    """A headless Service, a NetworkPolicy, and a ConfigMap with the hosts of every task."""

    name = "svc"
    Arguments = Arguments

    def __init__(self, arguments: Any) -> None:
        super().__init__(arguments)
        self._variables: tuple[Job, list[Manifest]] | None = None
        """The variables of the job whose pods are made, which are the same for all of them."""

    def dress(self, member: Member, pod: Manifest) -> None:
        job, spec = member.job, pod["spec"]
        spec["hostname"] = spec.get("hostname") or member.name
        spec["subdomain"] = spec.get("subdomain") or job.name
        config_map = _config_map_name(job)
        env = self._references(job) if self.arguments.hosts_env else []
        for container in containers(spec, init=True):
            if env:
                extend(container, "env", *({**variable} for variable in env))
            extend(container, "volumeMounts", {"name": config_map, "mountPath": HOSTS_FOLDER})
        extend(spec, "volumes", {"name": config_map, "configMap": {"name": config_map}})

    def _references(self, job: Job) -> list[Manifest]:
        if self._variables is None or self._variables[0] is not job:
            self._variables = (job, list(_references(job)))
        return self._variables[1]

    def attachments(self, job: Job) -> Iterator[Attachment]:
        yield Attachment(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata_of(job, _config_map_name(job)),
                "data": _hosts(job),
            },
            follows="data",
        )
        service = {
            "clusterIP": "None",
            "selector": _selector(job),
            "publishNotReadyAddresses": self.arguments.publish_not_ready,
        }
        yield Attachment(
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata_of(job, job.name), "spec": service}
        )
        if not self.arguments.no_policy:
            yield Attachment(_network_policy(job))


def _config_map_name(job: Job) -> str:
    return f"{job.name}-svc"


def _selector(job: Job) -> dict[str, str]:
    return {names.JOB_NAME: job.name, names.JOB_NAMESPACE: job.namespace}


def _variable(task: str) -> str:
    return task.replace("-", "_").upper()


def _hosts(job: Job) -> dict[str, str]:
    data = {}
    for task in job.spec.tasks:
        hosts = hosts_of(job, task)
        data[f"{task.name.replace('-', '_')}.host"] = "\n".join(hosts)
        data[f"VC_{_variable(task.name)}_HOSTS"] = ",".join(hosts)
        data[f"VC_{_variable(task.name)}_NUM"] = str(len(hosts))
    return data


def _references(job: Job) -> Iterator[Manifest]:
    for task in job.spec.tasks:
        for suffix in ("HOSTS", "NUM"):
            key = f"VC_{_variable(task.name)}_{suffix}"
            source = {"configMapKeyRef": {"name": _config_map_name(job), "key": key}}
            yield {"name": key, "valueFrom": source}


def _network_policy(job: Job) -> Manifest:
    pods = {"matchLabels": _selector(job)}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata_of(job, job.name),
        "spec": {
            "podSelector": pods,
            "ingress": [{"from": [{"podSelector": pods}]}],
            "policyTypes": ["Ingress"],
        },
    }
