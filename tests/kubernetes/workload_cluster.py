"""A namespace of a cluster where controllers make the pods of workloads and the test is the kubelet."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from tests.kubernetes.controlplane import ControlPlane

Json = Any
MERGE = "application/merge-patch+json"
PATIENCE = 60.0
"""Seconds that a test waits for something to become so."""
GROUPS = {
    "pods": "api/v1",
    "events": "api/v1",
    "replicationcontrollers": "api/v1",
    "persistentvolumeclaims": "api/v1",
    "deployments": "apis/apps/v1",
    "replicasets": "apis/apps/v1",
    "statefulsets": "apis/apps/v1",
    "daemonsets": "apis/apps/v1",
    "controllerrevisions": "apis/apps/v1",
    "jobs": "apis/batch/v1",
    "cronjobs": "apis/batch/v1",
}
TEMPLATE = {"containers": [{"name": "main", "image": "busybox"}], "terminationGracePeriodSeconds": 0}


def template(labels: dict[str, str], **spec: Json) -> Json:
    """A pod template."""
    return {"metadata": {"labels": labels}, "spec": {**TEMPLATE, **spec}}


class WorkloadCluster:
    """Objects of one namespace, by plural and name."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})

    def path(self, plural: str, name: str = "", subresource: str = "") -> str:
        parts = [f"/{GROUPS[plural]}/namespaces/{self.namespace}/{plural}", name, subresource]
        return "/".join(part for part in parts if part)

    def kubectl(self, *arguments: str, **options: Any) -> str:
        return self.plane.kubectl("-n", self.namespace, *arguments, **options)

    # -- objects

    def create(self, plural: str, name: str, spec: Json, **metadata: Json) -> Json:
        body = {"metadata": {"name": name, **metadata}, "spec": spec}
        return json.loads(self.plane.request("POST", self.path(plural), body))

    def get(self, plural: str, name: str) -> Json:
        """None if it does not exist."""
        try:
            return json.loads(self.plane.request("GET", self.path(plural, name)))
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def list(self, plural: str) -> list[Json]:
        """In the order of their names."""
        items = json.loads(self.plane.request("GET", self.path(plural)))["items"]
        return sorted(items, key=lambda item: item["metadata"]["name"])

    def patch(self, plural: str, name: str, change: Json, subresource: str = "") -> Json:
        path = self.path(plural, name, subresource)
        return json.loads(self.plane.request("PATCH", path, change, MERGE))

    def delete(self, plural: str, name: str, propagation: str = "Background") -> None:
        path = f"{self.path(plural, name)}?propagationPolicy={propagation}&gracePeriodSeconds=0"
        self.plane.request("DELETE", path)

    def node(self, name: str) -> str:
        """A node of this test, where pods may be though nothing runs them."""
        full = f"{self.namespace}-{name}"
        self.plane.request("POST", "/api/v1/nodes", {"metadata": {"name": full}})
        return full

    # -- waiting

    def eventually(self, holds: Callable[[], object], what: str) -> None:
        self.plane.wait(lambda: bool(holds()), what, PATIENCE)

    def wait(self, plural: str, name: str, condition: Callable[[Json], object], what: str) -> Json:
        """The object, once a condition holds for it."""
        last: list[Json] = [None]

        def holds() -> bool:
            last[0] = self.get(plural, name)
            return last[0] is not None and bool(condition(last[0]))

        try:
            self.plane.wait(holds, what, PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {json.dumps(last[0], indent=1)}") from None
        return last[0]

    def wait_status(self, plural: str, name: str, **expected: Json) -> Json:
        """The object once its status has these values, None for a missing one."""
        return self.wait(
            plural,
            name,
            lambda item: all((item.get("status") or {}).get(key) == value for key, value in expected.items()),
            f"{plural} {name} to have {expected}",
        )

    def wait_pods(self, count: int, owner: str = "") -> list[Json]:
        """The active pods, once there are so many."""
        self.eventually(lambda: len(self.pods(owner)) == count, f"{count} pods of {owner or 'all'}")
        return self.pods(owner)

    def pods(self, owner: str = "") -> list[Json]:
        """Pods that have not ended and are not being deleted, of a controlling owner if one is named."""
        return [
            pod
            for pod in self.list("pods")
            if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
            and "deletionTimestamp" not in pod["metadata"]
            and (not owner or controller_name(pod) == owner)
        ]

    def events(self, name: str = "") -> list[Json]:
        """Of the object with that name."""
        return [event for event in self.list("events") if name in ("", event["involvedObject"]["name"])]

    def event_texts(self, name: str) -> set[tuple[str, str, str]]:
        """Source, reason and message of the events of an object."""
        return {
            (event["source"]["component"], event["reason"], event["message"]) for event in self.events(name)
        }

    # -- the kubelet's part

    def set_status(self, pod: Json, **status: Json) -> Json:
        return self.patch("pods", pod["metadata"]["name"], {"status": status}, "status")

    def set_ready(self, pods: Iterable[Json], ready: bool = True, since: datetime | None = None) -> None:
        """Pods run, and are ready or not."""
        moment = (since or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": moment}
        for pod in pods:
            self.set_status(pod, phase="Running", conditions=[condition])

    def end(self, pod: Json, phase: str = "Succeeded") -> None:
        self.set_status(pod, phase=phase)


def controller_name(item: Json) -> str:
    """The name of the controlling owner."""
    owners = item["metadata"].get("ownerReferences") or ()
    return next((owner["name"] for owner in owners if owner.get("controller")), "")


def names(items: Iterable[Json]) -> list[str]:
    return [item["metadata"]["name"] for item in items]
