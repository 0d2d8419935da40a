"""`stromboli check` and `policy` on an API server: without an installation, with it, and without the rights."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stromboli.api.go_scalars import micro_time
from stromboli.cli.main import app
from stromboli.daemon.certificates import new_authority
from tests.kubernetes.commanding import CommandCluster
from tests.kubernetes.controlplane import ControlPlane

NO_ROOM = 'actions: "enqueue"\ntiers:\n- plugins:\n  - name: gang\n'


def run(plane: ControlPlane, home: Path, *words: object) -> Result:
    environment = {"KUBECONFIG": str(plane.kubeconfig), "HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
    return CliRunner().invoke(app, list(map(str, words)), env=environment, catch_exceptions=False)


def states(result: Result) -> dict[str, set[str]]:
    """What came of each check."""
    told: dict[str, set[str]] = {}
    for each in json.loads(result.stdout)["checks"]:
        told.setdefault(each["check"], set()).add(each["state"])
    return told


def test_on_a_cluster_without_volcanos_kinds_every_command_says_so(
    fresh_plane: ControlPlane, tmp_path: Path
) -> None:
    for words, kind in (
        ("job list", "jobs.batch.volcano.sh"),
        ("job get train", "jobs.batch.volcano.sh"),
        ("job delete train", "jobs.batch.volcano.sh"),
        ("queue get default", "queues.scheduling.volcano.sh"),
        ("queue create research", "queues.scheduling.volcano.sh"),
        ("cronjob describe nightly", "cronjobs.batch.volcano.sh"),
        ("podgroup list -A", "podgroups.scheduling.volcano.sh"),
    ):
        result = run(fresh_plane, tmp_path, *words.split())
        assert (result.exit_code, result.stdout) == (1, ""), words
        assert f"the cluster has no {kind}: is Stromboli or Volcano installed?" in result.stderr, words
    shown = run(fresh_plane, tmp_path, "top", "--once")
    assert (shown.exit_code, "Queue (queues.scheduling" in shown.stderr) == (0, True), shown.output
    checked = run(fresh_plane, tmp_path, "check", "-o", "json")
    assert checked.exit_code == 1
    assert states(checked)["api-server"] == {"ok"}
    assert states(checked)["kinds"] == {"failed", "warning"}


def install(plane: ControlPlane, namespace: str) -> None:
    """Deployments, leases and webhooks as an installation has them."""
    for part in ("scheduler", "controllers", "admission"):
        deployment(plane, namespace, f"stromboli-{part}")
    for name in ("volcano", "vc-controller-manager"):
        spec = {"holderIdentity": "pod-1", "leaseDurationSeconds": 60, "renewTime": now()}
        root = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        plane.request("POST", root, {"metadata": {"name": name}, "spec": spec})
    plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": NO_ROOM}},
    )


def now() -> str:
    return micro_time(datetime.now(UTC).timestamp())


def deployment(plane: ControlPlane, namespace: str, name: str) -> None:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "a:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    root = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    made = json.loads(plane.request("POST", root, {"metadata": {"name": name}, "spec": spec}))
    ready = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
    made["status"] = {**ready, "observedGeneration": made["metadata"]["generation"]}
    plane.request("PUT", f"{root}/{name}/status", made)


def webhook(plane: ControlPlane, namespace: str, days: int) -> None:
    """Of a service without endpoints, with an authority that ends so soon; it is never asked."""
    authority = new_authority("admission", datetime.now(UTC), timedelta(days=days)).certificate
    client = {
        "service": {"namespace": namespace, "name": "admission"},
        "caBundle": base64.b64encode(authority).decode(),
    }
    rule = {
        "apiGroups": ["batch.volcano.sh"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE"],
        "resources": ["jobs"],
    }
    content: dict[str, Any] = {
        "name": "validatejob.volcano.sh",
        "clientConfig": client,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"nobody": "has-it"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    plane.request("POST", path, {"metadata": {"name": f"check-{namespace}"}, "webhooks": [content]})


@pytest.mark.smoke
def test_an_installation_is_read_part_by_part(plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    install(plane, namespace)
    webhook(plane, namespace, days=5)
    result = run(plane, tmp_path, "check", "--system-namespace", namespace, "-o", "json")
    told = states(result)
    for check in (
        "api-server",
        "clock",
        "kinds",
        "scheduler",
        "controllers",
        "admission",
        "rights",
        "policy",
    ):
        assert told[check] == {"ok"}, result.stdout
    assert told["scheduler lease"] == told["controllers lease"] == {"ok"}
    assert told["webhooks"] == {"failed"}  # the service has no endpoints
    assert told["certificates"] == {"warning"}
    assert result.exit_code == 1
    plane.request(
        "DELETE",
        f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/check-{namespace}",
    )


def test_a_plugin_of_the_cluster_is_known_by_its_folder(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    policy = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: my-order\n'
    plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/configmaps",
        {"metadata": {"name": "volcano-scheduler-configmap"}, "data": {"volcano-scheduler.conf": policy}},
    )
    options = ("check", "--system-namespace", namespace, "-o", "json")
    unknown = run(plane, tmp_path, *options)
    (told,) = [each for each in json.loads(unknown.stdout)["checks"] if each["check"] == "policy"]
    assert (told["state"], "--plugins-dir" in told["wayOut"]) == ("warning", True), told
    folder = tmp_path / "own"
    folder.mkdir()
    own = "from stromboli.engine.plugin import Plugin\n\nclass Own(Plugin):\n    name = 'my-order'\n"
    (folder / "own.py").write_text(own)
    assert states(run(plane, tmp_path, *options, "--plugins-dir", str(folder)))["policy"] == {"ok"}


def test_a_user_who_may_read_nothing_is_told_every_right_that_is_missing(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    commands = CommandCluster(tmp_path, plane)
    somebody = commands.account(namespace, "reader")
    result = commands.run("check", "-n", namespace, "-o", "json", kubeconfig=somebody)
    told = states(result)
    assert told["kinds"] == told["components"] == told["leases"] == told["nodes"] == {"skipped"}
    assert (told["rights"], told["policy"], result.exit_code) == ({"warning"}, {"skipped"}, 0)
    texts = [each["text"] for each in json.loads(result.stdout)["checks"] if each["state"] == "skipped"]
    assert all("an administrator gives that right with" in text for text in texts)
    compared = commands.run("policy", "diff", "--preset", "basic", kubeconfig=somebody)
    assert (compared.exit_code, 'the verb "get" on "configmaps"' in compared.stderr) == (2, True)


def test_a_policy_is_compared_applied_and_printed(
    plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    install(plane, namespace)
    key = ("--configmap", f"{namespace}/volcano-scheduler-configmap")
    differs = run(plane, tmp_path, "policy", "diff", "--preset", "basic", *key, "--no-decisions")
    assert (differs.exit_code, "- enqueue\n" in differs.stdout) == (1, True)
    applied = run(plane, tmp_path, "policy", "apply", "--preset", "basic", *key, "--yes")
    assert applied.exit_code == 0, applied.output
    assert run(plane, tmp_path, "policy", "diff", "--preset", "basic", *key).exit_code == 0
    shown = run(plane, tmp_path, "policy", "show", "--in-force", *key)
    assert shown.stdout == run(plane, tmp_path, "policy", "show", "basic").stdout
