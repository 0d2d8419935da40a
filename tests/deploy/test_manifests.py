"""Manifests: safe pods, two replicas, one name for one thing, Volcano's names where users rely on them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from stromboli import __version__
from stromboli.extensions import load_catalog
from stromboli.policy.policy import load_policy
from stromboli.policy.presets import PRESETS
from stromboli.scheduler.options import parse
from tests.deploy.manifests import (
    DEBUG_ENDPOINTS,
    DEPLOY,
    NODE_LOCK,
    NODE_USAGE,
    ROOT,
    STANDALONE,
    TAKEOVER,
    Manifest,
    build,
    documents,
    name_of,
    only,
)
from tests.docs.pages import blocks

LABELS = {"app.kubernetes.io/name": "stromboli", "app.kubernetes.io/component": "scheduler"}
OVERLAYS = [
    DEPLOY / "crds",
    DEPLOY / "dashboard",
    DEPLOY / "monitoring",
    DEPLOY / "overlays" / "standalone",
    DEPLOY / "overlays" / "takeover",
]
FILES = sorted(path for path in DEPLOY.rglob("*.yaml") if DEPLOY / "chart" not in path.parents)
POD: Manifest = only(STANDALONE, "Deployment")["spec"]["template"]
(CONTAINER,) = POD["spec"]["containers"]


def _flags() -> dict[str, str]:
    command, *flags = CONTAINER["args"]
    assert command == "scheduler"
    return dict(flag.removeprefix("--").split("=", 1) for flag in flags)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(DEPLOY).as_posix())
def test_every_manifest_is_an_object_with_a_name(path: Path) -> None:
    for document in documents(path):
        assert document["apiVersion"]
        assert document["kind"] in ("Kustomization", "Component") or document["metadata"]["name"]


def test_every_manifest_belongs_somewhere() -> None:
    used = {path for plan in DEPLOY.rglob("kustomization.yaml") for path in _listed(plan)}
    assert {path for path in FILES if path.name != "kustomization.yaml"} <= used


def _listed(plan: Path) -> list[Path]:
    (content,) = documents(plan)
    return [(plan.parent / part).resolve() for part in content.get("resources", [])]


@pytest.mark.programs("kubectl")
@pytest.mark.parametrize("folder", OVERLAYS, ids=lambda folder: folder.name)
def test_kustomize_makes_the_same_of_it(folder: Path) -> None:
    done = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, check=True)
    ours = {name_of(manifest): manifest for manifest in build(folder)}
    assert {name_of(manifest): manifest for manifest in yaml.load_all(done.stdout, yaml.CSafeLoader)} == ours


@pytest.mark.programs("kubectl")
def test_the_overlay_in_the_documentation_works(tmp_path: Path) -> None:
    (shown,) = (
        block.body
        for block in blocks((ROOT / "docs" / "install.md").read_text())
        if block.language == "yaml" and "patches:" in block.body
    )
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    mine = tmp_path / "deploy" / "overlays" / "mine"
    mine.mkdir()
    (mine / "kustomization.yaml").write_text(shown)
    done = subprocess.run(["kubectl", "kustomize", mine], capture_output=True, text=True, check=True)
    pod = only(list(yaml.load_all(done.stdout, yaml.CSafeLoader)), "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == f"registry.example.com/stromboli:{__version__}"
    assert container["args"] == [*CONTAINER["args"], "--schedule-period=500ms"]
    assert pod["volumes"][0]["configMap"]["name"] == "prod-scheduler-configmap"


def test_the_takeover_leaves_what_is_volcanos_alone() -> None:
    assert {manifest["kind"] for manifest in TAKEOVER}.isdisjoint(
        {"CustomResourceDefinition", "ConfigMap", "Queue", "Namespace"}
    )
    assert all(manifest["metadata"]["name"].startswith("stromboli-") for manifest in TAKEOVER)
    assert all(manifest in STANDALONE for manifest in TAKEOVER)


def test_the_configuration_has_volcanos_names_and_content() -> None:
    config = only(STANDALONE, "ConfigMap")
    assert config["metadata"]["name"] == "volcano-scheduler-configmap"
    ((key, text),) = config["data"].items()
    assert text == PRESETS["basic"]
    load_policy(text, load_catalog(), key)
    (mount,) = (mount for mount in CONTAINER["volumeMounts"] if mount["name"] == "policy")
    assert (
        _flags()["scheduler-conf"]
        == f"{mount['mountPath']}/{key}"
        == "/volcano.scheduler/volcano-scheduler.conf"
    )
    assert mount["readOnly"]


def test_the_scheduler_understands_its_flags() -> None:
    options = parse(CONTAINER["args"][1:])
    assert options.notes == ()
    assert options.enable_healthz
    assert options.enable_metrics
    assert {options.healthz_address, options.listen_address} == {
        f":{port['containerPort']}" for port in CONTAINER["ports"]
    }
    assert POD["spec"]["terminationGracePeriodSeconds"] > options.shutdown_timeout


def test_two_replicas_elect_a_leader_and_one_may_leave_at_a_time() -> None:
    deployment, budget = only(STANDALONE, "Deployment"), only(STANDALONE, "PodDisruptionBudget")
    assert deployment["spec"]["replicas"] == 2
    assert _flags()["leader-elect"] == "true"
    assert _flags()["leader-elect-resource-namespace"] == "$(NAMESPACE)"
    assert budget["spec"]["maxUnavailable"] == 1


def test_pods_are_restricted() -> None:
    """The pod security standard `restricted`, and a read-only root besides."""
    pod, own = POD["spec"]["securityContext"], CONTAINER["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert own == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not POD["spec"].keys() & {"hostNetwork", "hostPID", "hostIPC", "initContainers"}
    assert all(volume.keys() & {"configMap", "emptyDir"} for volume in POD["spec"]["volumes"])


def test_what_is_written_goes_to_tmp() -> None:
    (writable,) = (mount for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly"))
    assert writable["mountPath"] == _flags()["cache-dump-dir"] == "/tmp"


def test_pods_are_important_probed_and_bounded() -> None:
    assert POD["spec"]["priorityClassName"] == "system-cluster-critical"
    assert CONTAINER["resources"].keys() == {"requests", "limits"}
    assert "cpu" not in CONTAINER["resources"]["limits"]
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert ports == {"metrics": 8080, "health": 11251}
    probes = {"startupProbe": "/healthz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}
    for probe, path in probes.items():
        assert CONTAINER[probe]["httpGet"] == {"path": path, "port": "health"}


def test_everything_that_selects_pods_selects_ours() -> None:
    deployment, service = only(STANDALONE, "Deployment"), only(STANDALONE, "Service")
    budget = only(STANDALONE, "PodDisruptionBudget")
    assert POD["metadata"]["labels"] == LABELS
    assert deployment["spec"]["selector"] == budget["spec"]["selector"] == {"matchLabels": LABELS}
    assert service["spec"]["selector"] == LABELS
    assert service["spec"]["ports"] == [{"name": "metrics", "port": 8080, "targetPort": "metrics"}]
    (term,) = POD["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == {"matchLabels": LABELS}


@pytest.mark.parametrize("manifest", [*TAKEOVER, *NODE_USAGE, *NODE_LOCK, *DEBUG_ENDPOINTS], ids=name_of)
def test_everything_of_ours_says_so(manifest: Manifest) -> None:
    assert manifest["metadata"]["labels"] == LABELS


def test_the_image_is_that_of_this_version() -> None:
    assert CONTAINER["image"] == f"stromboli:{__version__}"


def test_the_two_queues_are_those_that_the_scheduler_would_make() -> None:
    queues: dict[str, Any] = {
        manifest["metadata"]["name"]: manifest["spec"]
        for manifest in STANDALONE
        if manifest["kind"] == "Queue"
    }
    assert queues == {
        "root": {"weight": 1, "reclaimable": False},
        "default": {"weight": 1, "reclaimable": True},
    }
