"""What the commands of pods in Volcano's end-to-end suites would do, told to simulated nodes by a webhook.

Simulated nodes run nothing: a pod whose command is no plain `sleep` runs for ever, unless annotations say how it ends.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kubernetes.client as official

from stromboli.embedded.nodes.node_annotations import EXIT_CODE, RUN_TIME
from tests.serving import CERTIFICATE, Asked, serving

NOT_FOUND = "127"
FAILING = re.compile(r"sleep (?P<time>\d+)s? && (?:exit (?P<code>\d+)|\w+)|sh fake\.sh")
"""They end with an exit code of their own, or since there is no such command."""


def ending(pod: dict[str, Any]) -> dict[str, str]:
    """The annotations that say how a pod ends; none if its nodes know that themselves."""
    container = pod["spec"]["containers"][0]
    words = [*container.get("command", ()), *container.get("args", ())]
    match = FAILING.fullmatch(words[-1]) if words else None
    if match is None:
        return {}
    return {RUN_TIME: f"{match['time'] or 0}s", EXIT_CODE: match["code"] or NOT_FOUND}


def review(asked: Asked) -> bytes:
    request = json.loads(asked.body)["request"]
    response: dict[str, Any] = {"uid": request["uid"], "allowed": True}
    if annotations := ending(request["object"]):
        whole = request["object"]["metadata"].get("annotations", {}) | annotations
        patch = [{"op": "add", "path": "/metadata/annotations", "value": whole}]
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
    answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return json.dumps(answer).encode()


@contextmanager
def commands_that_end(client: official.ApiClient) -> Iterator[None]:
    """While this is open, the commands of new pods end as they would on a real node."""
    with serving(review, {"Content-Type": "application/json"}, secure=True) as server:
        certificate = CERTIFICATE.read_text()
        certificate = certificate[certificate.index("-----BEGIN CERTIFICATE") :]
        webhook = {
            "name": "commands.stromboli.test",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": server.url, "caBundle": base64.b64encode(certificate.encode()).decode()},
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ],
        }
        configuration = {"metadata": {"name": "commands"}, "webhooks": [webhook]}
        official.AdmissionregistrationV1Api(client).create_mutating_webhook_configuration(configuration)
        yield
