"""Names of a pod's peers on real nodes: there is no DNS, and all of them are processes of this machine.

In Kubernetes `<hostname>.<subdomain>` names the pod with that hostname, of those that a headless Service selects:
pods of a StatefulSet, and of a Volcano Job with the plugin `svc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from stromboli.api import names
from stromboli.embedded.nodes.node_types import NodePod
from stromboli.embedded.nodes.pod_addresses import LOCAL

_HOST = r"[a-z0-9][-a-z0-9]{0,62}"
_NUMBERED = re.compile(r"(.+)-[0-9]+")


def local_names(pod: NodePod) -> Callable[[str], str]:
    """A function that replaces names of the pod's peers in a text by the address of this machine.

    `best.torch` may well be a file, although the subdomain is `torch`. So a name counts if it is numbered like the
    pods of the same owner (`torch-worker-1.torch`), or has a port or the namespace behind it.
    """
    if not pod.spec.subdomain:
        return str
    subdomain, namespace = rf"\.{re.escape(pod.spec.subdomain)}", rf"\.{re.escape(pod.namespace)}"
    service = rf"{namespace}\.svc(?:\.cluster\.local\.?)?"
    known = rf"(?:{'|'.join(_known_hosts(pod))}){subdomain}(?:{service}|{namespace})?"
    other = rf"{_HOST}{subdomain}(?:{service}|(?:{namespace})?(?=:[0-9]))"
    return partial(re.compile(rf"(?<![\w.-])(?:{known}|{other})(?![\w-])(?!\.\w)").sub, LOCAL)


def hosts_config_map(pod: NodePod) -> str:
    """The ConfigMap in which the plugin `svc` lists the hosts of the pod's job; empty if the pod has none."""
    job = pod.metadata.labels.get(names.JOB_NAME)
    return f"{job}-svc" if job and pod.spec.subdomain else ""


def _known_hosts(pod: NodePod) -> Iterator[str]:
    """Patterns of the pod's own hostname, and of the others of its owner."""
    hostname = pod.spec.hostname or pod.name
    yield re.escape(hostname)
    if match := _NUMBERED.fullmatch(hostname):
        yield rf"{re.escape(match[1])}-[0-9]+"
    if job := pod.metadata.labels.get(names.JOB_NAME):
        yield rf"{re.escape(job)}-[-a-z0-9]{{1,62}}-[0-9]+"
