"""`vcctl pod list` (spec 07 16)."""

from __future__ import annotations

import time

import typer

from stromboli.api import names
from stromboli.cli.cluster.cluster_kinds import PODS, Manifest, name_of, namespace_of
from stromboli.cli.vcctl.vcctl_flags import Flag
from stromboli.cli.vcctl.vcctl_session import Call, VcctlCommand, VcctlError
from stromboli.cli.vcctl.vcctl_tables import NO_RESOURCES, print_fitted
from stromboli.embedded.tables.pod_rows import PODS as POD_PRINTER

QUEUE_LABEL = "volcano.sh/queue-name"
TITLES = ("Name", "Ready", "Status", "Restart", "Age")


async def list_pods(call: Call) -> None:
    everywhere = call.switch("all-namespaces")
    queue, job = call["queue"], call["job"]
    labels = f"{names.JOB_NAME}={job}" if job else "" if queue else names.JOB_NAME
    pods = (await call.session.list(PODS, "" if everywhere else None, labels=labels)).items
    if job and queue and any(_labels(pod).get(QUEUE_LABEL, queue) != queue for pod in pods):
        raise VcctlError(f"the input vcjob {job} does not match the queue {queue}")
    if queue and not job:
        pods = [pod for pod in pods if queue in (_labels(pod).get(QUEUE_LABEL), _queue_annotation(pod))]
    if not pods:
        typer.echo(NO_RESOURCES)
        return
    pods.sort(key=lambda pod: (namespace_of(pod), name_of(pod)))
    now = time.time()
    rows = [POD_PRINTER.row(pod, now)[: len(TITLES)] for pod in pods]
    if everywhere:
        rows = [[namespace_of(pod), *row] for pod, row in zip(pods, rows, strict=True)]
    print_fitted(("Namespace", *TITLES) if everywhere else TITLES, rows, 2, 8)


def _labels(pod: Manifest) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}


def _queue_annotation(pod: Manifest) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(names.QUEUE_NAME) or "")


POD_COMMANDS = {
    "list": VcctlCommand(
        "list pod information",
        (
            Flag("queue", "q", "", "list pod with specified queue name"),
            Flag("job", "j", "", "list pod with specified job name"),
            Flag("namespace", "n", "", "the namespace of job"),
            Flag("all-namespaces", "", "false", "list pods in all namespaces", boolean=True),
        ),
        list_pods,
    )
}
