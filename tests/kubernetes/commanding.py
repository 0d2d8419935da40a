"""Commands of users on an API server with controllers; the tests are the scheduler and the kubelet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

from typer.testing import CliRunner, Result

from stromboli.cli.main import app
from tests.kubernetes.controlling import ControllerCluster
from tests.kubernetes.controlplane import DIE_WITH_PARENT, ControlPlane

SOURCE = Path(__file__).parents[2] / "src"
RBAC = "rbac.authorization.k8s.io"
PATIENCE = "120s"
"""For what a command waits for."""


class CommandCluster(ControllerCluster):
    """What users type, and what happens around it."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        super().__init__(folder, plane)
        self.home = folder / "home"
        self.home.mkdir()

    def environment(self, kubeconfig: Path | None = None) -> dict[str, str]:
        """Of an administrator, or of whoever has that kubeconfig."""
        return {
            "KUBECONFIG": str(kubeconfig or self.plane.kubeconfig),
            "HOME": str(self.home),
            "XDG_RUNTIME_DIR": str(self.home),
        }

    def run(self, *arguments: object, kubeconfig: Path | None = None, stdin: str | None = None) -> Result:
        """`stromboli ...` as an administrator, or as whoever has that kubeconfig."""
        words = [str(argument) for argument in arguments]
        env = self.environment(kubeconfig)
        return CliRunner().invoke(app, words, catch_exceptions=False, env=env, input=stdin)

    @contextmanager
    def watching(self, *arguments: str) -> Iterator[Iterator[str]]:
        """The lines of a command that goes on, as they come; it is ended at the end, or after a while."""
        process = subprocess.Popen(
            (*DIE_WITH_PARENT, "timeout", PATIENCE, sys.executable, "-m", "stromboli", *arguments),
            env={**os.environ, **self.environment(), "PYTHONPATH": str(SOURCE)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        with process, process.stdout as lines:
            try:
                yield iter(lines)
            finally:
                process.terminate()

    def output(self, *arguments: object, **options: Any) -> str:
        """What a command prints that succeeds."""
        result = self.run(*arguments, **options)
        assert result.exit_code == 0, result.output
        return result.stdout

    def account(self, namespace: str, name: str, *rules: dict[str, Any], everywhere: bool = False) -> Path:
        """The kubeconfig of somebody with these rights, in a namespace or everywhere."""
        meta = {"name": name, "namespace": namespace}
        kind, binding = ("ClusterRole", "ClusterRoleBinding") if everywhere else ("Role", "RoleBinding")
        place = {"name": f"{namespace}-{name}"} if everywhere else meta
        spaces = "" if everywhere else f"/namespaces/{namespace}"
        root = f"/apis/{RBAC}/v1{spaces}"
        self.plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": meta})
        self.plane.request("POST", f"{root}/{kind.lower()}s", {"metadata": place, "rules": list(rules)})
        bound = {
            "metadata": place,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": place["name"]},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
        self.plane.request("POST", f"{root}/{binding.lower()}s", bound)
        path = self.folder / f"{namespace}-{name}.kubeconfig"
        path.write_text(json.dumps(self.plane.config_for(self.plane.token_for(namespace, name))))
        return path

    def place_of(self, space: str) -> str:
        self.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        return space

    # -- the scheduler's and the kubelet's part

    def start_pods(self, job: str, space: str, count: int) -> None:
        """Let a job in, and run so many of its pods."""
        uid = self.read("jobs", job, space)["metadata"]["uid"]
        group = f"{job}-{uid}"
        self.wait(lambda: self.read("podgroups", group, space), f"the PodGroup of {job}")
        self.patch("podgroups", group, {"status": {"phase": "Inqueue"}}, space)
        self.wait(lambda: len(self.pods(job, space)) >= count, f"{count} pods of {job}")
        for pod in self.pods(job, space):
            self.patch("pods", pod, {"status": {"phase": "Running"}}, space, "status")

    def pods(self, job: str, space: str) -> list[str]:
        return [name for name in self.names("pods", space) if name.startswith(f"{job}-")]

    def wait_phase(self, job: str, space: str, phase: str) -> None:
        self.wait(
            lambda: self.read("jobs", job, space).get("status", {}).get("state", {}).get("phase") == phase,
            f"{job} to be {phase}",
        )

    @contextmanager
    def meanwhile(self, act: Callable[[], None]) -> Iterator[None]:
        """Do something in another thread while a command waits for it."""
        errors: list[BaseException] = []

        def work() -> None:
            try:
                act()
            except BaseException as error:
                errors.append(error)

        thread = Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            thread.join()
        assert not errors, errors


def job_manifest(name: str, replicas: int = 2, queue: str = "default", **metadata: Any) -> dict[str, Any]:
    """A job of one task, `worker`."""
    container = {"name": "main", "image": "a:1", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]}
    }
    task = {"name": "worker", "replicas": replicas, "template": template}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"schedulerName": "volcano", "minAvailable": replicas, "queue": queue, "tasks": [task]},
    }


def cells(table: str) -> list[list[str]]:
    """The cells of the rows of a table."""
    return [re.split(r" {2,}", line.strip()) for line in table.splitlines()]
