"""The dashboard's manifests: it reads what pages are made of and asks who looks, one replica, a safe pod."""

from __future__ import annotations

from stromboli.api.types.volcano_job import Job
from stromboli.cli.cluster.cluster_kinds import JOBS
from stromboli.cli.live.record_watches import ALL_KINDS
from stromboli.cli.status.cluster_policy import CONFIG_MAP
from stromboli.daemon.delegated_reviews import ACCESS_REVIEWS, TOKEN_REVIEWS
from stromboli.kube.api_resources import EVENTS, RESOURCES
from tests.deploy.manifests import DEPLOY, build, only
from tests.deploy.test_rbac import rights_of

DASHBOARD = build(DEPLOY / "dashboard")
POD = only(DASHBOARD, "Deployment")["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
LABELS = {"app.kubernetes.io/name": "stromboli", "app.kubernetes.io/component": "dashboard"}


def test_it_sees_what_pages_are_made_of_asks_who_looks_and_changes_nothing() -> None:
    reviews = {tuple(path.split("/")[2::2]) for path in (TOKEN_REVIEWS, ACCESS_REVIEWS)}
    seen = [EVENTS, *(JOBS if kind is Job else RESOURCES[kind] for kind in ALL_KINDS)]
    assert sorted(rights_of(only(DASHBOARD, "ClusterRole"))) == sorted(
        [(resource.group, resource.plural, verb) for resource in seen for verb in ("list", "watch")]
        + [(group, resource, "create") for group, resource in reviews]
    )


def test_of_config_maps_it_reads_the_policy_alone() -> None:
    namespace, name, _ = CONFIG_MAP
    role = only(DASHBOARD, "Role")
    assert role["metadata"]["namespace"] == namespace
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name], "verbs": ["get"]}
    ]


def test_bindings_join_the_account_of_the_pod_with_the_roles() -> None:
    account = only(DASHBOARD, "ServiceAccount")["metadata"]
    assert POD["serviceAccountName"] == account["name"]
    for kind in ("ClusterRole", "Role"):
        binding = only(DASHBOARD, f"{kind}Binding")
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (kind, "stromboli-dashboard")
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
        ]


def test_there_is_one_at_a_time() -> None:
    deployment = only(DASHBOARD, "Deployment")["spec"]
    assert deployment["replicas"] == 1
    assert deployment["strategy"] == {"type": "Recreate"}


def test_it_has_a_temporary_directory_beside_its_read_only_root() -> None:
    (mount,) = CONTAINER["volumeMounts"]
    (volume,) = POD["volumes"]
    assert mount == {"name": volume["name"], "mountPath": "/tmp"}
    assert "emptyDir" in volume


def test_its_pod_is_restricted_and_everything_selects_it() -> None:
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert only(DASHBOARD, "Service")["spec"]["selector"] == LABELS
    assert only(DASHBOARD, "Deployment")["spec"]["selector"] == {"matchLabels": LABELS}
    assert all(manifest["metadata"]["labels"] == LABELS for manifest in DASHBOARD)


def test_viewers_show_tokens_and_health_is_asked_at_the_same_port() -> None:
    command, *flags = CONTAINER["args"]
    assert command == "dashboard"
    assert "--authentication=token" in flags
    (port,) = CONTAINER["ports"]
    assert f"--listen-address=:{port['containerPort']}" in flags
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert CONTAINER[probe]["httpGet"] == {"path": "/healthz", "port": port["name"]}
