"""Releases of the Helm chart on an API server: installed, upgraded, taken back, uninstalled, beside Volcano's kinds."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli.admission.options import CONFIGURATION, SECRET
from tests.deploy.manifests import DEPLOY
from tests.kubernetes.charts import CHART, NAMESPACE, PLACE, Helm, HelmFailed
from tests.kubernetes.controlplane import ControlPlane

LARGEST_RELEASE = 1 << 20
"""Bytes of a Secret, in which Helm keeps a release."""
OTHERS = {"PrometheusRule", "ServiceMonitor"}
"""Kinds of Prometheus' operator."""
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "minAvailable": 1,
        "tasks": [
            {
                "name": "worker",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "main", "image": "a:1"}]}},
            }
        ],
    },
}
EVERYTHING = (
    "dashboard.enabled=true",
    "dashboard.tls.secretName=certificate",
    "dashboard.allowedHosts={dashboard.example.com:8443}",
    "monitoring.dashboards.enabled=true",
    "scheduler.names={volcano,other}",
    "scheduler.plugins.configMap=mine",
    "scheduler.explain.enabled=true",
    "scheduler.debugEndpoints.enabled=true",
    "scheduler.nodeLock.enabled=true",
    "scheduler.nodeUsage.enabled=true",
    "controllers.jobSsh.enabled=true",
    "controllers.sharding.enabled=true",
    "controllers.ufm.enabled=true",
)
TAKEOVER = (
    "crds.install=false",
    "controllers.enabled=false",
    "admission.enabled=false",
    "scheduler.policy.existingConfigMap=volcano-scheduler-configmap",
)


@pytest.fixture
def releases(helm: Path, fresh_plane: ControlPlane, tmp_path: Path) -> Helm:
    return Helm(helm, tmp_path, fresh_plane.kubeconfig)


def _get(plane: ControlPlane, kind: str, *name: str) -> Any:
    return json.loads(plane.kubectl("get", kind, *name, "-n", NAMESPACE, "-o", "json"))


def _names(plane: ControlPlane, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in _get(plane, kind)["items"]}


def _definitions(plane: ControlPlane) -> dict[str, str]:
    """The kinds of Volcano that are there, with the uid of each."""
    metadata = [each["metadata"] for each in _get(plane, "crd")["items"]]
    return {each["name"]: each["uid"] for each in metadata if each["name"].endswith(".volcano.sh")}


def test_a_release_comes_changes_and_goes_and_jobs_stay(fresh_plane: ControlPlane, releases: Helm) -> None:
    notes = releases.install("admission.enabled=false")
    assert "stromboli check --system-namespace volcano-system" in notes
    assert _names(fresh_plane, "deployment") == {"stromboli-scheduler", "stromboli-controllers"}
    fresh_plane.wait_established()
    kinds = _definitions(fresh_plane)
    assert len(kinds) == len(list((DEPLOY / "crds").glob("*.volcano.sh_*.yaml")))
    fresh_plane.apply(JOB)

    releases.upgrade("scheduler.replicas=3", 'scheduler.policy.text=actions: "allocate"', *EVERYTHING)
    assert _get(fresh_plane, "deployment", "stromboli-scheduler")["spec"]["replicas"] == 3
    assert _get(fresh_plane, "configmap", "volcano-scheduler-configmap")["data"] == {
        "volcano-scheduler.conf": 'actions: "allocate"'
    }
    assert {"stromboli-admission", "stromboli-dashboard"} < _names(fresh_plane, "deployment")

    releases.rollback(1)
    assert _get(fresh_plane, "deployment", "stromboli-scheduler")["spec"]["replicas"] == 2
    assert _names(fresh_plane, "deployment") == {"stromboli-scheduler", "stromboli-controllers"}

    releases.uninstall()
    assert _names(fresh_plane, "deployment") == set()
    assert not [name for name in _names(fresh_plane, "clusterrole") if name.startswith("stromboli")]
    assert _definitions(fresh_plane) == kinds
    assert json.loads(fresh_plane.kubectl("get", "vcjob", "train", "-o", "json"))["spec"]["minAvailable"] == 1

    releases.install("admission.enabled=false")
    assert _definitions(fresh_plane) == kinds
    assert _names(fresh_plane, "deployment") == {"stromboli-scheduler", "stromboli-controllers"}


def test_an_upgrade_brings_the_kinds_along(fresh_plane: ControlPlane, releases: Helm, tmp_path: Path) -> None:
    _install_older(releases, tmp_path, "stromboli")
    assert _short_names(fresh_plane) == ["queue-v1beta1"]
    releases.upgrade()
    assert _short_names(fresh_plane) == ["q", "queue-v1beta1"]
    releases.upgrade("crds.install=false")
    assert _short_names(fresh_plane) == ["q", "queue-v1beta1"]


def _install_older(releases: Helm, folder: Path, release: str) -> None:
    """A chart whose kinds lack something."""
    releases.chart = shutil.copytree(CHART, folder / "older")
    queues = releases.chart / "files" / "crds" / "scheduling.volcano.sh_queues.yaml"
    queues.write_text(queues.read_text().replace("    - q\n", ""))
    releases.install(release=release)
    releases.chart = CHART


def _short_names(plane: ControlPlane) -> list[str]:
    names: list[str] = _get(plane, "crd", "queues.scheduling.volcano.sh")["spec"]["names"]["shortNames"]
    return names


def test_the_api_server_takes_everything_once(fresh_plane: ControlPlane, releases: Helm) -> None:
    fresh_plane.kubectl("create", "namespace", NAMESPACE)
    made = [each for each in releases.template(EVERYTHING) if each["kind"] not in OTHERS]
    strict = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
    fresh_plane.kubectl(*strict, stdin=yaml.safe_dump_all(made))
    releases.install(*EVERYTHING, flags=("--dry-run=server",))
    releases.install(*EVERYTHING)
    secrets = _get(fresh_plane, "secret")["items"]
    (release,) = [each for each in secrets if each["type"] == "helm.sh/release.v1"]
    assert len(json.dumps(release)) < LARGEST_RELEASE / 2
    with pytest.raises(HelmFailed, match="invalid ownership metadata"):
        releases.install("crds.install=false", release="second")


def test_an_upgrade_keeps_the_certificate_that_admission_made(
    fresh_plane: ControlPlane, releases: Helm
) -> None:
    releases.install()
    secret = {"data": {"tls.crt": "bWFkZQ=="}}
    fresh_plane.kubectl("patch", "secret", SECRET, *PLACE, "--type=merge", "-p", json.dumps(secret))
    bundle = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": _bundle(fresh_plane)}]
    kind = "validatingwebhookconfiguration"
    fresh_plane.kubectl("patch", kind, CONFIGURATION, "--type=json", "-p", json.dumps(bundle))
    releases.upgrade("admission.replicas=3")
    assert _get(fresh_plane, "deployment", "stromboli-admission")["spec"]["replicas"] == 3
    assert _get(fresh_plane, "secret", SECRET)["data"] == secret["data"]
    client = _get(fresh_plane, kind, CONFIGURATION)["webhooks"][0]["clientConfig"]
    assert client["caBundle"] == bundle[0]["value"]


def _bundle(plane: ControlPlane) -> str:
    cluster = json.loads(plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    return base64.b64encode(Path(cluster["certificate-authority"]).read_bytes()).decode()


def test_a_policy_that_somebody_else_changed_is_not_overwritten_unasked(
    fresh_plane: ControlPlane, releases: Helm
) -> None:
    name, changed = "volcano-scheduler-configmap", {"volcano-scheduler.conf": 'actions: "allocate"'}
    releases.install()
    fresh_plane.kubectl("patch", "configmap", name, *PLACE, "-p", json.dumps({"data": changed}))
    with pytest.raises(HelmFailed, match=r"conflict.*volcano-scheduler\.conf"):
        releases.upgrade()
    assert _get(fresh_plane, "configmap", name)["data"] == changed
    releases.upgrade(f"scheduler.policy.existingConfigMap={name}")
    assert _get(fresh_plane, "configmap", name)["data"] == changed


def test_kinds_of_others_are_refused_or_left_alone(fresh_plane: ControlPlane, releases: Helm) -> None:
    """As where Volcano's chart has installed its own."""
    fresh_plane.kubectl("apply", "--server-side", "-k", str(DEPLOY / "crds"))
    kinds = _definitions(fresh_plane)
    with pytest.raises(HelmFailed) as refusal:
        releases.install()
    assert "invalid ownership metadata" in str(refusal.value)
    assert "CustomResourceDefinition" in str(refusal.value)
    releases.install(*TAKEOVER)
    assert _names(fresh_plane, "deployment") == {"stromboli-scheduler"}
    assert "volcano-scheduler-configmap" not in _names(fresh_plane, "configmap")
    releases.uninstall()
    assert _definitions(fresh_plane) == kinds


def test_kinds_that_another_release_left_behind_can_be_taken(
    fresh_plane: ControlPlane, releases: Helm, tmp_path: Path
) -> None:
    _install_older(releases, tmp_path, "volcano")
    releases.run("uninstall", "volcano", *PLACE)
    kinds = _definitions(fresh_plane)
    with pytest.raises(HelmFailed, match="invalid ownership metadata"):
        releases.install()
    releases.install(flags=("--take-ownership",))
    assert _definitions(fresh_plane) == kinds
    assert _short_names(fresh_plane) == ["q", "queue-v1beta1"]
